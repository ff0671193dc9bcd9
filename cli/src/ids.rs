//! IDs as they are written and read here.

use std::fmt;
use std::io::{self, Write};

use clap::ValueEnum;
use ringflake::{Id, ParseIdError};

/// How IDs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The signed number
    I64,
    /// The unsigned number
    U64,
    /// Base 32 with the digits 0-9a-v
    Base32hex,
    /// One object a line: {"id":"BASE32HEX","i64":"NUMBER","u64":"NUMBER"}; strings,
    /// because many JSON readers round numbers over 2^53
    Json,
    /// The unsigned number as 8 little-endian bytes, without separators
    U64le,
}

impl OutputFormat {
    /// Appends `id` to `out`.
    pub(crate) fn write(self, id: Id, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::I64 => writeln!(out, "{}", id.to_i64()),
            Self::U64 => writeln!(out, "{}", id.to_u64()),
            Self::Base32hex => writeln!(out, "{id}"),
            Self::Json => writeln!(
                out,
                r#"{{"id":"{id}","i64":"{}","u64":"{}"}}"#,
                id.to_i64(),
                id.to_u64()
            ),
            Self::U64le => out.write_all(&id.to_le_bytes()),
        }
    }
}

/// The longest base32hex of 64 bits.
const LONGEST_BASE32HEX: usize = 13;

/// Whether these digits are base32hex as well as a decimal number: that has no zeros in
/// front, and 13 digits of 0 to 9 always fit 64 bits.
fn is_base32hex_too(digits: &str) -> bool {
    digits.len() <= LONGEST_BASE32HEX && (digits == "0" || !digits.starts_with('0'))
}

fn is_decimal(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text behind a prefix such as that of a `TypedId`.
fn without_prefix(text: &str) -> Option<&str> {
    let (prefix, text) = text.rsplit_once('_')?;
    let is_of_prefix =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    let is_prefix = prefix.starts_with(|first: char| first.is_ascii_lowercase())
        && prefix.as_bytes().iter().all(is_of_prefix);
    is_prefix.then_some(text)
}

/// How an ID can be spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    Decimal,
    Base32hex,
}

/// How IDs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Base32hex as generate prints it, also with a prefix (order_ae3ek0mnbbd13), or decimal
    /// numbers
    Auto,
    /// A signed number
    I64,
    /// An unsigned number
    U64,
    /// Base 32 with the digits 0-9a-v, also with a prefix
    Base32hex,
}

impl InputFormat {
    /// Whether `text` is one ID as a decimal number and another one as base32hex.
    pub(crate) fn is_ambiguous(self, text: &str) -> bool {
        self == Self::Auto && text.len() > 1 && is_decimal(text) && is_base32hex_too(text)
    }

    /// How IDs are spelled where `text` is one of them, if it shows that: an ID that has
    /// one spelling only. A word without a digit shows nothing, for it may be a title.
    pub(crate) fn spelling_shown_by(self, text: &str) -> Option<Spelling> {
        let has = |wanted: fn(&u8) -> bool| text.as_bytes().iter().any(wanted);
        if self != Self::Auto || text.len() < 2 || self.read(text).is_err() {
            return None;
        }
        match (has(u8::is_ascii_digit), has(u8::is_ascii_alphabetic)) {
            (true, false) => Some(Spelling::Decimal),
            (true, true) => Some(Spelling::Base32hex),
            (false, _) => None,
        }
    }

    /// The ID that `text` stands for.
    pub(crate) fn read(self, text: &str) -> Result<Id, ReadIdError> {
        if let (Self::Auto | Self::Base32hex, Some(text)) = (self, without_prefix(text)) {
            return text.parse().map_err(ReadIdError::NotBase32hex);
        }
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let is_decimal = is_decimal(digits);
        // Digits only, so that `parse` can fail for the range alone.
        let signed = || text.parse().ok().map(Id::from_i64);
        let unsigned = || text.parse().ok().map(Id::from_u64);
        match self {
            Self::Auto if self.is_ambiguous(text) => Err(ReadIdError::Ambiguous),
            Self::Auto if is_decimal && negative => signed().ok_or(ReadIdError::NotI64),
            Self::Auto if is_decimal && !is_base32hex_too(text) => {
                unsigned().ok_or(ReadIdError::NotU64)
            }
            Self::Auto | Self::Base32hex => text.parse().map_err(ReadIdError::NotBase32hex),
            Self::I64 => signed().filter(|_| is_decimal).ok_or(ReadIdError::NotI64),
            Self::U64 => unsigned().filter(|_| is_decimal).ok_or(ReadIdError::NotU64),
        }
    }
}

impl From<Spelling> for InputFormat {
    fn from(spelling: Spelling) -> Self {
        match spelling {
            Spelling::Decimal => Self::U64,
            Spelling::Base32hex => Self::Base32hex,
        }
    }
}

/// Why a text is no ID.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadIdError {
    Ambiguous,
    NotI64,
    NotU64,
    NotBase32hex(ParseIdError),
}

impl fmt::Display for ReadIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous => f.write_str(
                "may be base32hex or a decimal number, and no ID before it says which: \
                 give --input base32hex or --input u64",
            ),
            Self::NotI64 => write!(
                f,
                "not a signed number of 64 bits: give {} to {}",
                i64::MIN,
                i64::MAX
            ),
            Self::NotU64 => write!(
                f,
                "not an unsigned number of 64 bits: give 0 to {}",
                u64::MAX
            ),
            Self::NotBase32hex(error) => write!(f, "not base32hex: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn auto_never_takes_one_spelling_for_the_other(number in any::<u64>(), bits in 0_u32..64) {
            let id = Id::from_u64(number >> bits);
            for format in [OutputFormat::Base32hex, OutputFormat::U64, OutputFormat::I64] {
                let mut printed = Vec::new();
                format.write(id, &mut printed).unwrap();
                let text = str::from_utf8(&printed).unwrap().trim_end();
                let read = InputFormat::Auto.read(text);
                let right = match InputFormat::Auto.is_ambiguous(text) {
                    true => Err(ReadIdError::Ambiguous),
                    false => Ok(id),
                };
                prop_assert_eq!(read, right, "{}", text);
            }
        }
    }

    #[test]
    fn an_id_with_a_prefix_is_base32hex() {
        let id = Ok("ae3ek0mnbbd13".parse().unwrap());
        for text in ["order_ae3ek0mnbbd13", "big_order2_ae3ek0mnbbd13"] {
            assert_eq!(InputFormat::Auto.read(text), id, "{text}");
            assert_eq!(InputFormat::Base32hex.read(text), id, "{text}");
            assert_eq!(InputFormat::U64.read(text), Err(ReadIdError::NotU64));
        }
        assert_eq!(
            InputFormat::Auto.read("order_12"),
            Ok("12".parse().unwrap())
        );
        for text in [
            "_12",
            "Order_12",
            "order_",
            "order_12_",
            "or der_12",
            "2_12",
        ] {
            let read = InputFormat::Auto.read(text);
            assert!(
                matches!(read, Err(ReadIdError::NotBase32hex(_))),
                "{text}: {read:?}"
            );
        }
    }

    #[test]
    fn an_id_of_one_spelling_shows_it() {
        let shown = |text| InputFormat::Auto.spelling_shown_by(text);
        for text in ["-1", "010", "12345678901234"] {
            assert_eq!(shown(text), Some(Spelling::Decimal), "{text}");
        }
        for text in ["1a", "a1", "ae3ek0mnbbd13", "order_12"] {
            assert_eq!(shown(text), Some(Spelling::Base32hex), "{text}");
        }
        for text in ["", "-", "7", "a", "id", "10", "1x", "99999999999999999999"] {
            assert_eq!(shown(text), None, "{text}");
        }
        assert_eq!(InputFormat::U64.spelling_shown_by("12345678901234"), None);
    }

    #[test]
    fn auto_tells_numbers_from_base32hex() {
        let auto = |text| InputFormat::Auto.read(text).map(Id::to_u64).ok();
        assert_eq!(
            auto("12037510499902272547"),
            Some(12_037_510_499_902_272_547)
        );
        assert_eq!(
            auto("-6409233573807279069"),
            Some(12_037_510_499_902_272_547)
        );
        assert_eq!(auto("ae3ek0mnbbd13"), Some(12_037_510_499_902_272_547));
        assert_eq!(auto("7"), Some(7));
        assert_eq!(auto("12345678901234"), Some(12_345_678_901_234));
        assert_eq!(auto("010"), Some(10));
        assert_eq!(auto("-10"), Some(10_u64.wrapping_neg()));
        assert_eq!(auto("1a"), Some(42));
        for wrong in [
            "",
            "10",
            "1234567890123",
            "-",
            "-a",
            "+5",
            "18446744073709551616",
            "-9223372036854775809",
            "1_0",
        ] {
            assert_eq!(auto(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_other_forms_take_nothing_else() {
        let (i64, u64) = (InputFormat::I64, InputFormat::U64);
        assert_eq!(i64.read("-1"), Ok(Id::from_i64(-1)));
        assert_eq!(u64.read("18446744073709551615"), Ok(Id::from_i64(-1)));
        for wrong in ["", "+1", "9223372036854775808", "a", "0x1"] {
            assert_eq!(i64.read(wrong), Err(ReadIdError::NotI64), "{wrong}");
        }
        for wrong in ["", "+1", "-1", "18446744073709551616", "a"] {
            assert_eq!(u64.read(wrong), Err(ReadIdError::NotU64), "{wrong}");
        }
        let base32hex = InputFormat::Base32hex;
        assert_eq!(base32hex.read("10"), Ok(Id::from_u64(32)));
        assert!(base32hex.read("-10").is_err());
    }
}

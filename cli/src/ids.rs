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

/// The longest base32hex of 64 bits. A decimal number that is longer is no base32hex, and
/// one that isn't is below 10^13, where encrypted IDs are one in a million.
const LONGEST_BASE32HEX: usize = 13;

/// Whether these digits may be base32hex: those have no zeros in front.
fn looks_printed(digits: &str) -> bool {
    digits.len() <= LONGEST_BASE32HEX && (digits == "0" || !digits.starts_with('0'))
}

/// How IDs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Up to 13 characters are base32hex, as generate prints it; a longer number, or one
    /// with a minus, is decimal
    Auto,
    /// A signed number
    I64,
    /// An unsigned number
    U64,
    /// Base 32 with the digits 0-9a-v
    Base32hex,
}

impl InputFormat {
    /// Whether `text` might be meant as a decimal number, and is read as base32hex.
    pub(crate) fn is_ambiguous(self, text: &str) -> bool {
        let is_decimal = text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit());
        self == Self::Auto && is_decimal && looks_printed(text)
    }

    /// The ID that `text` stands for.
    pub(crate) fn read(self, text: &str) -> Result<Id, ReadIdError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // Digits only, so that `parse` can fail for the range alone.
        let signed = || text.parse().ok().map(Id::from_i64);
        let unsigned = || text.parse().ok().map(Id::from_u64);
        match self {
            Self::Auto if is_decimal && negative => signed().ok_or(ReadIdError::NotI64),
            Self::Auto if is_decimal && !looks_printed(text) => {
                unsigned().ok_or(ReadIdError::NotU64)
            }
            Self::Auto | Self::Base32hex => text.parse().map_err(ReadIdError::NotBase32hex),
            Self::I64 => signed().filter(|_| is_decimal).ok_or(ReadIdError::NotI64),
            Self::U64 => unsigned().filter(|_| is_decimal).ok_or(ReadIdError::NotU64),
        }
    }
}

/// Why a text is no ID.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadIdError {
    NotI64,
    NotU64,
    NotBase32hex(ParseIdError),
}

impl fmt::Display for ReadIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
        fn auto_reads_what_generate_prints(number in any::<u64>(), bits in 0_u32..64) {
            let id = Id::from_u64(number >> bits);
            let mut printed = Vec::new();
            OutputFormat::Base32hex.write(id, &mut printed).unwrap();
            let printed = str::from_utf8(&printed).unwrap().trim_end();
            prop_assert_eq!(InputFormat::Auto.read(printed), Ok(id));
        }

        #[test]
        fn auto_reads_decimal_numbers_that_are_no_base32hex(number in 10_u64.pow(13)..) {
            let id = Id::from_u64(number);
            prop_assert_eq!(InputFormat::Auto.read(&number.to_string()), Ok(id));
            let negative = -((number >> 1) as i64);
            let read = InputFormat::Auto.read(&negative.to_string());
            prop_assert_eq!(read, Ok(Id::from_i64(negative)));
        }
    }

    #[test]
    fn a_short_number_might_be_meant_as_decimal() {
        let auto = InputFormat::Auto;
        assert!(auto.is_ambiguous("10") && auto.is_ambiguous("1234567890123"));
        for clear in ["", "7", "1a", "-10", "010", "12345678901234"] {
            assert!(!auto.is_ambiguous(clear), "{clear}");
        }
        assert!(!InputFormat::U64.is_ambiguous("10"));
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
        // Base32hex although it would do as a number.
        assert_eq!(auto("10"), Some(32));
        assert_eq!(
            auto("1234567890123"),
            "1234567890123".parse().ok().map(Id::to_u64)
        );
        assert_eq!(auto("12345678901234"), Some(12_345_678_901_234));
        assert_eq!(auto("010"), Some(10));
        assert_eq!(auto("-10"), Some(10_u64.wrapping_neg()));
        assert_eq!(auto("1a"), Some(42));
        for wrong in [
            "",
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

//! IDs as they are written and read here.

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

const AMBIGUOUS: &str = "may be base32hex or a decimal number, and the IDs before it don't say \
                         which: give --input base32hex or --input u64";

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

    /// How IDs are written where `text` is one of them, if it shows that: an ID that can be
    /// read in one way only. A word without a digit shows nothing, for it may be a title.
    pub(crate) fn shown_by(self, text: &str) -> Option<Self> {
        let has = |wanted: fn(&u8) -> bool| text.as_bytes().iter().any(wanted);
        if self != Self::Auto || text.len() < 2 || self.read(text).is_err() {
            return None;
        }
        match (has(u8::is_ascii_digit), has(u8::is_ascii_alphabetic)) {
            (true, false) => Some(Self::U64),
            (true, true) => Some(Self::Base32hex),
            (false, _) => None,
        }
    }

    /// The ID that `text` stands for, or why it is none.
    pub(crate) fn read(self, text: &str) -> Result<Id, String> {
        let base32hex = |text: &str| {
            let id = text.parse();
            id.map_err(|error: ParseIdError| format!("not base32hex: {error}"))
        };
        if let (Self::Auto | Self::Base32hex, Some(text)) = (self, without_prefix(text)) {
            return base32hex(text);
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_negative = digits.len() < text.len();
        // Digits only, so that `parse` can fail for the range alone.
        let number = is_decimal(digits).then_some(text);
        let signed = || {
            let id = number.and_then(|text| text.parse().ok()).map(Id::from_i64);
            let (least, most) = (i64::MIN, i64::MAX);
            id.ok_or_else(|| format!("not a signed number of 64 bits: give {least} to {most}"))
        };
        let unsigned = || {
            let id = number.and_then(|text| text.parse().ok()).map(Id::from_u64);
            id.ok_or_else(|| format!("not an unsigned number of 64 bits: give 0 to {}", u64::MAX))
        };
        match self {
            Self::Auto if self.is_ambiguous(text) => Err(AMBIGUOUS.to_owned()),
            Self::Auto if number.is_some() && is_negative => signed(),
            Self::Auto if number.is_some() && !is_base32hex_too(text) => unsigned(),
            Self::Auto | Self::Base32hex => base32hex(text),
            Self::I64 => signed(),
            Self::U64 => unsigned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_reads_what_it_names_and_auto_what_is_certain() {
        const ID: Option<u64> = Some(12_037_510_499_902_272_547);
        const MAX: Option<u64> = Some(u64::MAX);
        // As auto, i64, u64 and base32hex.
        for (text, expected) in [
            ("ae3ek0mnbbd13", [ID, None, None, ID]),
            ("12037510499902272547", [ID, None, ID, None]),
            ("-6409233573807279069", [ID, ID, None, None]),
            ("18446744073709551615", [MAX, None, MAX, None]),
            ("-1", [MAX, MAX, None, None]),
            ("7", [Some(7); 4]),
            ("10", [None, Some(10), Some(10), Some(32)]),
            ("010", [Some(10), Some(10), Some(10), None]),
            ("1a", [Some(42), None, None, Some(42)]),
            ("order_12", [Some(34), None, None, Some(34)]),
            ("big_order2_ae3ek0mnbbd13", [ID, None, None, ID]),
        ] {
            let [auto, i64, u64, base32hex] = expected;
            for (form, expected) in [
                (InputFormat::Auto, auto),
                (InputFormat::I64, i64),
                (InputFormat::U64, u64),
                (InputFormat::Base32hex, base32hex),
            ] {
                let read = form.read(text).ok().map(Id::to_u64);
                assert_eq!(read, expected, "{text} as {form:?}");
            }
        }
        // The longest text that both have, and the shortest that base32hex has not.
        let auto = |text| InputFormat::Auto.read(text);
        assert_eq!(auto("1234567890123"), Err(AMBIGUOUS.to_owned()));
        assert_eq!(auto("12345678901234"), Ok(Id::from_u64(12_345_678_901_234)));
    }

    #[test]
    fn a_text_that_is_no_id_is_read_in_no_form() {
        let texts = "|-|-a|+5|0x1|1_0|18446744073709551616|-9223372036854775809|\
                     _12|Order_12|order_|order_12_|or der_12|2_12";
        for text in texts.split('|') {
            for form in InputFormat::value_variants() {
                assert!(form.read(text).is_err(), "{text:?} as {form:?}");
            }
        }
    }
}

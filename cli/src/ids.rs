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
    /// One object a line: {"id":"<base32hex>","i64":"<number>","u64":"<number>"}; strings,
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

/// How IDs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Digits with an optional minus are a decimal number, anything else is base32hex
    Auto,
    /// A signed number
    I64,
    /// An unsigned number
    U64,
    /// Base 32 with the digits 0-9a-v
    Base32hex,
}

impl InputFormat {
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
            Self::Auto if is_decimal => unsigned().ok_or(ReadIdError::NotU64),
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
    use super::*;

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
        // A number although it would do as base32hex.
        assert_eq!(auto("10"), Some(10));
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

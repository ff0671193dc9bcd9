//! The text: prefix, `_`, and that of the ID.

use std::fmt;
use std::io::Write;
use std::str::{self, FromStr};

use super::prefix::{MAX_LENGTH, SEPARATOR};
use super::{IdKind, ParseTypedIdError, TypedId};
use crate::id::MAX_DIGITS;

impl<T: IdKind> fmt::Display for TypedId<T> {
    /// Writes the text, padded as a `str` is, without allocating. Padding is not part
    /// of the ID and does not read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0_u8; MAX_TEXT];
        let mut rest = &mut bytes[..];
        write!(rest, "{}{SEPARATOR}{}", T::PREFIX, self.id).map_err(|_| fmt::Error)?;
        let length = MAX_TEXT - rest.len();
        // Only whole `str`s were written.
        f.pad(str::from_utf8(&bytes[..length]).unwrap_or_default())
    }
}

impl<T: IdKind> FromStr for TypedId<T> {
    type Err = ParseTypedIdError;

    /// Reads what [`Display`](fmt::Display) writes, and nothing else.
    ///
    /// # Errors
    ///
    /// [`ParseTypedIdError`], with the prefix that is expected and the one that is there.
    fn from_str(text: &str) -> Result<Self, ParseTypedIdError> {
        let expected = T::PREFIX;
        let Some((found, digits)) = text.rsplit_once(SEPARATOR) else {
            return Err(ParseTypedIdError::NoPrefix { expected });
        };
        if found != expected {
            return Err(ParseTypedIdError::other_prefix(found, expected));
        }
        match digits.parse() {
            Ok(id) => Ok(Self::from_id(id)),
            Err(error) => Err(ParseTypedIdError::Id {
                prefix: expected,
                error,
            }),
        }
    }
}

impl<T: IdKind> TryFrom<&str> for TypedId<T> {
    type Error = ParseTypedIdError;

    /// As [`FromStr`] reads it.
    fn try_from(text: &str) -> Result<Self, ParseTypedIdError> {
        text.parse()
    }
}

impl<T: IdKind> TryFrom<String> for TypedId<T> {
    type Error = ParseTypedIdError;

    /// As [`FromStr`] reads it.
    fn try_from(text: String) -> Result<Self, ParseTypedIdError> {
        text.parse()
    }
}

/// The length of the longest text.
const MAX_TEXT: usize = MAX_LENGTH + SEPARATOR.len_utf8() + MAX_DIGITS;

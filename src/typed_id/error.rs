//! Why a text is not an ID of its kind.

use std::error::Error;
use std::fmt;

use super::prefix::{MAX_LENGTH, SEPARATOR};
use crate::id::ParseIdError;

/// Why a text is not a [`TypedId`](crate::TypedId) of the kind that is expected.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseTypedIdError {
    /// There is no `_` in the text, and so no prefix.
    NoPrefix {
        /// The prefix of the kind.
        expected: &'static str,
    },
    /// The prefix is another one: the ID names something else.
    OtherPrefix {
        /// The text before the last `_`, or as much of it as a prefix can have: at most 63 bytes.
        found: String,
        /// The prefix of the kind.
        expected: &'static str,
    },
    /// The prefix is right, and what follows it is no ID.
    Id {
        /// The prefix of the kind.
        prefix: &'static str,
        /// The fault of the digits. Its [position](ParseIdError::position) is that behind the
        /// prefix and its `_`.
        error: ParseIdError,
    },
}

impl ParseTypedIdError {
    pub(super) fn other_prefix(found: &str, expected: &'static str) -> Self {
        let ends = found.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = ends.take_while(|&end| end <= MAX_LENGTH).last();
        Self::OtherPrefix {
            found: found[..end.unwrap_or(0)].to_owned(),
            expected,
        }
    }
}

impl fmt::Display for ParseTypedIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPrefix { expected } => write!(
                f,
                "the text has no prefix: it must begin with \"{expected}{SEPARATOR}\""
            ),
            Self::OtherPrefix { found, expected } => write!(
                f,
                "the prefix is {found:?}, but {expected:?} is expected before the last \
                 {SEPARATOR:?}"
            ),
            Self::Id { prefix, error } => {
                write!(f, "after \"{prefix}{SEPARATOR}\": {error}")
            }
        }
    }
}

impl Error for ParseTypedIdError {}

//! What a facade refuses.

use std::error::Error;
use std::fmt;

/// The longest label, in bytes.
pub(super) const MAX_LABEL: usize = 64;

/// Why a [`Facade`](crate::Facade) can't be made.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FacadeError {
    /// The label has no characters.
    EmptyLabel,
    /// The label is longer than 64 bytes.
    LabelTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
}

impl fmt::Display for FacadeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyLabel => write!(
                f,
                "the label is empty; use 1 to {MAX_LABEL} bytes that name the keys, \
                 such as their table"
            ),
            Self::LabelTooLong { bytes } => write!(
                f,
                "the label has {bytes} bytes; use 1 to {MAX_LABEL} that name the keys, \
                 such as their table"
            ),
        }
    }
}

impl Error for FacadeError {}

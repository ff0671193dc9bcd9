//! What a facade refuses.

use std::error::Error;

use crate::describe::describe;

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

describe! {
    FacadeError;

    Self::EmptyLabel =>
        "the label is empty; use 1 to {MAX_LABEL} bytes that name the keys, such as their table";
    Self::LabelTooLong { bytes } =>
        "the label has {bytes} bytes; use 1 to {MAX_LABEL} that name the keys, such as their table";
}

impl Error for FacadeError {}

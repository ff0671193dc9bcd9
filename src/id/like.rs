//! The common trait of all types that hold an ID.

use std::fmt::Display;
use std::str::FromStr;

use super::Id;

/// A type that holds the 64 bits of an [`Id`] and nothing else.
///
/// What serializers and databases do with an [`Id`], they do with a
/// [`TypedId`](crate::TypedId) as well. Only types of this crate implement it.
pub trait IdLike: Copy + Display + FromStr<Err: Display> + Sealed {
    /// The text before the digits, without the `_` between them; empty if there are only digits.
    #[doc(hidden)]
    const PREFIX: &'static str;

    #[doc(hidden)]
    fn from_plain(id: Id) -> Self;

    #[doc(hidden)]
    fn as_plain(&self) -> &Id;
}

/// Keeps [`IdLike`] to the types of this crate.
pub trait Sealed {}

impl Sealed for Id {}

impl IdLike for Id {
    const PREFIX: &'static str = "";

    fn from_plain(id: Id) -> Self {
        id
    }

    fn as_plain(&self) -> &Id {
        self
    }
}

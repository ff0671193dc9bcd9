//! The encrypted number that a `Facade` shows outside.

use std::fmt;
use std::str::FromStr;

use crate::id::{Id, IdLike, ParseIdError, Sealed};

/// What a [`Facade`](crate::Facade) shows of an [`Id`] outside.
///
/// A type of its own, so that the two are not mixed up: only a facade turns one into the
/// other. Text and numbers are those of [`Id`]: canonical base32hex, 1 to 13 characters. With
/// the `serde` feature it is that text in human-readable formats and a `u64` in binary ones.
///
/// All 2<sup>64</sup> values are valid. The order is that of the numbers, and says nothing
/// about the keys.
///
/// # Examples
///
/// ```
/// use ringflake::PublicId;
///
/// let public: PublicId = "5qt3jqccvl6bi".parse()?;
/// assert_eq!(public.to_u64(), 6_734_134_693_336_881_522);
/// assert_eq!(public.to_string(), "5qt3jqccvl6bi");
/// # Ok::<(), ringflake::ParseIdError>(())
/// ```
///
/// An [`Id`] does not pass for one:
///
/// ```compile_fail,E0308
/// use ringflake::{Facade, Id, Secret};
///
/// let users = Facade::new(&Secret::from_bytes([7; 16]), "users")?;
/// users.open(Id::from_u64(1));
/// # Ok::<(), ringflake::FacadeError>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PublicId(Id);

impl PublicId {
    /// The public ID with this number. Every `u64` is one.
    #[inline]
    pub const fn from_u64(number: u64) -> Self {
        Self(Id::from_u64(number))
    }

    /// The number, from 0 to 2<sup>64</sup> - 1.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        self.0.to_u64()
    }

    /// The public ID with the same 64 bits as this signed number.
    #[inline]
    pub const fn from_i64(number: i64) -> Self {
        Self(Id::from_i64(number))
    }

    /// The signed number with the same 64 bits; negative for half of all public IDs.
    #[inline]
    pub const fn to_i64(self) -> i64 {
        self.0.to_i64()
    }
}

impl fmt::Debug for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicId({self})")
    }
}

impl fmt::Display for PublicId {
    /// Writes the canonical text, padded as a `str` is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for PublicId {
    type Err = ParseIdError;

    /// Reads the canonical text and nothing else.
    ///
    /// # Errors
    ///
    /// [`ParseIdError`], with the place of the fault.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        text.parse().map(Self)
    }
}

impl Sealed for PublicId {}

impl IdLike for PublicId {
    const PREFIX: &'static str = "";

    fn from_plain(id: Id) -> Self {
        Self(id)
    }

    fn as_plain(&self) -> &Id {
        &self.0
    }
}

//! The identifier that callers hold.

mod fixed_text;
mod like;
mod text;

use std::fmt;

pub use self::fixed_text::FixedText;
pub use self::like::IdLike;
pub(crate) use self::like::Sealed;
pub(crate) use self::text::MAX_DIGITS;
pub use self::text::ParseIdError;

/// A 64-bit identifier, encrypted or plain.
///
/// An `Id` is a number and nothing more: it does not know the layout or the
/// secret it was made with. All 2<sup>64</sup> values are valid. It orders as
/// an unsigned number, which follows time only if the ID is plain.
///
/// Its text form is canonical base32hex: the number in base 32, with the
/// digits `0-9a-v`, in lowercase, without padding and without leading zeros;
/// zero is `"0"`. That is 1 to 13 characters. [`Display`](fmt::Display) writes
/// it without allocating, and [`FromStr`](std::str::FromStr) accepts nothing
/// else, so two different texts are never the same ID. The alphabet is that of
/// [RFC 4648, section 7](https://www.rfc-editor.org/rfc/rfc4648#section-7),
/// used for a whole number as Randflake does. Texts do not sort as their
/// numbers do, because they differ in length; those of
/// [fixed width](Self::to_fixed_text) do.
///
/// [`LowerHex`](fmt::LowerHex), [`UpperHex`](fmt::UpperHex), [`Octal`](fmt::Octal)
/// and [`Binary`](fmt::Binary) write the number as they write a `u64`.
///
/// Zero is an ID as any other, since encryption leaves out no number. So an
/// `Option<Id>` has no unused number for `None`, and takes 16 bytes. There is no
/// smallest or largest ID either: a `BIGINT` orders them otherwise than a `u64`.
/// A map keyed by `Id` is asked with an `Id`, not with a `u64`: there is no `Borrow<u64>`.
///
/// With the `serde` feature, an `Id` is a string in human-readable formats,
/// which keeps it out of reach of JavaScript's 53-bit numbers, and a `u64` in
/// binary ones.
///
/// In databases it is a `BIGINT` with the same 64 bits, signed: half of those of 64 bits are
/// negative there. The features `sqlx`, `diesel`, `postgres-types` and `rusqlite` bind
/// and read it, alone, in an `Option` and in arrays.
///
/// # Examples
///
/// ```
/// use ringflake::Id;
///
/// let id = Id::from_u64(12_037_510_499_902_272_547);
/// assert_eq!(id.to_string(), "ae3ek0mnbbd13");
/// assert_eq!("ae3ek0mnbbd13".parse(), Ok(id));
/// assert_eq!(id.to_i64(), -6_409_233_573_807_279_069);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "diesel",
    derive(diesel::deserialize::FromSqlRow, diesel::expression::AsExpression),
    diesel(sql_type = diesel::sql_types::BigInt)
)]
#[doc(alias = "parse_str")]
#[doc(alias = "MAX")]
#[doc(alias = "MIN")]
#[repr(transparent)]
pub struct Id(u64);

impl Id {
    /// The ID with this number. Every `u64` is one.
    #[doc(alias = "new")]
    #[inline]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number, from 0 to 2<sup>64</sup> - 1.
    #[doc(alias = "as_u64")]
    #[inline]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// The ID with the same 64 bits as this signed number.
    ///
    /// For stores that have no unsigned 64-bit integer, as SQL's `BIGINT`.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Id;
    ///
    /// assert_eq!(Id::from_i64(-1), Id::from_u64(u64::MAX));
    /// ```
    #[inline]
    pub const fn from_i64(number: i64) -> Self {
        Self(number.cast_unsigned())
    }

    /// The signed number with the same 64 bits; negative for half of those of 64 bits.
    #[doc(alias = "as_i64")]
    #[inline]
    pub const fn to_i64(self) -> i64 {
        self.0.cast_signed()
    }

    /// The ID whose number these 8 little-endian bytes hold.
    #[inline]
    pub const fn from_le_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(bytes))
    }

    /// The number as 8 little-endian bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Id;
    ///
    /// let id = Id::from_u64(0x0102);
    /// assert_eq!(id.to_le_bytes(), [2, 1, 0, 0, 0, 0, 0, 0]);
    /// assert_eq!(Id::from_le_bytes(id.to_le_bytes()), id);
    /// ```
    #[inline]
    pub const fn to_le_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// The ID whose number these 8 big-endian bytes hold.
    #[doc(alias = "from_bytes")]
    #[inline]
    pub const fn from_be_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(bytes))
    }

    /// The number as 8 big-endian bytes, which sort as the number does.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Id;
    ///
    /// let id = Id::from_u64(0x0102);
    /// assert_eq!(id.to_be_bytes(), [0, 0, 0, 0, 0, 0, 1, 2]);
    /// assert_eq!(Id::from_be_bytes(id.to_be_bytes()), id);
    /// ```
    #[doc(alias = "to_bytes")]
    #[inline]
    pub const fn to_be_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// In place: for what is lent the number.
    #[cfg(feature = "diesel")]
    pub(crate) const fn as_i64(&self) -> &i64 {
        let number = std::ptr::from_ref(self).cast();
        // SAFETY: `Id` is a transparent `u64`, which has the layout of an `i64`, and
        // any 64 bits are one; the one borrow turns into the other.
        unsafe { &*number }
    }

    /// The same IDs as numbers, for code that fills them in.
    pub(crate) fn as_u64_slice_mut(ids: &mut [Self]) -> &mut [u64] {
        let numbers = std::ptr::from_mut(ids) as *mut [u64];
        // SAFETY: `Id` is a transparent `u64`, so layout and length are the
        // same; the one mutable borrow turns into the other.
        unsafe { &mut *numbers }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

impl From<u64> for Id {
    #[inline]
    fn from(number: u64) -> Self {
        Self::from_u64(number)
    }
}

impl From<i64> for Id {
    /// The ID with the same 64 bits.
    #[inline]
    fn from(number: i64) -> Self {
        Self::from_i64(number)
    }
}

impl From<Id> for u64 {
    #[inline]
    fn from(id: Id) -> Self {
        id.to_u64()
    }
}

impl From<Id> for i64 {
    /// The signed number with the same 64 bits.
    #[inline]
    fn from(id: Id) -> Self {
        id.to_i64()
    }
}

/// Writes the number in the radices of `std::fmt`, with its flags.
macro_rules! as_the_number {
    ($($radix:ident),*) => {$(
        impl fmt::$radix for Id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::$radix::fmt(&self.to_u64(), f)
            }
        }
    )*};
}

as_the_number!(Binary, LowerHex, Octal, UpperHex);

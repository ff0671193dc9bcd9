//! The text of one width, which sorts as the number does.

use std::fmt;
use std::ops::Deref;
use std::str;

use super::Id;
use super::text::{MAX_DIGITS, ParseIdError, all_digits, read_digits};

/// The text of an [`Id`] with leading zeros: 13 digits of base32hex.
///
/// It sorts, as bytes and as a `str`, as the number does. [`Id::to_fixed_text`]
/// makes it, without allocating, and [`Id::from_fixed_text`] reads it.
///
/// # Examples
///
/// ```
/// use ringflake::Id;
///
/// let (low, high) = (Id::from_u64(9), Id::from_u64(32));
/// assert_eq!(low.to_fixed_text().as_str(), "0000000000009");
/// assert_eq!(high.to_fixed_text().as_str(), "0000000000010");
/// assert!(low.to_fixed_text() < high.to_fixed_text());
/// // Texts without leading zeros sort otherwise.
/// assert!(low.to_string() > high.to_string());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FixedText([u8; MAX_DIGITS]);

impl FixedText {
    /// The 13 characters.
    #[inline]
    pub fn as_str(&self) -> &str {
        // Digits are ASCII: there is nothing to fall back to.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Id {
    /// The text with leading zeros, which sorts as the number does.
    ///
    /// Costs no allocation. [`from_fixed_text`](Self::from_fixed_text) reads it.
    /// [`FromStr`](str::FromStr) does not, except for texts of 13 characters without a leading
    /// zero.
    #[inline]
    pub fn to_fixed_text(self) -> FixedText {
        FixedText(all_digits(self.to_u64()))
    }

    /// Reads what [`to_fixed_text`](Self::to_fixed_text) writes: exactly 13 of the
    /// digits `0-9a-v`, the first of them at most `f`.
    ///
    /// # Errors
    ///
    /// [`ParseIdError`], with the place of the fault.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Id, ParseIdError};
    ///
    /// assert_eq!(Id::from_fixed_text("0000000000010"), Ok(Id::from_u64(32)));
    /// assert_eq!(
    ///     Id::from_fixed_text("10"),
    ///     Err(ParseIdError::TooShort { bytes: 2 }),
    /// );
    /// ```
    pub fn from_fixed_text(text: &str) -> Result<Self, ParseIdError> {
        let number = read_digits(text)?;
        if text.len() < MAX_DIGITS {
            return Err(ParseIdError::TooShort { bytes: text.len() });
        }
        Ok(Self::from_u64(number))
    }
}

impl Deref for FixedText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for FixedText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for FixedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for FixedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

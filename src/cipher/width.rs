//! How many bits encrypted IDs have.

use std::fmt;
use std::ops::RangeInclusive;

/// How many bits IDs have, once for all IDs under one secret.
///
/// | | name | IDs | cipher | layouts |
/// |---|---|---|---|---|
/// | [`Full`](Self::Full) | `full` | below 2<sup>64</sup> | [`Cipher::sparx64`](crate::Cipher::sparx64) | of more than 53 bits |
/// | [`Positive`](Self::Positive) | `positive` | below 2<sup>63</sup>: positive as signed numbers | [`Cipher::positive`](crate::Cipher::positive) | of 54 to 63 bits, as [`POSITIVE`](crate::Layout::POSITIVE) |
/// | [`JsSafe`](Self::JsSafe) | `js-safe` | below 2<sup>53</sup>: exact as numbers of JavaScript | `Cipher::js_safe`, with the feature `js-safe` | of up to 53 bits, as [`JS_SAFE`](crate::Layout::JS_SAFE) |
///
/// `Display` gives the name.
///
/// # One secret, one width
///
/// IDs of two widths under one secret come twice: half of the raws have the same ID in 63 bits
/// as in 64, and one of 53 bits may be any ID of the others. So stores and data directories
/// keep the width with the secret, in its [fingerprint](crate::lease::Fingerprint::of_width),
/// and a namespace is refused with another one, or a new namespace with a secret that another
/// has. For another width take a new secret and a new namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdWidth {
    /// 64 bits.
    #[default]
    Full,
    /// 63 bits: no ID is negative as a signed number.
    Positive,
    /// 53 bits: each ID is a number that JavaScript has exactly.
    JsSafe,
}

impl IdWidth {
    /// All of them, the widest first.
    pub const ALL: [Self; 3] = [Self::Full, Self::Positive, Self::JsSafe];

    /// The bits: 64, 63 or 53.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Full => 64,
            Self::Positive => 63,
            Self::JsSafe => 53,
        }
    }

    /// How many bits a layout may have whose IDs are encrypted to this width. No more than
    /// the IDs; and where they are exact as doubles, encrypted ones must be as well. Plain
    /// IDs have as many bits as the layout, and need no more than fit.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{IdWidth, Layout};
    ///
    /// let bits = Layout::JS_SAFE.total_bits();
    /// assert!(IdWidth::JsSafe.layout_bits().contains(&bits));
    /// assert!(!IdWidth::Positive.layout_bits().contains(&bits));
    /// assert_eq!(IdWidth::Positive.layout_bits(), 54..=63);
    /// ```
    pub const fn layout_bits(self) -> RangeInclusive<u32> {
        match self {
            Self::Full | Self::Positive => Self::JsSafe.bits() + 1..=self.bits(),
            Self::JsSafe => 1..=self.bits(),
        }
    }

    /// The name, in lowercase.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Positive => "positive",
            Self::JsSafe => "js-safe",
        }
    }

    /// The width with this name, in upper or lower case.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::IdWidth;
    ///
    /// assert_eq!(IdWidth::from_name("positive"), Some(IdWidth::Positive));
    /// assert_eq!(IdWidth::from_name("63"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|width| width.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for IdWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl IdWidth {
    /// Whether encrypted IDs of this width can be made.
    pub(crate) const fn check_available(self) -> Result<(), IdWidthUnavailable> {
        match self {
            Self::JsSafe if cfg!(not(feature = "js-safe")) => {
                Err(IdWidthUnavailable { width: self })
            }
            _ => Ok(()),
        }
    }
}

/// The cipher of a width was not built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdWidthUnavailable {
    /// The width asked for.
    pub width: IdWidth,
}

impl fmt::Display for IdWidthUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this program was built without encrypted IDs of {} bits: build it with the feature \
             `{}`, or use plain IDs",
            self.width.bits(),
            self.width
        )
    }
}

impl std::error::Error for IdWidthUnavailable {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::{Cipher, Secret};

    #[test]
    fn a_width_says_its_name_and_the_bits_of_its_layouts() {
        let said = IdWidth::ALL.map(|width| (width.to_string(), width.layout_bits()));
        let expected = [
            ("full", 54..=64),
            ("positive", 54..=63),
            ("js-safe", 1..=53),
        ];
        assert_eq!(said, expected.map(|(name, bits)| (name.to_owned(), bits)));
        assert_eq!(format!("{:>5}", IdWidth::Full), " full");
    }

    #[test]
    fn a_width_has_a_cipher_of_as_many_bits() {
        let secret = Secret::from_bytes([7; 16]);
        for width in IdWidth::ALL {
            assert_eq!(
                IdWidth::from_name(&width.name().to_uppercase()),
                Some(width)
            );
            match Cipher::of_width(&secret, width) {
                Ok(cipher) => {
                    assert_eq!(cipher.id_bits(), width.bits(), "{width}");
                    assert!(!cipher.is_plain());
                }
                Err(error) => {
                    assert!(width == IdWidth::JsSafe && cfg!(not(feature = "js-safe")));
                    let text = error.to_string();
                    assert!(
                        text.contains("53 bits") && text.contains("`js-safe`"),
                        "{text}"
                    );
                }
            }
        }
    }
}

//! The canonical base32hex form, written and read.

use std::error::Error;
use std::fmt;
use std::str::{self, FromStr};

use super::Id;

const RADIX: u32 = 32;
const ALPHABET: &[u8; RADIX as usize] = b"0123456789abcdefghijklmnopqrstuv";
const BITS_PER_DIGIT: u32 = RADIX.ilog2();
/// Of the largest number.
pub(crate) const MAX_DIGITS: usize = u64::BITS.div_ceil(BITS_PER_DIGIT) as usize;

impl fmt::Display for Id {
    /// Writes the canonical text, padded as a `str` is. Padding is not part of
    /// the ID and does not read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buffer = all_digits(self.to_u64());
        let zeros = buffer.iter().take_while(|&&digit| digit == b'0').count();
        // Zero keeps its last digit.
        let digits = &buffer[zeros.min(MAX_DIGITS - 1)..];
        f.pad(str::from_utf8(digits).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Id {
    type Err = ParseIdError;

    /// Reads the canonical text and nothing else.
    ///
    /// # Errors
    ///
    /// [`ParseIdError`], with the place of the fault, if [`Display`] would
    /// write no ID in this way.
    ///
    /// [`Display`]: fmt::Display
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        if text.is_empty() {
            return Err(ParseIdError::Empty);
        }
        if text.len() > 1 && text.starts_with('0') {
            return Err(ParseIdError::LeadingZero);
        }
        read_digits(text).map(Self::from_u64)
    }
}

impl TryFrom<&str> for Id {
    type Error = ParseIdError;

    /// As [`FromStr`] reads it.
    fn try_from(text: &str) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

impl TryFrom<String> for Id {
    type Error = ParseIdError;

    /// As [`FromStr`] reads it.
    fn try_from(text: String) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

/// The number with all of its digits, leading zeros too.
pub(super) fn all_digits(number: u64) -> [u8; MAX_DIGITS] {
    let mut digits = [b'0'; MAX_DIGITS];
    let mut rest = number;
    for slot in digits.iter_mut().rev() {
        *slot = ALPHABET[(rest % u64::from(RADIX)) as usize];
        rest >>= BITS_PER_DIGIT;
    }
    digits
}

/// The number that at most [`MAX_DIGITS`] digits stand for.
pub(super) fn read_digits(text: &str) -> Result<u64, ParseIdError> {
    let mut number = 0_u64;
    let mut overflow = false;
    for (position, character) in text.char_indices() {
        if position == MAX_DIGITS {
            return Err(ParseIdError::TooLong { bytes: text.len() });
        }
        let Some(digit) = digit_value(character) else {
            return Err(ParseIdError::InvalidCharacter {
                position,
                character,
            });
        };
        overflow |= number.leading_zeros() < BITS_PER_DIGIT;
        number = number << BITS_PER_DIGIT | digit;
    }
    if overflow {
        return Err(ParseIdError::Overflow);
    }
    Ok(number)
}

fn digit_value(character: char) -> Option<u64> {
    match character {
        '0'..='9' | 'a'..='v' => character.to_digit(RADIX).map(u64::from),
        _ => None,
    }
}

/// Why a text is not an [`Id`] in canonical base32hex.
///
/// # Examples
///
/// ```
/// use ringflake::{Id, ParseIdError};
///
/// let error = "ae3ek0mnBbd13".parse::<Id>().unwrap_err();
/// assert_eq!(error.position(), 8);
/// assert_eq!(
///     error.to_string(),
///     "invalid character 'B' at position 8: IDs are written in lowercase, use 'b'",
/// );
/// assert_eq!("".parse::<Id>(), Err(ParseIdError::Empty));
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseIdError {
    /// The text has no characters.
    Empty,
    /// A character is not one of `0-9a-v`.
    InvalidCharacter {
        /// Its place: bytes before it, 0 to 12.
        position: usize,
        /// The character itself.
        character: char,
    },
    /// The text is longer than `"0"` and begins with `0`.
    LeadingZero,
    /// The text goes on after 13 characters, the most that an ID has.
    TooLong {
        /// Length of the text in bytes.
        bytes: usize,
    },
    /// The text ends before its 13th character, and is to be of
    /// [fixed width](Id::from_fixed_text).
    TooShort {
        /// Length of the text in bytes.
        bytes: usize,
    },
    /// The 13 characters stand for a number above 2<sup>64</sup> - 1: the
    /// first is above `f`.
    Overflow,
}

impl ParseIdError {
    /// Where the fault is: the number of bytes before it.
    pub const fn position(&self) -> usize {
        match *self {
            Self::Empty | Self::LeadingZero | Self::Overflow => 0,
            Self::InvalidCharacter { position, .. } => position,
            Self::TooLong { .. } => MAX_DIGITS,
            Self::TooShort { bytes } => bytes,
        }
    }
}

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position();
        match *self {
            Self::Empty => write!(
                f,
                "the text is empty: an ID has 1 to {MAX_DIGITS} characters"
            ),
            Self::InvalidCharacter { character, .. } => {
                write!(
                    f,
                    "invalid character {character:?} at position {position}: "
                )?;
                match character.to_ascii_lowercase() {
                    lower if lower != character && digit_value(lower).is_some() => {
                        write!(f, "IDs are written in lowercase, use {lower:?}")
                    }
                    _ => f.write_str("an ID has only 0-9 and a-v"),
                }
            }
            Self::LeadingZero => write!(
                f,
                "leading zero at position {position}: only the ID \"0\" begins with one"
            ),
            Self::TooLong { bytes } => write!(
                f,
                "{bytes} bytes are too long, from position {position} on: \
                 an ID has 1 to {MAX_DIGITS} characters"
            ),
            Self::TooShort { bytes } => write!(
                f,
                "the text ends at position {bytes}: \
                 an ID of fixed width has {MAX_DIGITS} characters, with leading zeros"
            ),
            Self::Overflow => write!(
                f,
                "the number is above {}: the first of {MAX_DIGITS} characters, at position {position}, \
                 must be at most 'f'",
                u64::MAX
            ),
        }
    }
}

impl Error for ParseIdError {}

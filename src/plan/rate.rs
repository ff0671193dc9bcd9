//! How many IDs a second, as people write it.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// A rate in whole IDs a second, from 1 to [`Rate::MAX`].
///
/// Written with a unit, so that nobody has to count zeros: `800/s`, `50k`,
/// `1.5M`, `2G/s`.
///
/// # Examples
///
/// ```
/// use ringflake::plan::Rate;
///
/// let rate: Rate = "1.5M".parse()?;
/// assert_eq!(rate.per_second(), 1_500_000);
/// assert_eq!(rate.to_string(), "1.5M/s");
/// assert!("1500000".parse::<Rate>().is_err());
/// # Ok::<(), ringflake::plan::RateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// The units, the largest first.
const UNITS: [(char, u64); 3] = [('G', 1_000_000_000), ('M', 1_000_000), ('k', 1_000)];

impl Rate {
    /// The highest rate: 1,000 G/s, far beyond what any machine makes.
    pub const MAX: Self = Self(1_000_000_000_000);

    /// A rate of so many IDs a second.
    ///
    /// # Errors
    ///
    /// [`RateError::OutOfRange`] if it is 0 or above [`Rate::MAX`].
    pub fn new(per_second: u64) -> Result<Self, RateError> {
        if (1..=Self::MAX.0).contains(&per_second) {
            Ok(Self(per_second))
        } else {
            Err(RateError::OutOfRange {
                text: format!("{per_second}/s"),
            })
        }
    }

    /// IDs a second.
    pub const fn per_second(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Rate {
    /// Writes the largest unit that the rate reaches, and no digit less than it
    /// has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.into_iter().find(|&(_, size)| self.0 >= size) {
            // No rate has more than the 15 digits that an `f64` gives back as they were.
            Some((unit, size)) => write!(f, "{}{unit}/s", self.0 as f64 / size as f64),
            None => write!(f, "{}/s", self.0),
        }
    }
}

impl FromStr for Rate {
    type Err = RateError;

    /// Reads a number, with or without a fraction, and its unit: `k`, `M` or
    /// `G`, or `/s`, or both. Rounds down to whole IDs a second.
    ///
    /// # Errors
    ///
    /// [`RateError`], with the text that is wrong.
    fn from_str(text: &str) -> Result<Self, RateError> {
        let number = text.strip_suffix("/s").unwrap_or(text);
        let of_size = |(unit, size)| Some((number.strip_suffix::<char>(unit)?, size));
        let (digits, size) = UNITS.into_iter().find_map(of_size).unwrap_or((number, 1));
        let Some(per_second) = times(digits, size) else {
            return Err(RateError::NotARate { text: text.into() });
        };
        if digits == text {
            return Err(RateError::NoUnit { text: text.into() });
        }
        Self::new(per_second).map_err(|_| RateError::OutOfRange { text: text.into() })
    }
}

/// The decimal number `digits` times `size`, which is at most 10⁹, rounded down;
/// `u64::MAX` if it is more than that, and none if it is no number.
fn times(digits: &str, size: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole = whole.parse().unwrap_or(u64::MAX).saturating_mul(size);
    let billionths: u64 = format!("{fraction:0<9.9}").parse().ok()?;
    Some(whole.saturating_add(billionths * size / 1_000_000_000))
}

/// Why a text or a number is no [`Rate`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RateError {
    /// A number without a unit, which may be a thousand times what was meant.
    NoUnit {
        /// The text.
        text: String,
    },
    /// No number with a unit.
    NotARate {
        /// The text.
        text: String,
    },
    /// Less than one ID a second, or more than [`Rate::MAX`].
    OutOfRange {
        /// The rate as it was given.
        text: String,
    },
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUnit { text } => write!(
                f,
                "the rate {text} is without a unit: write {text}/s, {text}k or {text}M"
            ),
            Self::NotARate { text } => write!(
                f,
                "{text:?} is no rate: write a number and its unit, as in 800/s, 50k, 1.5M or 2G"
            ),
            Self::OutOfRange { text } => write!(
                f,
                "a rate of {text} can't be had: choose 1/s to {}",
                Rate::MAX
            ),
        }
    }
}

impl Error for RateError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<u64, RateError> {
        text.parse().map(Rate::per_second)
    }

    #[test]
    fn a_rate_has_a_unit() {
        for (text, per_second) in [
            ("800/s", 800),
            ("50k", 50_000),
            ("2M", 2_000_000),
            ("1.5M/s", 1_500_000),
            ("0.25k", 250),
            ("1000G", 1_000_000_000_000),
            ("1.0009k", 1000),
            ("007/s", 7),
        ] {
            assert_eq!(parse(text), Ok(per_second), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let text = String::from;
        assert_eq!(parse("50"), Err(RateError::NoUnit { text: text("50") }));
        let huge = format!("{}9G", u64::MAX);
        for wrong in ["0/s", "0k", "0.0M", "1001G", "0.5/s", &huge] {
            let error = Err(RateError::OutOfRange { text: text(wrong) });
            assert_eq!(parse(wrong), error);
        }
        for wrong in [
            "", "k", "/s", "M/s", "-5k", "+5k", "5 k", "5m", "5K", "5kM", "5k/S", "1e6/s", ".5M",
            "5.M", "1.2.3k", "5k/s/s", "١k",
        ] {
            let error = Err(RateError::NotARate { text: text(wrong) });
            assert_eq!(parse(wrong), error);
        }
        for (wrong, advice) in [
            ("50", "is without a unit: write 50/s, 50k or 50M"),
            ("0k", "choose 1/s to 1000G/s"),
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains(advice), "{error}");
        }
    }
}

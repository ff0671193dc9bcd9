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
        let Some((unit, size)) = UNITS.into_iter().find(|&(_, size)| self.0 >= size) else {
            return write!(f, "{}/s", self.0);
        };
        let (whole, rest) = (self.0 / size, self.0 % size);
        if rest == 0 {
            return write!(f, "{whole}{unit}/s");
        }
        let digits = size.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        write!(f, "{whole}.{}{unit}/s", fraction.trim_end_matches('0'))
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
        let unit = UNITS.into_iter().find_map(|(unit, size)| {
            let digits = number.strip_suffix(unit)?;
            Some((digits, size))
        });
        let has_unit = unit.is_some() || number.len() < text.len();
        let (digits, size) = unit.unwrap_or((number, 1));
        let Some(per_second) = times(digits, size) else {
            return Err(RateError::NotARate { text: text.into() });
        };
        if !has_unit {
            return Err(RateError::NoUnit { text: text.into() });
        }
        Self::new(per_second).map_err(|_| RateError::OutOfRange { text: text.into() })
    }
}

/// The decimal number `digits` times `size`, rounded down; `u64::MAX` if it is
/// more than that, and none if it is no number.
fn times(digits: &str, size: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole = whole.parse().unwrap_or(u64::MAX).saturating_mul(size);
    let mut place = size;
    let mut part = 0;
    for digit in fraction.bytes() {
        place /= 10;
        part += u64::from(digit - b'0') * place;
    }
    Some(whole.saturating_add(part))
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
    use proptest::prelude::*;

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
        for wrong in [
            "0/s",
            "0k",
            "0.0M",
            "1001G",
            "0.5/s",
            "99999999999999999999G",
        ] {
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
        let advice = parse("50").unwrap_err().to_string();
        assert!(
            advice.contains("without a unit") && advice.contains("50k"),
            "{advice}"
        );
        let advice = parse("0k").unwrap_err().to_string();
        assert!(advice.contains("1/s to 1000G/s"), "{advice}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(per_second in 1..=Rate::MAX.0) {
            let rate = Rate::new(per_second).unwrap();
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn round_rates_too(digits in 1..1000_u64, zeros in 0..9_u32) {
            let rate = Rate::new(digits * 10_u64.pow(zeros)).unwrap();
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,20}") {
            let _ = text.parse::<Rate>();
        }
    }
}

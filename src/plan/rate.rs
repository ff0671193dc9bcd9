//! How many IDs a second, as people write it, and over a span of time.

use std::fmt;
use std::str::FromStr;

use super::LoadError;

/// A rate in whole IDs a second, from 1 to [`Rate::MAX`].
///
/// Written as a number with an optional unit: `800`, `800/s`, `50k`, `1.5M`, `2G/s`.
///
/// # Examples
///
/// ```
/// use ringflake::plan::Rate;
///
/// let rate: Rate = "1.5M".parse()?;
/// assert_eq!(rate.per_second(), 1_500_000);
/// assert_eq!(rate.to_string(), "1.5M/s");
/// assert_eq!("1500000".parse(), Ok(rate));
/// # Ok::<(), ringflake::plan::LoadError>(())
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
    /// If it is 0 or above [`Rate::MAX`].
    pub fn new(per_second: u64) -> Result<Self, LoadError> {
        Self::checked(per_second, &format_args!("{per_second}/s"))
    }

    fn checked(per_second: u64, text: &dyn fmt::Display) -> Result<Self, LoadError> {
        if (1..=Self::MAX.0).contains(&per_second) {
            return Ok(Self(per_second));
        }
        let message = format!(
            "a rate of {text} is out of range: choose 1/s to {}",
            Self::MAX
        );
        Err(LoadError(message))
    }

    /// A rate that is known to be in range.
    pub(super) const fn of(per_second: u64) -> Self {
        Self(per_second)
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
        // No rate has more than the 15 digits that an `f64` gives back as they were.
        write!(f, "{}/s", short(self.0 as f64))
    }
}

/// A count in the largest unit that it reaches.
pub(super) fn short(count: f64) -> String {
    match UNITS.into_iter().find(|&(_, size)| count >= size as f64) {
        Some((unit, size)) => format!("{}{unit}", count / size as f64),
        None => format!("{count}"),
    }
}

impl FromStr for Rate {
    type Err = LoadError;

    /// Reads a number, with or without a fraction, and an optional unit: `k`, `M` or `G`,
    /// or `/s`, or both. Rounds down to whole IDs a second.
    fn from_str(text: &str) -> Result<Self, LoadError> {
        let number = text.strip_suffix("/s").unwrap_or(text);
        let of_size = |(unit, size)| Some((number.strip_suffix::<char>(unit)?, size));
        let (digits, size) = UNITS.into_iter().find_map(of_size).unwrap_or((number, 1));
        let Some(per_second) = times(digits, size) else {
            return Err(LoadError(format!(
                "{text:?} is not a rate: write a number and an optional unit, as in 800, 50k, \
                 1.5M/s or 2G"
            )));
        };
        Self::checked(per_second, &text)
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

/// A span of a load over which its rate stays the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Piece {
    /// Its beginning, in seconds.
    pub from: f64,
    /// Its end, in seconds; infinite for a steady load.
    pub until: f64,
    /// IDs a second.
    pub rate: f64,
}

impl Piece {
    pub(super) fn new(from: f64, until: f64, rate: Rate) -> Self {
        let rate = rate.per_second() as f64;
        Self { from, until, rate }
    }

    /// Its length, in seconds.
    pub fn seconds(&self) -> f64 {
        self.until - self.from
    }

    /// How many IDs are asked for in it.
    pub fn ids(&self) -> f64 {
        self.rate * self.seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<u64, String> {
        text.parse()
            .map(Rate::per_second)
            .map_err(|error: LoadError| error.to_string())
    }

    #[test]
    fn a_rate_is_a_number_with_an_optional_unit() {
        for (text, per_second) in [
            ("50000", 50_000),
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
    fn errors_quote_the_text_and_say_what_to_write() {
        let huge = format!("{}9G", u64::MAX);
        for wrong in ["0", "0/s", "0k", "0.0M", "1001G", "0.5/s", &huge] {
            let error = parse(wrong).unwrap_err();
            assert!(
                error.contains(wrong) && error.ends_with("choose 1/s to 1000G/s"),
                "{error}"
            );
        }
        for wrong in [
            "", "k", "/s", "M/s", "-5k", "+5k", "5 k", "5m", "5K", "5kM", "5k/S", "1e6/s", ".5M",
            "5.M", "1.2.3k", "5k/s/s", "١k",
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(
                error.starts_with(&format!("{wrong:?} is not a rate")),
                "{error}"
            );
        }
    }
}

//! A burst that comes back.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::LoadError;
use super::rate::Rate;
use super::trace::whole;

/// Another rate at the start of each period: `20M:100ms/1s` is a rate of 20 million IDs a
/// second for the first 100 ms of every second, so 2 million IDs in each burst.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringflake::plan::Burst;
///
/// let burst: Burst = "20M:100ms/1s".parse()?;
/// assert_eq!(burst.rate().per_second(), 20_000_000);
/// assert_eq!(burst.length(), Duration::from_millis(100));
/// assert_eq!(burst.period(), Duration::from_secs(1));
/// assert_eq!(burst.to_string(), "20M:100ms/1s");
/// # Ok::<(), ringflake::plan::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Burst {
    rate: Rate,
    length: Duration,
    period: Duration,
}

impl Burst {
    /// The longest period: a year of 365 days.
    pub const MAX_PERIOD: Duration = Duration::from_secs(365 * 86_400);

    /// A burst of `rate` for `length`, once in each `period`.
    ///
    /// # Errors
    ///
    /// Unless `length` is more than zero and less than `period`, and `period` at most
    /// [`Burst::MAX_PERIOD`].
    pub fn new(rate: Rate, length: Duration, period: Duration) -> Result<Self, LoadError> {
        if length.is_zero() || length >= period || period > Self::MAX_PERIOD {
            return Err(LoadError(format!(
                "a burst of {} every {} is out of range: choose a length above 0 and shorter than its \
                 period, and a period of at most {}",
                Span(length),
                Span(period),
                Span(Self::MAX_PERIOD)
            )));
        }
        Ok(Self {
            rate,
            length,
            period,
        })
    }

    /// IDs a second while it lasts.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// How long it lasts.
    pub const fn length(&self) -> Duration {
        self.length
    }

    /// The time from the beginning of one to the beginning of the next.
    pub const fn period(&self) -> Duration {
        self.period
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.rate.to_string();
        let rate = rate.trim_end_matches("/s");
        write!(f, "{rate}:{}/{}", Span(self.length), Span(self.period))
    }
}

impl FromStr for Burst {
    type Err = LoadError;

    /// Reads `rate:length/period`, the two lengths of time as a whole number
    /// with one of the units `ns`, `us`, `ms`, `s`, `min` and `h`.
    fn from_str(text: &str) -> Result<Self, LoadError> {
        let parts = || {
            let (rate, spans) = text.split_once(':')?;
            let (length, period) = spans.split_once('/')?;
            Some((rate, parse_span(length)?, parse_span(period)?))
        };
        let Some((rate, length, period)) = parts() else {
            return Err(LoadError(format!(
                "{text:?} is not a burst: write rate:length/period, as in 20M:100ms/1s for 20 \
                 million IDs a second in the first 100 ms of every second; a length is a whole \
                 number above 0 and its unit, from ns to h"
            )));
        };
        Self::new(rate.parse()?, length, period)
    }
}

/// The units of a length of time in nanoseconds. `s` stands after those that end in it.
const UNITS: [(&str, u64); 6] = [
    ("min", 60_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The length of time that `text` is, a whole number above 0 and one unit.
fn parse_span(text: &str) -> Option<Duration> {
    let in_unit = |(unit, nanos)| Some((text.strip_suffix::<&str>(unit)?, nanos));
    let (digits, nanos) = UNITS.into_iter().find_map(in_unit)?;
    let nanos = whole(digits)?.checked_mul(nanos)?;
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

/// Writes a length of time in the largest unit of which it is a multiple.
pub(super) struct Span(pub(super) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let fitting = UNITS
            .into_iter()
            .filter(|&(_, unit)| nanos.is_multiple_of(u128::from(unit)));
        let (unit, size) = fitting.max_by_key(|&(_, size)| size).unwrap_or(("ns", 1));
        write!(f, "{}{unit}", nanos / u128::from(size))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::Load;

    #[test]
    fn errors_say_what_to_write() {
        let form = "|20M|20M:100ms|100ms/1s|20M/100ms:1s|1M:1ms/|1M:1ms/1s/1s";
        let spans = "|s|100|0ms|-1s|+1s|1.5s|1 s|1m|1s1ms|184467440737095516150ns|5124096h";
        let wrong_form = form.split('|').map(str::to_owned);
        let wrong_spans = spans.split('|').map(|span| format!("1M:{span}/9999h"));
        for text in wrong_form.chain(wrong_spans) {
            let error = text.parse::<Burst>().unwrap_err().to_string();
            assert!(error.contains("rate:length/period"), "{text}: {error}");
        }
        for (text, advice) in [
            ("0k:100ms/1s", "a rate of 0k is out of range"),
            ("1M:2s/1s", "shorter than its period"),
            ("1M:1000ms/1s", "shorter than its period"),
            ("1M:1s/8761h", "at most 8760h"),
        ] {
            let error = text.parse::<Burst>().unwrap_err().to_string();
            assert!(error.contains(advice), "{text}: {error}");
        }
        let rate = Rate::new(1).unwrap();
        let none = Burst::new(rate, Duration::ZERO, Duration::from_secs(1));
        assert!(none.unwrap_err().to_string().contains("above 0"));
    }

    #[test]
    fn a_burst_is_a_rate_a_length_and_a_period() {
        let (secs, nanos) = (Duration::from_secs, Duration::from_nanos);
        for (text, rate, length, period) in [
            ("20M:100ms/1s", 20_000_000, nanos(100_000_000), secs(1)),
            ("20:5min/1h", 20, secs(300), secs(3600)),
            ("1.5G:7ns/9us", 1_500_000_000, nanos(7), nanos(9000)),
            ("1k:1s/8760h", 1000, secs(1), Burst::MAX_PERIOD),
        ] {
            let burst: Burst = text.parse().unwrap();
            assert_eq!(burst.rate().per_second(), rate, "{text}");
            assert_eq!((burst.length(), burst.period()), (length, period), "{text}");
            assert_eq!(burst.to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(
            text in "(.{0,20}|[0-9kM.:/msnuh ]{0,20}|[0-9,.#e\\- \n]{0,60})",
        ) {
            let _ = (text.parse::<Rate>(), text.parse::<Burst>(), Load::trace(&text));
        }
    }
}

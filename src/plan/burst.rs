//! A burst that comes back.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::LoadError;
use super::rate::Rate;
use super::span::{self, Span};

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
            Some((rate, span::parse(length)?, span::parse(period)?))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::Load;

    #[test]
    fn errors_say_what_to_write() {
        let form = [
            "",
            "20M",
            "20M:100ms",
            "100ms/1s",
            "20M/100ms:1s",
            "1M:100/1s",
            "1M:0ms/1s",
            "1M:1ms/",
            "1M:1ms/1s/1s",
        ];
        for (advice, wrong) in [
            ("rate:length/period", &form[..]),
            ("a rate of 0k is out of range", &["0k:100ms/1s"]),
            ("shorter than its period", &["1M:2s/1s", "1M:1000ms/1s"]),
            ("at most 8760h", &["1M:1s/8761h"]),
        ] {
            for text in wrong {
                let error = text.parse::<Burst>().unwrap_err().to_string();
                assert!(error.contains(advice), "{text}: {error}");
            }
        }
        let rate = Rate::new(1).unwrap();
        let none = Burst::new(rate, Duration::ZERO, Duration::from_secs(1));
        assert!(none.unwrap_err().to_string().contains("above 0"));
    }

    #[test]
    fn a_burst_is_a_rate_a_length_and_a_period() {
        let burst: Burst = "20M:100ms/1s".parse().unwrap();
        assert_eq!(burst.rate().per_second(), 20_000_000);
        assert_eq!(burst.length(), Duration::from_millis(100));
        assert_eq!(burst.period(), Duration::from_secs(1));
        for text in ["20M:100ms/1s", "20:5min/1h", "1.5G:7ns/9us"] {
            assert_eq!(text.parse::<Burst>().unwrap().to_string(), text);
        }
        let year = Burst::MAX_PERIOD;
        assert_eq!(year, Duration::from_secs(31_536_000));
        assert!(Burst::new(burst.rate(), Duration::from_secs(1), year).is_ok());
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

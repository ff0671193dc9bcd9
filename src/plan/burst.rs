//! A burst that comes back.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::rate::{Rate, RateError};
use super::span::{self, Span};

/// A higher rate for a while, once in each period: `20M:100ms/1s` is 20 million
/// IDs a second for the first 100 ms of every second.
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
/// # Ok::<(), ringflake::plan::BurstError>(())
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
    /// [`BurstError::Spans`] unless `length` is more than zero and less than
    /// `period`, and `period` at most [`Burst::MAX_PERIOD`].
    pub fn new(rate: Rate, length: Duration, period: Duration) -> Result<Self, BurstError> {
        if length.is_zero() || length >= period || period > Self::MAX_PERIOD {
            return Err(BurstError::Spans { length, period });
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
        // The unit of time is understood, where there is one of size.
        let short = rate
            .strip_suffix("/s")
            .filter(|it| it.ends_with(char::is_alphabetic));
        let rate = short.unwrap_or(&rate);
        write!(f, "{rate}:{}/{}", Span(self.length), Span(self.period))
    }
}

impl FromStr for Burst {
    type Err = BurstError;

    /// Reads `rate:length/period`, the two lengths of time as a whole number
    /// with one of the units `ns`, `us`, `ms`, `s`, `min` and `h`.
    ///
    /// # Errors
    ///
    /// [`BurstError`], with the part that is wrong.
    fn from_str(text: &str) -> Result<Self, BurstError> {
        let form = || BurstError::Form { text: text.into() };
        let (rate, spans) = text.split_once(':').ok_or_else(form)?;
        let (length, period) = spans.split_once('/').ok_or_else(form)?;
        let span =
            |text: &str| span::parse(text).ok_or_else(|| BurstError::Span { text: text.into() });
        let rate = rate.parse().map_err(BurstError::Rate)?;
        Self::new(rate, span(length)?, span(period)?)
    }
}

/// Why a text or a number is no [`Burst`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BurstError {
    /// Not the form `rate:length/period`.
    Form {
        /// The text.
        text: String,
    },
    /// The rate is none.
    Rate(RateError),
    /// The length or the period is none.
    Span {
        /// The part of the text.
        text: String,
    },
    /// A burst that is over at once, never, or hardly ever comes back.
    Spans {
        /// How long it should last.
        length: Duration,
        /// How often it should come.
        period: Duration,
    },
}

impl fmt::Display for BurstError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { text } => write!(
                f,
                "{text:?} is no burst: write rate:length/period, as in 20M:100ms/1s for \
                 20 million IDs a second in the first 100 ms of every second"
            ),
            Self::Rate(error) => error.fmt(f),
            Self::Span { text } => write!(
                f,
                "{text:?} is no length of time: write a whole number above 0 and its unit, \
                 as in 250us, 100ms, 1s, 5min or 24h"
            ),
            Self::Spans { length, period } if length >= period => write!(
                f,
                "a burst of {} is not over within its period of {}: choose a shorter burst \
                 or a longer period, or give its rate as the steady one",
                Span(*length),
                Span(*period)
            ),
            Self::Spans { length, period } => write!(
                f,
                "a burst of {} every {} can't be had: choose a length above 0, \
                 and a period of at most {}",
                Span(*length),
                Span(*period),
                Span(Burst::MAX_PERIOD)
            ),
        }
    }
}

impl Error for BurstError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::Trace;

    #[test]
    fn what_is_wrong_is_said() {
        let form = ["", "20M", "20M:100ms", "100ms/1s", "20M/100ms:1s"];
        let span = ["1M:100/1s", "1M:0ms/1s", "1M:1ms/", "1M:1ms/1s/1s"];
        for (advice, wrong) in [
            ("rate:length/period", &form[..]),
            ("without a unit", &["20:100ms/1s"]),
            ("a rate of 0k can't be had", &["0k:100ms/1s"]),
            ("no length of time", &span),
            ("not over within its period", &["1M:2s/1s", "1M:1000ms/1s"]),
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
        // Without a unit of size that of time stays.
        for text in ["20M:100ms/1s", "20/s:5min/1h", "1.5G:7ns/9us"] {
            assert_eq!(text.parse::<Burst>().unwrap().to_string(), text);
        }
        let year = Burst::MAX_PERIOD;
        assert_eq!(year, Duration::from_secs(31_536_000));
        assert!(Burst::new(burst.rate(), Duration::from_secs(1), year).is_ok());
    }

    fn any_rate() -> impl Strategy<Value = Rate> {
        let round = |(digits, zeros)| digits * 10_u64.pow(zeros);
        let round = (1..1000_u64, 0..9_u32).prop_map(round);
        prop_oneof![1..=Rate::MAX.per_second(), round].prop_map(|it| Rate::new(it).unwrap())
    }

    fn any_span() -> impl Strategy<Value = Duration> {
        let unit = prop::sample::select(&["ns", "us", "ms", "s", "min", "h"][..]);
        let round = |(count, unit)| span::parse(&format!("{count}{unit}")).unwrap();
        let round = (1..1000_u64, unit).prop_map(round);
        prop_oneof![(1..10_u64.pow(16)).prop_map(Duration::from_nanos), round]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(
            rate in any_rate(),
            length in any_span(),
            more in any_span(),
        ) {
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            let burst = Burst::new(rate, length, length + more).unwrap();
            prop_assert_eq!(burst.to_string().parse(), Ok(burst));
        }

        #[test]
        fn no_text_is_too_strange(
            text in "(.{0,20}|[0-9kM.:/msnuh ]{0,20}|[0-9,.#e\\- \n]{0,60})",
        ) {
            let _ = (text.parse::<Rate>(), text.parse::<Burst>(), text.parse::<Trace>());
        }
    }
}

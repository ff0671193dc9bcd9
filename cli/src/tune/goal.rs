//! What is asked of the latency: `p99.99=2us`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::args;
use crate::units;

/// A share of all takes, and the longest that they may last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Goal {
    /// As it was written: `p99.99`, or `max`.
    pub(super) name: String,
    /// Above 0, at the most 1.
    pub(super) share: f64,
    pub(super) limit: Duration,
}

impl FromStr for Goal {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((name, limit)) = text.split_once('=') else {
            bail!("give a percentile and a time, such as p99.99=2us, or max=1ms");
        };
        let share = match name.strip_prefix('p') {
            _ if name == "max" => 1.0,
            Some(percent) => share(percent).with_context(|| {
                format!(
                    "{name} is no percentile: give p and a number between 0 and 100, such as \
                     p99.99, or max"
                )
            })?,
            None => bail!("{name:?} is no percentile: give p and a number, such as p99.99, or max"),
        };
        let limit = args::time(limit)?;
        if limit.is_zero() {
            bail!("no take lasts no time: give more than 0, such as p99.99=2us");
        }
        Ok(Self {
            name: name.to_owned(),
            share,
            limit,
        })
    }
}

/// The share that a percentage is, which lies between 0 and 100.
fn share(percent: &str) -> Option<f64> {
    let is_plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let value: f64 = percent.parse().ok()?;
    let is_share = percent.bytes().all(is_plain) && value > 0.0 && value < 100.0;
    is_share.then_some(value / 100.0)
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = units::time(self.limit.as_secs_f64());
        write!(f, "{} of at most {limit}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_goal_is_a_percentile_and_a_time() {
        let goal: Goal = "p99.99=2us".parse().unwrap();
        assert_eq!(goal.to_string(), "p99.99 of at most 2 us");
        assert_eq!("max=1ms".parse::<Goal>().unwrap().share, 1.0);
    }

    #[test]
    fn what_is_none_is_refused_with_an_example() {
        for wrong in [
            "", "2us", "p99", "p99=", "p99=2", "p0=2us", "p100=2us", "p=2us", "p-1=2us",
            "pinf=2us", "p1e1=2us", "99=2us", "mean=2us",
        ] {
            assert!(wrong.parse::<Goal>().is_err(), "{wrong}");
        }
        let zero = "p99=0s".parse::<Goal>().unwrap_err();
        assert!(zero.to_string().contains("p99.99=2us"), "{zero}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = text.parse::<Goal>();
        }

        #[test]
        fn what_is_written_is_read(percent in 1..99_999_u32, micros in 1..1_000_000_u64) {
            let percent = f64::from(percent) / 1000.0;
            let goal: Goal = format!("p{percent}={micros}us").parse().unwrap();
            prop_assert!((goal.share * 100.0 - percent).abs() < 1e-9);
            prop_assert_eq!(goal.limit, Duration::from_micros(micros));
        }
    }
}

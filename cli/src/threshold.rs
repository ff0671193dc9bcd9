//! Levels at which a ring is filled, as they are written: `75%`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result};
use ringflake::ThresholdFill;

/// When a producer is woken: a share of the capacity in percent, 1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Threshold(pub(crate) u32);

impl Threshold {
    pub(crate) fn fill(self) -> ThresholdFill {
        ThresholdFill::percent(self.0)
    }
}

impl FromStr for Threshold {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.strip_suffix('%').map(str::trim_end);
        let percent = digits.and_then(|digits| digits.parse().ok());
        let percent = percent.filter(|percent| (1..=100).contains(percent));
        let percent = percent.context("give a share of the capacity from 1 to 100 %, such as 75%");
        percent.map(Self)
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_percentage() {
        for text in ["75%", "75 %"] {
            assert_eq!(text.parse::<Threshold>().unwrap(), Threshold(75));
        }
        for wrong in [
            "", "%", "75", "0%", "101%", "-5%", "2.5%", "half", "50%%", "off",
        ] {
            let error = wrong.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains("1 to 100 %, such as "), "{wrong}: {error}");
        }
    }
}

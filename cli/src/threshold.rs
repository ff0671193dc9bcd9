//! When a ring is filled, as it is written: `75%`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
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
        let percent = text.strip_suffix('%').map(|text| text.trim_end().parse());
        match percent {
            Some(Ok(percent @ 1..=100)) => Ok(Self(percent)),
            _ => bail!("give a share of the capacity from 1 to 100 %, such as 75%"),
        }
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
    fn a_threshold_is_a_percentage() {
        let parse = |text: &str| text.parse::<Threshold>();
        for text in ["75%", "75 %"] {
            assert_eq!(parse(text).unwrap(), Threshold(75));
        }
        for wrong in [
            "", "%", "75", "0%", "101%", "-5%", "2.5%", "half", "50%%", "adaptive",
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(
                error.contains("1 to 100 %, such as 75%"),
                "{wrong}: {error}"
            );
        }
    }
}

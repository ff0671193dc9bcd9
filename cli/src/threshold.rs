//! When a ring is filled, as it is written: `75%`, or `adaptive`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use ringflake::ThresholdFill;

/// When a producer is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Threshold {
    /// Of the capacity, 1 to 100.
    Percent(u32),
    /// Follows the load.
    Adaptive,
}

impl Threshold {
    pub(crate) fn fill(self) -> ThresholdFill {
        match self {
            Self::Percent(percent) => ThresholdFill::percent(percent),
            Self::Adaptive => ThresholdFill::adaptive(),
        }
    }
}

impl FromStr for Threshold {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "adaptive" {
            return Ok(Self::Adaptive);
        }
        let percent = text.strip_suffix('%').map(|text| text.trim_end().parse());
        match percent {
            Some(Ok(percent @ 1..=100)) => Ok(Self::Percent(percent)),
            _ => bail!("give a share of the capacity from 1 to 100 %, such as 75%, or adaptive"),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent} %"),
            Self::Adaptive => f.write_str("adaptive"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_percentage_or_adaptive() {
        let parse = |text: &str| text.parse::<Threshold>();
        for text in ["75%", "75 %"] {
            assert_eq!(parse(text).unwrap(), Threshold::Percent(75));
        }
        assert_eq!(parse("adaptive").unwrap(), Threshold::Adaptive);
        for wrong in ["", "%", "75", "0%", "101%", "-5%", "2.5%", "half", "50%%"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(
                error.contains("1 to 100 %, such as 75%"),
                "{wrong}: {error}"
            );
        }
    }
}

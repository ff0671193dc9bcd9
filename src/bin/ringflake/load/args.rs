//! The options that say what is asked of a generator.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use ringflake::ThresholdFill;
use ringflake::plan::{Burst, Load, Rate, Trace};

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// Take so many IDs a second, such as 800/s, 50k or 2M, each at the moment
    /// when it is due, whether or not those before it have come
    #[arg(long, value_name = "RATE", conflicts_with = "trace")]
    rate: Option<Rate>,
    /// Take at another rate at the beginning of each period: 20M:100ms/1s is 20
    /// million a second in the first 100 ms of every second
    #[arg(long, value_name = "RATE:LENGTH/PERIOD", requires = "rate")]
    burst: Option<Burst>,
    /// Take as this file says: 'seconds,count' a line, so many IDs from that
    /// moment until the next line's; # begins a comment
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl LoadArgs {
    /// The load that was asked for, if one was.
    pub(crate) fn load(&self) -> Result<Option<Load>> {
        if let Some(path) = &self.trace {
            let about = || format!("the trace {}", path.display());
            let text = fs::read_to_string(path).with_context(about)?;
            let trace: Trace = text.parse().with_context(about)?;
            return Ok(Some(trace.into()));
        }
        let load = self.rate.map(Load::steady);
        Ok(match self.burst {
            Some(burst) => load.map(|load| load.with_burst(burst)),
            None => load,
        })
    }
}

/// A threshold as it is written: `25%`, or `adaptive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThresholdArg(pub(crate) ThresholdFill);

impl FromStr for ThresholdArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "adaptive" {
            return Ok(Self(ThresholdFill::adaptive()));
        }
        let percent = text.strip_suffix('%').and_then(|text| text.parse().ok());
        let Some(percent) = percent else {
            bail!("give a share of the capacity as in 25%, or adaptive");
        };
        let fill = ThresholdFill::percent(percent);
        // Any capacity will do: the share alone can be wrong.
        fill.in_slots(1)?;
        Ok(Self(fill))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_share_or_adaptive() {
        let parse = |text: &str| text.parse::<ThresholdArg>().map(|arg| arg.0);
        assert_eq!(parse("25%").unwrap(), ThresholdFill::percent(25));
        assert_eq!(parse("adaptive").unwrap(), ThresholdFill::adaptive());
        for wrong in ["", "%", "25", "-1%", "2.5%", "5 %", "always"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("25%"), "{error}");
        }
        for wrong in ["0%", "101%"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("1 to 100 %"), "{error}");
        }
    }
}

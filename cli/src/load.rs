//! The options that say what is asked of a generator, and how it is run.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use ringflake::plan::{Burst, Load, Rate};

/// How far ahead of the clock IDs may lie.
pub(crate) const BORROW_LIMIT: Duration = Duration::from_secs(60);

/// The percentiles of latency that are named: what is written, and the share.
pub(crate) const PERCENTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("max", 1.0),
];

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("load").required(true))]
pub(crate) struct LoadArgs {
    /// The load: so many IDs a second, such as 800, 50k or 2M
    #[arg(long, value_name = "RATE", group = "load")]
    rate: Option<Rate>,
    /// Another rate at the beginning of each period: 20M:100ms/1s is a rate of 20 million a
    /// second in the first 100 ms of every second, so 2 million IDs in each burst
    #[arg(
        long,
        value_name = "RATE:LENGTH/PERIOD",
        requires = "rate",
        conflicts_with = "trace"
    )]
    burst: Option<Burst>,
    /// The load in this file: 'seconds,count' a line, so many IDs from that moment until the
    /// next line's; # begins a comment
    #[arg(long, value_name = "FILE", group = "load")]
    trace: Option<PathBuf>,
}

impl LoadArgs {
    pub(crate) fn load(&self) -> Result<Load> {
        if let Some(path) = &self.trace {
            let about = || format!("the trace {}", path.display());
            let text = fs::read_to_string(path).with_context(about)?;
            return Load::trace(&text).with_context(about);
        }
        let load = Load::steady(self.rate.expect("a rate or a trace is required"));
        Ok(match self.burst {
            Some(burst) => load.with_burst(burst),
            None => load,
        })
    }
}

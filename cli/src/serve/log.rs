//! The log of a server: one line on stderr for each event.

use std::io;

use anyhow::{Context, Result};
use ringflake_server::{Config, LogFormat, LogLevel};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Registry, fmt, reload};

/// The log, whose level can be changed.
#[derive(Debug)]
pub(super) struct Log(reload::Handle<Targets, Registry>);

impl Log {
    pub(super) fn install(config: &Config) -> Result<Self> {
        let (filter, handle) = reload::Layer::new(targets(config.log_level()));
        let registry = tracing_subscriber::registry().with(filter);
        let lines = fmt::layer().with_writer(io::stderr).with_ansi(false);
        let installed = match config.log_format() {
            LogFormat::Json => {
                let lines = lines.json().flatten_event(true);
                registry
                    .with(lines.with_span_list(false).with_current_span(false))
                    .try_init()
            }
            _ => registry.with(lines).try_init(),
        };
        installed.context("the log can't be set up")?;
        Ok(Self(handle))
    }

    pub(super) fn set_level(&self, level: LogLevel) -> Result<()> {
        let changed = self.0.reload(targets(level));
        changed.context("the level of the log can't be changed")
    }
}

/// Events of this project at this level, and none of libraries: a client can make hyper
/// log a warning for each of its frames.
fn targets(level: LogLevel) -> Targets {
    // Both have the same names.
    let level = level.name().parse().unwrap_or(LevelFilter::INFO);
    Targets::new().with_target("ringflake", level)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_that_of_this_project() {
        let names = ["error", "warn", "info", "debug", "trace"];
        let all = names.map(|name| name.parse::<Level>().unwrap());
        // In the same order.
        let most_of = [None].into_iter().chain(all.map(Some));
        for (level, ours) in LogLevel::ALL.into_iter().zip(most_of) {
            let targets = targets(level);
            let most = |target: &str| {
                let enabled = all.iter().filter(|at| targets.would_enable(target, at));
                enabled.max().copied()
            };
            for target in ["ringflake", "ringflake_server::server"] {
                assert_eq!(most(target), ours, "{level} {target}");
            }
            for target in ["hyper", "hyper::proto", "rustls", "ring"] {
                assert_eq!(most(target), None, "{level} {target}");
            }
        }
    }
}

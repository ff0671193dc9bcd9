//! How an answer is written: for people, or for programs.

use clap::{Args, ValueEnum};

/// The option `--format` of every command whose answer is a report.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormatArgs {
    /// How the answer is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned, for reading
    Text,
    /// One object a line
    Json,
}

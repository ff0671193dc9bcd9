//! The command line of ringflake: makes a secret, generates IDs, takes them
//! apart, puts the generator to the test on the machine it runs on, and looks
//! after the stores that leases come from.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::Cli;
use crate::usage::Misuse;

mod args;
mod backend;
mod bench;
mod cli;
mod count;
mod data_dir;
mod drive;
mod format;
mod generate;
mod ids;
mod inspect;
mod interrupt;
mod keygen;
mod layout;
mod leases;
mod load;
mod output;
#[cfg(test)]
mod quoted_commands;
mod report;
mod secret;
#[cfg(all(unix, feature = "serve"))]
mod serve;
mod store;
mod threads;
mod threshold;
mod timestamp;
mod tune;
mod units;
mod usage;
mod user;
mod verify;
mod words;

/// Exits with 0, with 1 after a failure, and with 2 after a wrong command line.
fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let reason = usage::reason(&error);
            report::error(usage::advised(&reason, Cli::command()));
            return ExitCode::from(2);
        }
        // Help and version, which are no errors.
        Err(error) => error.exit(),
    };
    match backend::check_variable().and_then(|()| cli.run()) {
        Ok(code) => code,
        Err(error) => {
            let text = report::text(&error);
            if error.is::<Misuse>() {
                report::error(usage::advised(&text, Cli::command()));
                ExitCode::from(2)
            } else {
                report::error(text);
                ExitCode::FAILURE
            }
        }
    }
}

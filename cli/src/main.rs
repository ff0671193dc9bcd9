//! The command line of ringflake: makes a secret, generates IDs, takes them
//! apart, puts the generator to the test on the machine it runs on, and looks
//! after the stores that leases come from.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::args::{Cli, Command};
use crate::data_dir::DataDir;
use crate::usage::Misuse;

mod args;
mod backend;
mod bench;
mod data_dir;
mod generate;
mod ids;
mod inspect;
mod keygen;
mod leases;
mod load;
mod report;
mod secret;
mod store;
mod threads;
mod timestamp;
mod tune;
mod usage;
mod verify;
mod words;

/// Exits with 0, with 1 after a failure, and with 2 after a wrong command line.
fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            report::say(usage::one_line(&error));
            return ExitCode::from(2);
        }
        // Help and version, which are no errors.
        Err(error) => error.exit(),
    };
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            let text = report::one_line(&error);
            if error.is::<Misuse>() {
                report::say(usage::advised(&text));
                ExitCode::from(2)
            } else {
                report::say(text);
                ExitCode::FAILURE
            }
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    backend::check_variable()?;
    let data_dir = DataDir::new(cli.data_dir);
    match &cli.command {
        Command::Keygen(args) => keygen::run(args, &data_dir),
        Command::Generate(args) => generate::run(args, &data_dir),
        Command::Inspect(args) => inspect::run(args, &data_dir),
        Command::Verify(args) => verify::run(args, &data_dir),
        Command::Bench(args) => bench::run(args, &data_dir),
        Command::Tune(args) => tune::run(args),
        Command::Store(args) => store::run(args, &data_dir),
    }
}

//! The command line of ringflake: makes a secret, generates IDs, takes them
//! apart, and puts the generator to the test on the machine it runs on.

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::data_dir::DataDir;

mod args;
mod bench;
mod data_dir;
mod generate;
mod ids;
mod inspect;
mod keygen;
mod marks;
mod report;
mod secret;
mod threads;
mod timestamp;
mod verify;

/// Exits with 0, with 1 after a failure, and with 2 (clap's choice) after a
/// wrong command line.
fn main() -> ExitCode {
    let cli = Cli::parse();
    let data_dir = DataDir::new(cli.data_dir);
    let outcome = match &cli.command {
        Command::Keygen(args) => keygen::run(args, &data_dir),
        Command::Generate(args) => generate::run(args, &data_dir),
        Command::Inspect(args) => inspect::run(args, &data_dir),
        Command::Verify(args) => verify::run(args, &data_dir),
        Command::Bench(args) => bench::run(args, &data_dir),
    };
    match outcome {
        Ok(code) => code,
        // Whoever reads has read enough.
        Err(error) if report::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report::say(report::one_line(&error));
            ExitCode::FAILURE
        }
    }
}

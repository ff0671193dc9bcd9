//! The command line as a whole: which commands there are, and how one is run.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::bench::{self, BenchArgs};
use crate::data_dir::DataDir;
use crate::generate::{self, GenerateArgs};
use crate::inspect::{self, InspectArgs};
use crate::keygen::{self, KeygenArgs};
use crate::layout::{self, LayoutCommand};
use crate::report::forgive_closed_pipe;
#[cfg(all(unix, feature = "serve"))]
use crate::serve::{self, ServeArgs};
use crate::store::{self, StoreCommand};
use crate::tune::{self, TuneArgs};
use crate::verify::{self, VerifyArgs};

/// Encrypted, unique 64-bit IDs from a lock-free ring buffer.
#[derive(Parser)]
#[command(name = "ringflake", version)]
pub(crate) struct Cli {
    /// The directory with the secret and the record of leases
    /// [env: RINGFLAKE_DATA_DIR] [default: the platform's, such as
    /// ~/.local/share/ringflake]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Keygen(KeygenArgs),
    Generate(GenerateArgs),
    Inspect(InspectArgs),
    Verify(VerifyArgs),
    Bench(BenchArgs),
    Tune(TuneArgs),
    Layout(LayoutCommand),
    #[command(subcommand)]
    Store(StoreCommand),
    #[cfg(all(unix, feature = "serve"))]
    Serve(ServeArgs),
    /// Print the completions of a shell
    Completions {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
}

impl Cli {
    /// Runs the command, and returns the exit status of one that did its work.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let data_dir = DataDir::new(self.data_dir);
        match &self.command {
            Command::Inspect(args) => return inspect::run(args, &data_dir),
            Command::Verify(args) => return verify::run(args, &data_dir),
            Command::Bench(args) => return bench::run(args),
            Command::Tune(args) => return tune::run(args),
            Command::Keygen(args) => keygen::run(args, &data_dir)?,
            Command::Generate(args) => generate::run(args, &data_dir)?,
            Command::Layout(args) => layout::run(args)?,
            Command::Store(args) => store::run(args, &data_dir)?,
            #[cfg(all(unix, feature = "serve"))]
            Command::Serve(args) => serve::run(args, &data_dir)?,
            Command::Completions { shell } => {
                // In memory first: the generator panics where a pipe is closed.
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut Self::command(), "ringflake", &mut script);
                forgive_closed_pipe(io::stdout().lock().write_all(&script))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

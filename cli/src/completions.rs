//! `ringflake completions`: what a shell needs to complete this command line.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::report::forgive_closed_pipe;

const EXAMPLES: &str = "Examples:
  ringflake completions bash > ~/.local/share/bash-completion/completions/ringflake";

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints what completes `command`.
pub(crate) fn run(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode> {
    let name = command.get_name().to_owned();
    // In memory first: the generator panics where a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    forgive_closed_pipe(io::stdout().lock().write_all(&script))?;
    Ok(ExitCode::SUCCESS)
}

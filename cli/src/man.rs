//! `ringflake man`: the manual pages.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_mangen::Man;

use crate::report::{forgive_closed_pipe, say};

const EXAMPLES: &str = "Examples:
  ringflake man | man -l -                   # the page of the program
  ringflake man ~/.local/share/man/man1      # the pages of all commands";

/// Write the manual pages
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Where to write all of them, such as ~/.local/share/man/man1; it is made if it is
    /// not there, and pages in it are written over
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Writes the pages of `command`.
pub(crate) fn run(args: &ManArgs, mut command: Command) -> Result<ExitCode> {
    // Gives each command its whole name, and the options that all of them have.
    command.build();
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        forgive_closed_pipe(io::stdout().lock().write_all(&page))?;
        return Ok(ExitCode::SUCCESS);
    };
    let about = || {
        format!(
            "the manual pages can't be written to {}",
            directory.display()
        )
    };
    fs::create_dir_all(directory).with_context(about)?;
    let pages = pages(command);
    for page in &pages {
        page.generate_to(directory).with_context(about)?;
    }
    say(format_args!(
        "wrote {} manual pages to {}",
        pages.len(),
        directory.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// The page of a command, and those of the commands below it but for `help`, which
/// prints what they say.
fn pages(command: Command) -> Vec<Man> {
    let below = command.get_subcommands();
    let below = below
        .filter(|command| command.get_name() != "help")
        .cloned();
    let mut pages: Vec<_> = below.flat_map(pages).collect();
    pages.push(Man::new(command));
    pages
}

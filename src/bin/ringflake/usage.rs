//! Usage errors on one line.

use std::env;

use clap::error::ErrorKind;
use clap::{CommandFactory, Error};

use crate::args::Cli;

/// What is wrong with the command line, and where to read on.
pub(crate) fn one_line(error: &Error) -> String {
    let see = match command() {
        Some(command) => format!("ringflake {command} --help"),
        None => "ringflake --help".to_owned(),
    };
    format!("{}; see '{see}'", reason(error))
}

/// clap's text without its frame.
fn reason(error: &Error) -> String {
    // The text of this one is the help.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command was given".to_owned();
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraphs: Vec<_> = text
        .split("\n\n")
        .take_while(|it| !it.starts_with("Usage: ") && !it.starts_with("For more information"))
        .map(|it| Vec::from_iter(it.split_whitespace()).join(" "))
        .collect();
    paragraphs.join("; ")
}

/// The command that the wrong command line names, if it gets that far.
fn command() -> Option<String> {
    let parser = Cli::command().ignore_errors(true);
    let matches = parser.try_get_matches_from(env::args_os()).ok()?;
    matches.subcommand_name().map(str::to_owned)
}

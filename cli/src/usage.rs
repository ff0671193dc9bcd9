//! Usage errors.

use std::env;
use std::error;
use std::fmt;

use clap::error::ErrorKind;
#[cfg(all(unix, not(feature = "serve")))]
use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Command, Error};

/// A command line that is wrong in a way that clap can't tell.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Misuse {}

/// A reason, and where to read on: the help of the command that `parser` finds on
/// the command line.
pub(crate) fn advised(reason: &str, parser: Command) -> String {
    let commands = commands(parser);
    format!("{reason}\nhelp: see 'ringflake{commands} --help'")
}

/// clap's text without its frame.
pub(crate) fn reason(error: &Error) -> String {
    // The text of this one is the help.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing".to_owned();
    }
    #[cfg(all(unix, not(feature = "serve")))]
    if is_about_serve(error) {
        return "this ringflake was built without the command serve\n\
                help: in a checkout, run 'cargo run --features serve -- serve'\n\
                help: to install it from there, run 'cargo install --path cli --features serve,stores'"
            .to_owned();
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraphs: Vec<_> = text
        .split("\n\n")
        .take_while(|it| !it.starts_with("Usage: ") && !it.starts_with("For more information"))
        .map(|it| Vec::from_iter(it.split_whitespace()).join(" "))
        .collect();
    paragraphs.join("\n").replace("\ntip: ", "\nhelp: ")
}

/// Whether `error` is about `serve`, which only a feature builds.
#[cfg(all(unix, not(feature = "serve")))]
fn is_about_serve(error: &Error) -> bool {
    let given = error.get(ContextKind::InvalidSubcommand);
    error.kind() == ErrorKind::InvalidSubcommand
        && matches!(given, Some(ContextValue::String(given)) if given == "serve")
}

/// The words of the command that the wrong command line names, as far as it gets.
fn commands(parser: Command) -> String {
    let parser = parser.ignore_errors(true);
    let mut words = String::new();
    let Ok(matches) = parser.try_get_matches_from(env::args_os()) else {
        return words;
    };
    let mut deeper = matches.subcommand();
    while let Some((name, matches)) = deeper {
        words += &format!(" {name}");
        deeper = ArgMatches::subcommand(matches);
    }
    words
}

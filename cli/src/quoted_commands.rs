//! Every command of `ringflake` that a message, a guide or a file for operators quotes is
//! one that the parser accepts.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::Cli;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Where messages and documents are, from the root of the repository.
const PLACES: [&str; 9] = [
    "README.md",
    "SECURITY.md",
    "cli",
    "cli/tests/messages",
    "deploy",
    "examples",
    "server",
    "server/tests/messages",
    "src",
];

/// Words that follow the program's name in quotes but are not checked: a label of the
/// key derivation, and the command that clap adds.
const NO_COMMANDS: [&str; 2] = ["facade", "help"];

/// The words of a command line, with something to parse in place of each placeholder.
fn words(command: &str) -> Vec<String> {
    let mut words = vec!["ringflake".to_owned()];
    for word in command.split_whitespace() {
        // The rest is for the shell, or a remark.
        if ["#", "|", "||", "&", "&&", ">"].contains(&word) {
            break;
        }
        let (word, is_last) = match word.strip_suffix(';') {
            Some(word) => (word, true),
            None => (word, false),
        };
        words.push(match word.split('{').next().unwrap() {
            "URL" => "sqlite:leases.db".to_owned(),
            "NAME" => "orders".to_owned(),
            "WIDTH" => "positive".to_owned(),
            // The second is what the program puts in.
            "N" | "" => "1".to_owned(),
            // A variable of a script.
            text if text.starts_with('$') => continue,
            text => text.to_owned(),
        });
        if is_last {
            break;
        }
    }
    words
}

/// The commands in a text, without the program's name, and whether each is in quotes.
fn commands(text: &str) -> Vec<(String, bool)> {
    // Lines that a backslash joins, in Rust and in the shell.
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '#', '/', '!']);
        match line.strip_suffix('\\') {
            Some(line) => joined += line,
            None => joined += &format!("{line}\n"),
        }
    }
    let mut commands = Vec::new();
    for (at, name) in joined.match_indices("ringflake ") {
        let rest = &joined[at + name.len()..];
        let is_command = rest.starts_with(|first: char| first.is_ascii_lowercase());
        let mut line = joined[..at].rsplit('\n').next().unwrap();
        // The store of the command, or none.
        line = line.strip_suffix("RINGFLAKE_STORE= ").unwrap_or(line);
        if let Some(begin) = line
            .rfind("RINGFLAKE_STORE=\"$(")
            .filter(|_| line.ends_with(")\" "))
        {
            line = &line[..begin];
        }
        let end = match line.chars().next_back() {
            Some(quote @ ('\'' | '`')) => rest.find(quote),
            // At the start of a line, or behind another command.
            None => rest.find('\n'),
            Some(' ') if line.ends_with("| ") || line.starts_with("sudo ") => rest.find('\n'),
            _ => None,
        };
        if let Some(end) = end.filter(|_| is_command) {
            let is_quoted = line.ends_with(['\'', '`']);
            commands.push((rest[..end].replace('\n', " "), is_quoted));
        }
    }
    commands
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.ends_with("tests") || path.ends_with("quoted_commands.rs") {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else {
        found.push(path.to_owned());
    }
}

#[test]
fn every_quoted_command_parses() {
    let mut all = Vec::new();
    for place in PLACES {
        let path = Path::new(ROOT).join(place);
        assert!(path.exists(), "{place}");
        files(&path, &mut all);
    }
    let (mut refused, mut parsed) = (Vec::new(), 0);
    for file in all {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let is_message = file.parent().unwrap().ends_with("messages");
        for (command, is_quoted) in commands(&text) {
            if is_message {
                assert!(is_quoted, "{command}");
            }
            let first = command.split_whitespace().next().unwrap();
            let known = <Cli as clap::CommandFactory>::command();
            if NO_COMMANDS.contains(&first) || first == "serve" && !cfg!(feature = "serve") {
                continue;
            }
            // Prose: "the ringflake crate".
            if known.find_subcommand(first).is_none() && !is_quoted {
                continue;
            }
            let words = words(&command);
            let is_named_alone = |error: &clap::Error| {
                // As in "`ringflake store init` makes it".
                let incomplete = [
                    ErrorKind::MissingRequiredArgument,
                    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
                ];
                incomplete.contains(&error.kind())
                    && !is_message
                    && !words.iter().any(|word| word.starts_with('-'))
            };
            match Cli::try_parse_from(&words) {
                Err(error) if error.use_stderr() && !is_named_alone(&error) => {
                    refused.push(format!("{}: {words:?}: {error}", file.display()));
                }
                _ => parsed += 1,
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(parsed > 100, "only {parsed} commands were found");
}

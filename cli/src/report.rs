//! Messages on stderr.
//!
//! The text of an error is its first line, and below it lines that begin with `note: ` or
//! `help: `.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};

use anyhow::Result;
use ringflake::lease::StoreError;

use crate::words;

/// Writes a message to stderr, under the program's name and without credentials.
///
/// A stderr that can't be written to does not stop the program.
pub(crate) fn say(text: impl fmt::Display) {
    write("ringflake", &text.to_string());
}

/// Says what a run waits for.
pub(crate) fn say_waiting(error: &StoreError) {
    let cause = error.source().map(|cause| format!(": {cause}"));
    let cause = cause.unwrap_or_default();
    say(format_args!("waiting: {error}{cause}"));
}

pub(crate) fn warn(text: impl fmt::Display) {
    write("warning", &text.to_string());
}

pub(crate) fn error(text: impl fmt::Display) {
    write("error", &text.to_string());
}

fn write(label: &str, text: &str) {
    let text = without_credentials(text).replace('\n', "\n  ");
    // In one write, so that the lines of several processes stay whole.
    let _ = io::stderr().write_all(format!("{label}: {text}\n").as_bytes());
}

/// Blots out what stands before the host of a URL. No text should hold that, but
/// not every text is ours, nor every argument in its place.
fn without_credentials(text: &str) -> String {
    const AUTHORITY: &str = "://";
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(AUTHORITY) {
        let (before, after) = rest.split_at(at + AUTHORITY.len());
        clean.push_str(before);
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        // A password may hold one, too.
        rest = match after[..end].rfind('@') {
            Some(at) => {
                clean.push_str("...");
                &after[at..]
            }
            None => after,
        };
    }
    clean + rest
}

/// The error and its causes, joined by `: ` on the first line, and their notes and help below.
///
/// A cause that only repeats the one before it is left out.
pub(crate) fn text(error: &anyhow::Error) -> String {
    let (mut first, mut rest) = (Vec::<String>::new(), Vec::<String>::new());
    for cause in error.chain() {
        let mut line = String::new();
        for part in words::text(cause).split(['\n', '\r']) {
            if part.starts_with("note: ") || part.starts_with("help: ") {
                rest.push(part.to_owned());
            } else {
                line += &format!(" {part}");
            }
        }
        let line = line.trim().to_owned();
        if first.last() != Some(&line) {
            first.push(line);
        }
    }
    // Notes first, each line once.
    rest.sort_by_key(|line| line.starts_with("help: "));
    let mut text = first.join(": ");
    for line in rest {
        if !text.lines().any(|before| before == line) {
            text += &format!("\n{line}");
        }
    }
    text
}

/// The same on one line, for a log.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    text(error).replace('\n', "; ")
}

/// The result of printing; a closed pipe is a success.
pub(crate) fn forgive_closed_pipe(printed: Result<(), impl Into<anyhow::Error>>) -> Result<()> {
    match printed.map_err(Into::into) {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        outcome => outcome,
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn causes_are_joined_on_the_first_line_and_not_repeated() {
        let error = anyhow!("gone\naway\nhelp: look\nnote: it was there");
        let error = error.context("no file\nhelp: look").context("no file");
        let expected = "no file: gone away\nnote: it was there\nhelp: look";
        assert_eq!(text(&error), expected);
        assert_eq!(one_line(&error), expected.replace('\n', "; "));
    }

    #[test]
    fn nothing_before_the_host_of_a_url_is_told() {
        for (text, clean) in [
            ("no URL, me@host", "no URL, me@host"),
            ("'postgres://h/db' is", "'postgres://h/db' is"),
            (
                "'mysql://me:p@/w@h:3/db' or redis://:pw@h",
                "'mysql://...@h:3/db' or redis://...@h",
            ),
            ("redis://me@h", "redis://...@h"),
            ("://", "://"),
        ] {
            assert_eq!(without_credentials(text), clean);
        }
    }

    #[test]
    fn a_closed_pipe_alone_is_forgiven_below_its_context() {
        let closed = anyhow!(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing");
        assert!(forgive_closed_pipe(Err(closed)).is_ok());
        let other = io::Error::from(io::ErrorKind::StorageFull);
        assert!(forgive_closed_pipe(Err(other)).is_err());
    }
}

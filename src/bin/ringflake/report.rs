//! What is told on stderr, one line at a time.

use std::fmt;
use std::io::{self, Write};

/// Writes one line to stderr, under the program's name.
///
/// A stderr that can't be written to is no reason to stop.
pub(crate) fn say(text: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "ringflake: {text}");
}

/// The error and its causes, joined by `: `, on one line.
///
/// A cause that only repeats what was said before it is left out.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if parts.last() != Some(&text) {
            parts.push(text);
        }
    }
    parts.join(": ").replace(['\n', '\r'], " ")
}

/// Whether the reader of stdout went away.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
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
    fn causes_are_joined_on_one_line_and_not_repeated() {
        let error = anyhow!("gone\naway").context("no file").context("no file");
        assert_eq!(one_line(&error), "no file: gone away");
    }

    #[test]
    fn a_closed_pipe_is_recognised_below_its_context() {
        let closed = anyhow!(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing");
        assert!(is_closed_pipe(&closed));
        let other = anyhow!(io::Error::from(io::ErrorKind::NotFound));
        assert!(!is_closed_pipe(&other));
    }
}

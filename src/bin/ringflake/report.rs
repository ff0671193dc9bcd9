//! What is told on stderr, one line at a time.

use std::fmt;
use std::io::{self, Write};

use anyhow::Result;

use crate::words;

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
        let text = words::text(cause);
        if parts.last() != Some(&text) {
            parts.push(text);
        }
    }
    parts.join(": ").replace(['\n', '\r'], " ")
}

/// What printing came to, where a reader who went away has read enough.
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
    fn causes_are_joined_on_one_line_and_not_repeated() {
        let error = anyhow!("gone\naway").context("no file").context("no file");
        assert_eq!(one_line(&error), "no file: gone away");
    }

    #[test]
    fn a_closed_pipe_is_forgiven_below_its_context_and_nothing_else_is() {
        let closed = anyhow!(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing");
        assert!(forgive_closed_pipe(Err(closed)).is_ok());
        let other = io::Error::from(io::ErrorKind::StorageFull);
        assert!(forgive_closed_pipe(Err(other)).is_err());
    }
}

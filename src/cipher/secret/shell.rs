//! Words of a command line, to be pasted into a shell.

use std::fmt::Display;

/// A word as a shell takes it.
pub fn quoted(word: impl Display) -> String {
    let word = word.to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=%,+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(quoted("20M:100ms/1s"), "20M:100ms/1s");
        assert_eq!(quoted("/a-b/c.d"), "/a-b/c.d");
        assert_eq!(quoted("my trace.csv"), "'my trace.csv'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}

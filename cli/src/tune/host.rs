//! What a report says about the machine and the command.

use std::env;
use std::fs;

use ringflake::{Cipher, Secret};

use super::outcome::Fact;

/// The command as it could be given again.
pub(super) fn command() -> String {
    let mut words = vec!["ringflake".to_owned()];
    let args = env::args_os().skip(1);
    words.extend(args.map(|arg| quoted(&arg.to_string_lossy())));
    words.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=%,+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Names and values.
pub(super) fn facts(cores: usize, secret: &Secret) -> Vec<Fact> {
    let build = match cfg!(debug_assertions) {
        true => "not optimised: its figures are not those of a release build",
        false => "optimised",
    };
    let mut facts = Vec::from_iter(model().map(|model| ("processor", model)));
    facts.extend([
        ("cores", cores.to_string()),
        (
            "system",
            format!("{}, {}", env::consts::OS, env::consts::ARCH),
        ),
        ("cipher", Cipher::sparx64(secret).backend().to_string()),
        (
            "ringflake",
            format!("{}, {build}", env!("CARGO_PKG_VERSION")),
        ),
    ]);
    facts
}

/// What Linux calls the processor.
fn model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let (_, model) = line.split_once(':')?;
    Some(model.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(quoted("20M:100ms/1s"), "20M:100ms/1s");
        assert_eq!(quoted("my trace.csv"), "'my trace.csv'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}

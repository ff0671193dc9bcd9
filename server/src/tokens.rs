//! Tokens, as files hold them.
//!
//! A file has a token on each line, so that a new one can be added before the old one is
//! taken away. Empty lines, and those that begin with `#`, are left out. Only digests are
//! kept, and a token is compared with all of them, each in constant time: how long that
//! takes depends on the length of what the client sent, which it knows, and on how many
//! tokens there are.

use std::fmt;
use std::path::Path;

use hmac_sha256::Hash;
use subtle::{Choice, ConstantTimeEq};

use crate::config::ConfigError;

/// The bytes of a token: as many as nobody guesses, and no more than a header holds.
pub(crate) const LENGTH: std::ops::RangeInclusive<usize> = 16..=512;

/// All of them are compared with, each time.
const MOST: usize = 64;

/// The tokens of a role.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Tokens(Vec<[u8; 32]>);

impl Tokens {
    /// The tokens in this file, which nobody else may read.
    pub(crate) fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let read = ringflake::lease::read_private_file(path);
        let contents = read.map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&contents).map_err(|reason| ConfigError::Content {
            path: path.to_owned(),
            reason,
        })
    }

    fn parse(contents: &[u8]) -> Result<Self, String> {
        let mut digests = Vec::new();
        for (number, line) in contents.split(|&byte| byte == b'\n').enumerate() {
            let token = line.trim_ascii();
            if token.is_empty() || token.starts_with(b"#") {
                continue;
            }
            let number = number + 1;
            if !LENGTH.contains(&token.len()) {
                return Err(format!(
                    "the token in line {number} has {} characters: give {} to {}, such as those \
                     of 'openssl rand -hex 32'",
                    token.len(),
                    LENGTH.start(),
                    LENGTH.end()
                ));
            }
            // What a header can hold, and a line of a client's configuration.
            if !token.iter().all(u8::is_ascii_graphic) {
                return Err(format!(
                    "the token in line {number} has a space or a character that is not ASCII: \
                     give letters, digits and signs"
                ));
            }
            digests.push(Hash::hash(token));
        }
        match digests.len() {
            0 => Err("there is no token in it: give one a line, of 16 characters or more".into()),
            1..=MOST => Ok(Self(digests)),
            count => Err(format!("there are {count} tokens in it: give up to {MOST}")),
        }
    }

    /// Whether `token` is one of them. Looks at all of them.
    pub(crate) fn contain(&self, token: &[u8]) -> bool {
        let offered = Hash::hash(token);
        let none = Choice::from(0);
        let found = self.0.iter().fold(none, |found, digest| {
            found | digest.as_slice().ct_eq(offered.as_slice())
        });
        found.into()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({} of them)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: &str = "0123456789abcdef";
    const OTHER: &str = "fedcba9876543210";

    #[test]
    fn each_line_is_a_token() {
        let file = format!("# since May\n{ONE}\n\n  {OTHER}\r\n");
        let tokens = Tokens::parse(file.as_bytes()).unwrap();
        assert_eq!(tokens.count(), 2);
        for token in [ONE, OTHER] {
            assert!(tokens.contain(token.as_bytes()), "{token}");
        }
        let longer = format!("{ONE} ");
        for wrong in ["", "# since May", &ONE[1..], &longer, "0123456789abcdee"] {
            assert!(!tokens.contain(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn a_token_that_is_weak_or_can_not_be_sent_is_refused() {
        let many = format!("{ONE}\n").repeat(MOST + 1);
        for (file, said) in [
            ("", "no token"),
            ("# nothing\n", "no token"),
            ("\nhunter2hunter2\n", "line 2 has 14 characters"),
            (&"x".repeat(513), "513 characters"),
            ("hunter2 hunter2 hunter2", "line 1 has a space"),
            ("hunter2hunter2hunter2\u{e9}", "not ASCII"),
            (&many, "65 tokens"),
        ] {
            let error = Tokens::parse(file.as_bytes()).unwrap_err();
            assert!(error.contains(said), "{said} is not in: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn no_text_shows_a_token() {
        let tokens = Tokens::parse(ONE.as_bytes()).unwrap();
        assert_eq!(format!("{tokens:?}"), "Tokens(1 of them)");
    }

    proptest! {
        #[test]
        fn no_file_makes_the_parser_panic(contents: Vec<u8>) {
            let _ = Tokens::parse(&contents);
        }

        #[test]
        fn those_of_the_file_are_in_and_no_others(
            tokens in prop::collection::btree_set("[!-\"$-~]{16,40}", 1..8),
            other in "[!-~]{16,40}",
        ) {
            let lines: Vec<_> = tokens.iter().cloned().collect();
            let read = Tokens::parse(lines.join("\n").as_bytes()).unwrap();
            for token in &tokens {
                prop_assert!(read.contain(token.as_bytes()));
            }
            prop_assert_eq!(read.contain(other.as_bytes()), tokens.contains(&other));
        }
    }
}

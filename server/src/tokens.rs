//! Files of tokens.
//!
//! A file has one token a line, so that a new token can be added before the old one is removed.
//! Behind a token may stand what limits it:
//!
//! ```text
//! # comments and empty lines are skipped
//! 5e5a1c…  name=billing namespaces=orders,invoices rate=5000
//! ```
//!
//! `name` is what logs call it, `namespaces` are all that it may use, and `rate` is how many
//! IDs (or requests, where a request takes no ID) it may ask for per second; one second's worth
//! may come at once. IDs that a request asks for and does not get count as well.
//!
//! Only digests are kept. A token is compared with all of them, each in constant time: how long
//! that takes depends on the length of what the client sent and on the number of tokens.

use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hmac_sha256::Hash;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::config::{ConfigError, check_name};
use crate::lock::lock;
use crate::rate::Bucket;

/// Bytes of a token: too many to guess, and few enough for a header.
pub(crate) const LENGTH: std::ops::RangeInclusive<usize> = 16..=512;

/// The most tokens of a role, since each request is compared with all of them.
const MAX_TOKENS: usize = 64;

/// The highest rate, in IDs per second.
const MAX_RATE: u32 = 1_000_000_000;

pub(crate) struct Tokens(Vec<Token>);

pub(crate) struct Token {
    digest: [u8; 32],
    name: Option<String>,
    /// All that it may use; `None` for every namespace.
    namespaces: Option<Vec<String>>,
    rate: Option<Mutex<Bucket>>,
}

impl Tokens {
    /// The tokens in this file, which nobody else may read.
    pub(crate) fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let read = ringflake::lease::read_private_file(path);
        let contents = read.map_err(|source| ConfigError::unreadable(path, source))?;
        Self::parse(&contents).map_err(|reason| ConfigError::content(path, reason))
    }

    fn parse(contents: &[u8]) -> Result<Self, String> {
        let mut tokens = Vec::new();
        for (number, line) in contents.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let number = number + 1;
            let token = Token::parse(line).map_err(|reason| format!("line {number}: {reason}"))?;
            if tokens.iter().any(|it: &Token| it.digest == token.digest) {
                return Err(format!(
                    "line {number}: the token is there already: remove one"
                ));
            }
            tokens.push(token);
        }
        match tokens.len() {
            0 => {
                Err("there is no token in it: write one per line, of 16 characters or more".into())
            }
            1..=MAX_TOKENS => Ok(Self(tokens)),
            count => Err(format!(
                "there are {count} tokens in it: at most {MAX_TOKENS} are allowed"
            )),
        }
    }

    /// The token that `offered` is. Compares with all of them.
    pub(crate) fn find(&self, offered: &[u8]) -> Option<&Token> {
        let offered = Hash::hash(offered);
        let mut found = u32::MAX;
        for (index, token) in (0..).zip(&self.0) {
            let is_equal: Choice = token.digest.as_slice().ct_eq(offered.as_slice());
            found.conditional_assign(&index, is_equal);
        }
        self.0.get(found as usize)
    }

    /// Takes over how much each token has used up of its rate.
    pub(crate) fn continue_from(&self, before: &Self) {
        for token in &self.0 {
            let same = before.0.iter().find(|one| one.digest == token.digest);
            if let (Some(after), Some(before)) = (&token.rate, same.and_then(|it| it.rate.as_ref()))
            {
                let before = lock(before);
                let mut after = lock(after);
                after.continue_from(&before);
            }
        }
    }

    /// Whether a token is limited to some namespaces.
    pub(crate) fn have_namespaces(&self) -> bool {
        self.0.iter().any(|token| token.namespaces.is_some())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

impl Token {
    /// A line of a file. Errors repeat nothing of it.
    fn parse(line: &[u8]) -> Result<Self, String> {
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let secret = words.next().unwrap_or_default();
        if !LENGTH.contains(&secret.len()) {
            return Err(format!(
                "the token has {} characters: it needs {} to {}, such as those of \
                 'openssl rand -hex 32'",
                secret.len(),
                LENGTH.start(),
                LENGTH.end()
            ));
        }
        if !secret.iter().all(u8::is_ascii_graphic) {
            return Err("the token has a character that is not printable ASCII".into());
        }
        let mut token = Self {
            digest: Hash::hash(secret),
            name: None,
            namespaces: None,
            rate: None,
        };
        for word in words {
            let limit = std::str::from_utf8(word)
                .ok()
                .and_then(|word| word.split_once('='));
            match limit {
                Some(("name", name)) if token.name.is_none() && is_name(name) => {
                    token.name = Some(name.to_owned());
                }
                Some(("namespaces", names)) if token.namespaces.is_none() => {
                    if !names.split(',').all(|name| check_name(name).is_ok()) {
                        return Err("namespaces=NAME,NAME needs whole names of namespaces, \
                                    of a-z, 0-9, '-', '_' and '.'"
                            .into());
                    }
                    token.namespaces = Some(names.split(',').map(str::to_owned).collect());
                }
                Some(("rate", rate)) if token.rate.is_none() => {
                    let rate = rate
                        .parse()
                        .ok()
                        .filter(|rate| (1..=MAX_RATE).contains(rate));
                    let rate = f64::from(rate.ok_or_else(|| {
                        format!("rate must be a whole number of IDs per second, 1 to {MAX_RATE}")
                    })?);
                    token.rate = Some(Mutex::new(Bucket::new(rate, rate, Instant::now())));
                }
                _ => {
                    return Err(
                        "a token may only be followed by name=NAME (letters, digits, - \
                                and _), namespaces=NAME,NAME and rate=IDS_PER_SECOND, each once"
                            .into(),
                    );
                }
            }
        }
        Ok(token)
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(crate) fn may_use(&self, namespace: &str) -> bool {
        let names = self.namespaces.as_ref();
        names.is_none_or(|names| names.iter().any(|name| name == namespace))
    }

    /// Counts `requests`, one after the other, each of this many IDs (or 1), against its rate.
    /// Returns how many it allows, and how long the others have to wait. Those are not counted.
    pub(crate) fn spend(
        &self,
        requests: usize,
        amount: u64,
        now: Instant,
    ) -> (usize, Result<(), Duration>) {
        let Some(rate) = &self.rate else {
            return (requests, Ok(()));
        };
        lock(rate).take_each(requests, amount, now)
    }
}

fn is_name(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(is_of_name)
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({} of them)", self.0.len())
    }
}

#[cfg(test)]
impl Tokens {
    /// One token, short as it may be, whose rate does not refill.
    pub(crate) fn limited(token: &str, namespace: Option<&str>, amount: f64) -> Self {
        const HARDLY: f64 = 1e-6;
        Self(vec![Token {
            digest: Hash::hash(token.as_bytes()),
            name: None,
            namespaces: namespace.map(|name| vec![name.to_owned()]),
            rate: Some(Mutex::new(Bucket::new(HARDLY, amount, Instant::now()))),
        }])
    }
}

#[cfg(test)]
impl Token {
    pub(crate) fn spent(&self) -> u64 {
        self.rate
            .as_ref()
            .map_or(0, |rate| rate.lock().unwrap().spent())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: &str = "0123456789abcdef";
    const OTHER: &str = "fedcba9876543210";

    #[test]
    fn limits_follow_their_token() {
        let limits = "rate=2 name=billing  namespaces=orders,invoices";
        let file = format!("# since May\n{ONE}\t{limits}\n\n  {OTHER}\r\n");
        let tokens = Tokens::parse(file.as_bytes()).unwrap();
        assert_eq!(tokens.count(), 2);
        let billing = tokens.find(ONE.as_bytes()).unwrap();
        assert_eq!(billing.name(), Some("billing"));
        let may = ["orders", "invoices", "order", ""].map(|name| billing.may_use(name));
        assert_eq!(may, [true, true, false, false]);
        let now = Instant::now();
        assert_eq!(billing.spend(1, 2, now), (1, Ok(())));
        assert_eq!(billing.spend(1, 2, now), (0, Err(Duration::from_secs(1))));

        let unlimited = tokens.find(OTHER.as_bytes()).unwrap();
        assert_eq!(unlimited.name(), None);
        assert!(unlimited.may_use("anything"));
        assert_eq!(unlimited.spend(9, u64::MAX, now), (9, Ok(())));
    }

    #[test]
    fn a_token_that_is_weak_or_can_not_be_sent_is_refused() {
        let many: String = (0..=MAX_TOKENS).map(|n| format!("{ONE}{n}\n")).collect();
        let twice = format!("{ONE}\n{OTHER}\n{ONE} rate=1");
        let limits = |text: &str| format!("{ONE} {text}");
        for (file, said) in [
            ("", "no token"),
            ("# nothing\n", "no token"),
            ("\nhunter2hunter2\n", "line 2: the token has 14 characters"),
            (&"x".repeat(513), "513 characters"),
            ("hunter2hunter2hunter2\u{e9}", "not printable ASCII"),
            (&many, "65 tokens"),
            (&twice, "line 3: the token is there already"),
            // A passphrase with spaces.
            (
                &limits("hunter2"),
                "line 1: a token may only be followed by",
            ),
            (&limits("name="), "name=NAME"),
            (&limits("name=a name=hunter2"), "each once"),
            (&limits("namespaces="), "namespaces=NAME"),
            (&limits("namespaces=app-*"), "whole names of namespaces"),
            (&limits("namespaces=Hunter2,a"), "line 1: namespaces=NAME"),
            (&limits("rate=0"), "rate must be"),
            (&limits("rate=hunter2"), "rate must be"),
            (&limits("rate=1 rate=2"), "each once"),
        ] {
            let error = Tokens::parse(file.as_bytes()).unwrap_err();
            assert!(error.contains(said), "{said} is not in: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_file_makes_the_parser_panic(contents: Vec<u8>) {
            let _ = Tokens::parse(&contents);
        }

        #[test]
        fn exactly_the_tokens_of_the_file_are_found(
            tokens in prop::collection::btree_set("[!-\"$-~]{16,40}", 1..8),
            other in "[!-~]{16,40}",
        ) {
            let lines: Vec<_> = tokens.iter().cloned().collect();
            let read = Tokens::parse(lines.join("\n").as_bytes()).unwrap();
            for token in &tokens {
                prop_assert!(read.find(token.as_bytes()).is_some());
            }
            prop_assert_eq!(read.find(other.as_bytes()).is_some(), tokens.contains(&other));
        }
    }
}

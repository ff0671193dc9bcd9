//! Where a store's password comes from.
//!
//! It is fetched for each new connection, so that one that is changed in its place
//! is taken up without a restart.

use std::path::PathBuf;
use std::{env, io};

use crate::lease::store::connect::private_file;
use crate::lease::store::options::{Ask, Hidden, OpenOptions};

/// The place of a store's password.
#[derive(Clone, Debug)]
pub(crate) enum Password {
    Program(Ask),
    Url(Hidden),
    /// The URL names it.
    File(PathBuf),
    /// Of the environment.
    Variable(&'static str),
}

impl Password {
    /// The program's password comes first, then the URL's, then that of `variable`.
    /// Nothing is fetched yet.
    pub(crate) fn new(
        options: &OpenOptions,
        url: Option<Hidden>,
        file: Option<String>,
        variable: &'static str,
    ) -> Result<Self, String> {
        Ok(match (options.password(), url, file) {
            (_, Some(_), Some(_)) => {
                return Err("give the password or password_file, and not both".into());
            }
            (Some(ask), _, _) => Self::Program(ask.clone()),
            (None, Some(password), None) => Self::Url(password),
            (None, None, Some(path)) => Self::File(path.into()),
            (None, None, None) => Self::Variable(variable),
        })
    }

    /// Whether the program or the URL has given one.
    pub(crate) fn is_given(&self) -> bool {
        !matches!(self, Self::Variable(_))
    }

    /// Whether nobody has given one so far.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Variable(name) if variable(name).is_none())
    }

    /// The password as it is now; none where there is no place for one.
    pub(crate) fn get(&self) -> io::Result<Option<Hidden>> {
        match self {
            Self::Program(ask) => match ask.get() {
                Ok(password) => Ok(Some(Hidden::new(password))),
                Err(error) => Err(told(&error, "there is no password at present")),
            },
            Self::Url(password) => Ok(Some(password.clone())),
            Self::File(path) => {
                let read = private_file::read(path).and_then(|bytes| {
                    String::from_utf8(bytes)
                        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8"))
                });
                let text = read.map_err(|error| told(&error, "password_file can't be read"))?;
                // What editors and `echo` end a file with.
                let line = text.strip_suffix('\n').unwrap_or(&text);
                let line = line.strip_suffix('\r').unwrap_or(line);
                Ok(Some(Hidden::new(line)))
            }
            Self::Variable(name) => Ok(variable(name).map(Hidden::new)),
        }
    }
}

/// An empty one counts as none.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}

fn told(error: &io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set by nobody.
    const NOT_SET: &str = "RINGFLAKE_TEST_NOT_SET";
    /// Set by everybody who runs cargo.
    const SET: &str = "CARGO_MANIFEST_DIR";

    fn password(
        options: &OpenOptions,
        url: Option<&str>,
        file: Option<&str>,
        variable: &'static str,
    ) -> Password {
        let url = url.map(Hidden::new);
        Password::new(options, url, file.map(str::to_owned), variable).unwrap()
    }

    fn found(password: &Password) -> Option<String> {
        let found = password.get().unwrap();
        found.map(|hidden| hidden.expose().to_owned())
    }

    #[test]
    fn the_nearest_place_wins() {
        let nobody = OpenOptions::new();
        let asked = nobody.clone().with_password(|| Ok("asked".into()));
        let set = Some(env::var(SET).unwrap());
        for (options, url, variable, expected) in [
            (&asked, Some("url"), SET, Some("asked".into())),
            (&nobody, Some("url"), SET, Some("url".into())),
            (&nobody, Some(""), SET, Some("".into())),
            (&nobody, None, SET, set),
            (&nobody, None, NOT_SET, None),
        ] {
            let password = password(options, url, None, variable);
            assert_eq!(found(&password), expected, "{password:?}");
            assert_eq!(password.is_missing(), expected.is_none());
        }
        let both = Password::new(&asked, Some(Hidden::new("url")), Some("f".into()), SET);
        assert!(both.unwrap_err().contains("password_file"));
    }

    #[test]
    fn it_is_not_shown() {
        let url = password(&OpenOptions::new(), Some("hunter2"), None, SET);
        let asked = OpenOptions::new().with_password(|| Ok("hunter2".into()));
        let text = format!("{url:?} {asked:?} {:?}", url.get());
        assert!(!text.contains("hunter2"), "{text}");
    }
}

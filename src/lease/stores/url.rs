//! The URLs of stores that are reached over the network.
//!
//! ```text
//! SCHEME://[USER][:PASSWORD]@HOST[:PORT][,HOST[:PORT]...][/PATH][?NAME=VALUE&...]
//! ```
//!
//! Users, passwords and values may be percent-encoded. Everything that a store
//! has not asked for by the end of [`StoreUrl::finish`] is refused: a parameter
//! with a spelling mistake must not be a protection that is silently missing.

use std::fmt;

use crate::lease::options::{Hidden, OpenError, OpenOptions};
use crate::lease::stores::password::Password;
use crate::lease::stores::peer;

/// A host and its port, as they are dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Without the brackets of an IPv6 address.
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

/// How bytes go to the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Encrypted, to a server that shows who it is.
    Tls,
    /// In plain, to this machine.
    PlainHere,
    /// In plain, which the URL accepts.
    PlainAnywhere,
}

/// The parts of a URL.
#[derive(Clone, Debug)]
pub(crate) struct StoreUrl {
    scheme: &'static str,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Hidden>,
    /// At least one.
    pub(crate) hosts: Vec<Host>,
    /// What follows the first slash, which may be nothing.
    pub(crate) path: String,
    parameters: Vec<(String, Hidden)>,
}

impl StoreUrl {
    /// Takes `url` apart, whose scheme is one of `schemes`.
    ///
    /// # Errors
    /// [`OpenError::Invalid`]; it holds no part of the URL that can be a secret.
    pub(crate) fn parse(
        url: &str,
        schemes: &[&'static str],
        default_port: u16,
    ) -> Result<Self, OpenError> {
        let (found, rest) = url.split_once("://").unwrap_or_default();
        let Some(scheme) = schemes.iter().find(|scheme| **scheme == found) else {
            return Err(OpenError::Invalid {
                scheme: schemes.first().copied().unwrap_or_default(),
                reason: format!("begin it with {}://", schemes.join(":// or ")),
            });
        };
        let wrong = |reason: String| OpenError::Invalid { scheme, reason };

        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // A password may hold '@' where nobody thought of encoding it.
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let decoded = |what: &str, text: &str| {
            decode(text).ok_or_else(|| wrong(format!("{what} has a '%' that encodes no text")))
        };
        let (user, password) = match login {
            None => (None, None),
            Some(login) => {
                let (user, password) = match login.split_once(':') {
                    Some((user, password)) => (user, Some(password)),
                    None => (login, None),
                };
                let user = (!user.is_empty()).then(|| decoded("the user", user));
                let password = password.map(|text| decoded("the password", text).map(Hidden::new));
                (user.transpose()?, password.transpose()?)
            }
        };
        let hosts = hosts
            .split(',')
            .map(|host| {
                parse_host(host, default_port)
                    .ok_or_else(|| wrong("give each host as NAME, NAME:PORT or [IPV6]:PORT".into()))
            })
            .collect::<Result<_, _>>()?;
        let parameters = query
            .split('&')
            .filter(|parameter| !parameter.is_empty())
            .map(|parameter| {
                let (name, value) = parameter
                    .split_once('=')
                    .ok_or_else(|| wrong("give each parameter as NAME=VALUE".into()))?;
                Ok((name.to_owned(), Hidden::new(decoded("a parameter", value)?)))
            })
            .collect::<Result<_, OpenError>>()?;
        Ok(Self {
            scheme,
            user,
            password,
            hosts,
            path: path.to_owned(),
            parameters,
        })
    }

    /// Takes the parameter with this name out, if it is there.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] if it is there twice.
    pub(crate) fn parameter(&mut self, name: &str) -> Result<Option<String>, OpenError> {
        let (found, others) = std::mem::take(&mut self.parameters)
            .into_iter()
            .partition::<Vec<_>, _>(|(known, _)| known == name);
        self.parameters = others;
        let mut values = found
            .into_iter()
            .map(|(_, value)| value.expose().to_owned());
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(self.wrong(format!("the parameter {name} is given twice"))),
        }
    }

    /// Where the password comes from, if not from `variable`.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] when there are two places.
    pub(crate) fn password(
        &mut self,
        options: &OpenOptions,
        variable: &'static str,
    ) -> Result<Password, OpenError> {
        let file = self.parameter("password_file")?;
        let password = Password::new(options, self.password.take(), file, variable);
        password.map_err(|reason| self.wrong(reason))
    }

    /// How bytes go to the hosts; with the scheme `secure` they are encrypted.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] where what is sent would leave this machine in plain,
    /// and the URL does not say `tls=off`.
    pub(crate) fn wire(&mut self, secure: &str) -> Result<Wire, OpenError> {
        let off = match self.parameter("tls")?.as_deref() {
            None => false,
            Some("off") => true,
            Some(_) => {
                return Err(self.wrong(format!("tls is off or left out; TLS is {secure}://")));
            }
        };
        if self.scheme == secure {
            return match off {
                true => Err(self.wrong(format!("{secure}:// is TLS: leave out tls=off"))),
                false => Ok(Wire::Tls),
            };
        }
        match peer::default_for(self.hosts.iter().map(|host| &*host.name)) {
            peer::Default::Verified if !off => Err(self.wrong(peer::refusal(secure))),
            _ if off => Ok(Wire::PlainAnywhere),
            _ => Ok(Wire::PlainHere),
        }
    }

    /// Refuses what is left over.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] for a parameter that nobody asked for; `known` are
    /// those that exist.
    pub(crate) fn finish(self, known: &[&str]) -> Result<(), OpenError> {
        match self.parameters.first() {
            None => Ok(()),
            // Names are no secrets, but what has none may be a password's tail.
            Some((name, _)) if name.chars().all(|c| c.is_ascii_lowercase() || c == '_') => {
                Err(self.wrong(format!(
                    "there is no parameter {name}: use {}",
                    known.join(", ")
                )))
            }
            Some(_) => Err(self.wrong(format!(
                "a parameter has a name that does not exist: use {}",
                known.join(", ")
            ))),
        }
    }

    /// An error about this URL.
    pub(crate) fn wrong(&self, reason: String) -> OpenError {
        OpenError::Invalid {
            scheme: self.scheme,
            reason,
        }
    }
}

fn parse_host(text: &str, default_port: u16) -> Option<Host> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            name.parse::<std::net::Ipv6Addr>().ok()?;
            (
                name,
                port.strip_prefix(':').or(port.is_empty().then_some("")),
            )
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, Some("")),
        },
    };
    let port = match port? {
        "" => default_port,
        digits => digits.parse().ok().filter(|&port| port != 0)?,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then(|| Host {
        name: name.to_owned(),
        port,
    })
}

/// Resolves `%41` and its like; none where that leaves no text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        bytes.push(u8::try_from(digit(0)? * 16 + digit(1)?).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<StoreUrl, OpenError> {
        StoreUrl::parse(url, &["one", "ones"], 4711)
    }

    fn host(name: &str, port: u16) -> Host {
        Host {
            name: name.into(),
            port,
        }
    }

    #[test]
    fn a_url_has_its_parts() {
        let mut url = parse("ones://me:p%40s%3As@a.b:1,[::1]:2,c/3?x=1%2F2&y=").unwrap();
        assert_eq!(url.scheme, "ones");
        assert_eq!(url.user.as_deref(), Some("me"));
        assert_eq!(url.password.as_ref().unwrap().expose(), "p@s:s");
        assert_eq!(url.hosts, [host("a.b", 1), host("::1", 2), host("c", 4711)]);
        assert_eq!(url.hosts[1].to_string(), "[::1]:2");
        assert_eq!(url.path, "3");
        assert_eq!(url.parameter("x").unwrap().as_deref(), Some("1/2"));
        assert_eq!(url.parameter("y").unwrap().as_deref(), Some(""));
        assert_eq!(url.parameter("x").unwrap(), None);
        url.finish(&[]).unwrap();
    }

    #[test]
    fn most_parts_may_be_left_out() {
        let url = parse("one://a").unwrap();
        assert_eq!((&url.user, &url.password, &*url.path), (&None, &None, ""));
        let url = parse("one://:word@a").unwrap();
        assert_eq!((url.user, url.password.unwrap().expose()), (None, "word"));
        let url = parse("one://me@a/").unwrap();
        assert_eq!((url.user.as_deref(), url.password), (Some("me"), None));
        // Not encoded, and yet clear.
        let url = parse("one://me:a@b:c@host").unwrap();
        assert_eq!(url.password.unwrap().expose(), "a@b:c");
    }

    #[test]
    fn what_is_wrong_is_refused_without_showing_it() {
        for url in [
            "two://hunter2@a",
            "one:hunter2",
            "one://me:hunter2@",
            "one://me:hunter2@a:port",
            "one://me:hunter2@a:0",
            "one://me:hunter2@a:65536",
            "one://me:hunter2@[::1",
            "one://me:hunter2@[word]:1",
            "one://me:hunter2%@a",
            "one://me:hunter2%ff@a",
            "one://me:hunter2@a,",
            "one://me:hunter2@a b",
            "one://me:hunter2@a?hunter2",
        ] {
            let error = parse(url).unwrap_err();
            assert!(
                !format!("{error} {error:?}").contains("hunter2"),
                "{error:?}"
            );
        }
        let url = parse("one://me:hunter2@a?key=hunter2").unwrap();
        assert!(!format!("{url:?}").contains("hunter2"), "{url:?}");
    }

    #[test]
    fn nothing_leaves_the_machine_in_plain_unasked() {
        let wire = |url: &str| parse(url).unwrap().wire("ones");
        for url in ["ones://a", "ones://localhost", "ones://a,localhost"] {
            assert_eq!(wire(url).unwrap(), Wire::Tls, "{url}");
        }
        for url in ["one://localhost", "one://[::1],127.0.0.1:1"] {
            assert_eq!(wire(url).unwrap(), Wire::PlainHere, "{url}");
        }
        for url in ["one://a,localhost?tls=off", "one://localhost?tls=off"] {
            assert_eq!(wire(url).unwrap(), Wire::PlainAnywhere, "{url}");
        }
        for (url, part) in [
            ("one://a", "ones://"),
            ("one://a", "tls=off"),
            ("one://localhost,a", "ones://"),
            ("one://0.0.0.0", "ones://"),
            ("one://a?tls=on", "ones://"),
            ("ones://a?tls=off", "leave out"),
        ] {
            let error = wire(url).unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }

    #[test]
    fn every_parameter_must_be_one_that_somebody_reads() {
        let reason = |url: &str| match parse(url).unwrap().finish(&["x", "y"]).unwrap_err() {
            OpenError::Invalid { reason, .. } => reason,
            other => panic!("{other}"),
        };
        assert_eq!(
            reason("one://a?wiat=1"),
            "there is no parameter wiat: use x, y"
        );
        // As in a password with a question mark.
        assert!(!reason("one://a?Hunter2%20=1").contains("Hunter2"));

        let error = parse("one://a?x=1&x=2").unwrap().parameter("x");
        assert!(error.is_err());
    }
}

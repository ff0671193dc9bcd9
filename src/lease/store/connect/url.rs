//! The URLs of stores that are reached over the network.
//!
//! ```text
//! SCHEME://[USER][:PASSWORD]@HOST[:PORT][,HOST[:PORT]...][/PATH][?NAME=VALUE&...]
//! ```
//!
//! Users, passwords and values may be percent-encoded. A parameter that the store does
//! not have is refused: one with a spelling mistake must not be a protection that is
//! silently missing. No error quotes anything but the name of a parameter.
//!
//! A store whose driver has a parser of its own takes out the parameters that are the
//! store's, and hands on the rest ([`StoreUrl::rest`]). Such a parser names what it does
//! not understand, and would take a password that holds a `/`, `?` or `@` apart and quote
//! a piece of it. So [`StoreUrl::parse_for_driver`] refuses those first.

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::lease::store::connect::certificates::TlsFiles;
use crate::lease::store::connect::password::Password;
use crate::lease::store::connect::peer;
use crate::lease::store::options::{Hidden, OpenError, OpenOptions};

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

/// The parts of a URL, as they are written.
pub(crate) struct StoreUrl<'a> {
    scheme: &'static str,
    /// From the user to the last host.
    authority: &'a str,
    /// From the first slash on, which may be nothing.
    path: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> StoreUrl<'a> {
    /// Parses `url`. Its scheme must be one of `schemes`, and its parameters must be among
    /// `parameters`.
    ///
    /// # Errors
    /// [`OpenError::Invalid`]; it holds no part of the URL but the name of a parameter.
    pub(crate) fn parse(
        url: &'a str,
        schemes: &[&'static str],
        parameters: &[&str],
    ) -> Result<Self, OpenError> {
        let (found, rest) = url.split_once("://").unwrap_or_default();
        let Some(scheme) = schemes.iter().find(|scheme| **scheme == found) else {
            return Err(OpenError::Invalid {
                scheme: schemes.first().copied().unwrap_or_default(),
                reason: format!("begin it with {}://", schemes.join(":// or ")),
            });
        };
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = base.split_at(base.find('/').unwrap_or(base.len()));
        let mut parsed = Self {
            scheme,
            authority,
            path,
            parameters: Vec::new(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            parsed.add_parameter(pair, parameters)?;
        }
        Ok(parsed)
    }

    /// As [`parse`](Self::parse), of a URL whose credentials are where the parser of a
    /// driver looks for them.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub(crate) fn parse_for_driver(
        url: &'a str,
        schemes: &[&'static str],
        parameters: &[&str],
    ) -> Result<Self, OpenError> {
        let without = Self::parse(url.split('?').next().unwrap_or(url), schemes, parameters)?;
        let (authority, tail) = match url.split_once("://") {
            Some((_, rest)) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
            None => (url, ""),
        };
        if authority.matches('@').count() > 1 || tail.contains('@') {
            return Err(without.wrong(
                "there is an '@' too many, or one after a '/', '?' or '#': inside of a user's \
                 name or a password write them as %40, %2F, %3F and %23",
            ));
        }
        if tail.contains('#') {
            return Err(without.wrong("a '#' is no part of it"));
        }
        Self::parse(url, schemes, parameters)
    }

    fn add_parameter(&mut self, pair: &'a str, known: &[&str]) -> Result<(), OpenError> {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| self.wrong("give each parameter as NAME=VALUE"))?;
        if !known.contains(&name) {
            // Names are no secrets, but what has none may be a password's tail.
            let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            let named = match is_name {
                true => format!("there is no parameter {name}"),
                false => "a parameter has a name that does not exist".to_owned(),
            };
            return Err(self.wrong(format!("{named}: use {}", known.join(", "))));
        }
        if self.parameters.iter().any(|(other, _)| *other == name) {
            return Err(self.wrong(format!("the parameter {name} is given twice")));
        }
        self.parameters.push((name, value));
        Ok(())
    }

    /// Takes the parameter with this name out, if it is there.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] when its value is no text.
    pub(crate) fn parameter(&mut self, name: &str) -> Result<Option<String>, OpenError> {
        let Some(at) = self.parameters.iter().position(|(n, _)| *n == name) else {
            return Ok(None);
        };
        let (_, value) = self.parameters.remove(at);
        self.decode(name, value).map(Some)
    }

    /// The user and the password, as far as they are given.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] when one of them is no text.
    fn login(&self) -> Result<(Option<String>, Option<Hidden>), OpenError> {
        // A password may hold '@' where nobody thought of encoding it.
        let Some((login, _)) = self.authority.rsplit_once('@') else {
            return Ok((None, None));
        };
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        let user = (!user.is_empty()).then(|| self.decode("the user", user));
        let password = password.map(|text| self.decode("the password", text).map(Hidden::new));
        Ok((user.transpose()?, password.transpose()?))
    }

    /// The hosts, at least one.
    ///
    /// # Errors
    /// [`OpenError::Invalid`].
    pub(crate) fn hosts(&self, default_port: u16) -> Result<Vec<Host>, OpenError> {
        let hosts = match self.authority.rsplit_once('@') {
            Some((_, hosts)) => hosts,
            None => self.authority,
        };
        let host = |text| {
            parse_host(text, default_port)
                .ok_or_else(|| self.wrong("give each host as NAME, NAME:PORT or [IPV6]:PORT"))
        };
        hosts.split(',').map(host).collect()
    }

    /// What follows the first slash, which may be nothing.
    pub(crate) fn path(&self) -> &'a str {
        self.path.strip_prefix('/').unwrap_or_default()
    }

    /// The user, and where the password comes from, if not from `variable`.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] when there are two places for the password, and for a user
    /// without one.
    pub(crate) fn credentials(
        &mut self,
        options: &OpenOptions,
        variable: &'static str,
    ) -> Result<(Option<String>, Password), OpenError> {
        let (user, given) = self.login()?;
        let file = self.parameter("password_file")?;
        let password = Password::new(options, given, file, variable);
        let password = password.map_err(|reason| self.wrong(reason))?;
        if user.is_some() && password.is_missing() {
            return Err(self.wrong(format!(
                "a user needs a password: in the URL, in a password_file, or in {variable}"
            )));
        }
        Ok((user, password))
    }

    /// How bytes go to these hosts; with the scheme `secure` they are encrypted.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] where what is sent would leave this machine in plain,
    /// and the URL does not say `tls=off`.
    pub(crate) fn wire(&mut self, hosts: &[Host], secure: &str) -> Result<Wire, OpenError> {
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
        match peer::default_for(hosts.iter().map(|host| &*host.name)) {
            peer::Default::Verified if !off => Err(self.wrong(peer::refusal(secure))),
            _ if off => Ok(Wire::PlainAnywhere),
            _ => Ok(Wire::PlainHere),
        }
    }

    /// The files of `ca`, `cert` and `key`, where bytes go over TLS.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] where they are of no use.
    pub(crate) fn tls_files(
        &mut self,
        wire: Wire,
        secure: &str,
    ) -> Result<Option<TlsFiles>, OpenError> {
        let mut file = |name| Ok(self.parameter(name)?.map(Into::into));
        let (ca, cert, key) = (file("ca")?, file("cert")?, file("key")?);
        let identity = match (cert, key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((cert, key)),
            _ => return Err(self.wrong("give cert and key, or neither")),
        };
        let files = TlsFiles { ca, identity };
        match wire {
            Wire::Tls => Ok(Some(files)),
            _ if files.is_empty() => Ok(None),
            _ => Err(self.wrong(format!("ca, cert and key need {secure}://"))),
        }
    }

    /// The URL again, with `scheme` and the parameters that are left.
    pub(crate) fn rest(&self, scheme: &str) -> String {
        self.rest_at(scheme, self.authority)
    }

    /// The URL again for each of its hosts, which commas divide.
    pub(crate) fn rest_by_host(&self, scheme: &str) -> Vec<String> {
        let (login, hosts) = self.login_and_hosts();
        let hosts = hosts.split(',');
        hosts
            .map(|host| self.rest_at(scheme, &format!("{login}{host}")))
            .collect()
    }

    /// The URL again, with no host.
    pub(crate) fn rest_without_host(&self, scheme: &str) -> String {
        self.rest_at(scheme, self.login_and_hosts().0)
    }

    fn login_and_hosts(&self) -> (&str, &str) {
        let start = self.authority.find('@').map_or(0, |at| at + 1);
        self.authority.split_at(start)
    }

    fn rest_at(&self, scheme: &str, authority: &str) -> String {
        let mut url = format!("{scheme}://{authority}{}", self.path);
        for (index, (name, value)) in self.parameters.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(&format!("{name}={value}"));
        }
        url
    }

    /// An error about this URL. The reason must not quote from it.
    pub(crate) fn wrong(&self, reason: impl Into<String>) -> OpenError {
        OpenError::Invalid {
            scheme: self.scheme,
            reason: reason.into(),
        }
    }

    /// Resolves `%41` and its like.
    fn decode(&self, what: &str, text: &str) -> Result<String, OpenError> {
        let is_code = |after: &str| {
            let code = after.as_bytes().get(..2);
            code.is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
        };
        text.split('%')
            .skip(1)
            .all(is_code)
            .then(|| percent_decode_str(text).decode_utf8().ok())
            .flatten()
            .map(Into::into)
            .ok_or_else(|| self.wrong(format!("{what} has a '%' that encodes no text")))
    }
}

impl fmt::Debug for StoreUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreUrl")
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
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

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["x", "y", "mode", "tls"];

    fn parse(url: &str) -> Result<StoreUrl<'_>, OpenError> {
        StoreUrl::parse(url, &["one", "ones"], &KNOWN)
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
        let (user, password) = url.login().unwrap();
        assert_eq!(user.as_deref(), Some("me"));
        assert_eq!(password.unwrap().expose(), "p@s:s");
        let hosts = url.hosts(4711).unwrap();
        assert_eq!(hosts, [host("a.b", 1), host("::1", 2), host("c", 4711)]);
        assert_eq!(hosts[1].to_string(), "[::1]:2");
        assert_eq!(url.path(), "3");
        assert_eq!(url.parameter("x").unwrap().as_deref(), Some("1/2"));
        assert_eq!(url.parameter("y").unwrap().as_deref(), Some(""));
        assert_eq!(url.parameter("x").unwrap(), None);
    }

    #[test]
    fn most_parts_may_be_left_out() {
        let login = |url| {
            let (user, password) = parse(url).unwrap().login().unwrap();
            (user, password.map(|password| password.expose().to_owned()))
        };
        assert_eq!(login("one://a"), (None, None));
        assert_eq!(login("one://:word@a"), (None, Some("word".into())));
        assert_eq!(login("one://me@a/"), (Some("me".into()), None));
        assert_eq!(parse("one://me@a/").unwrap().path(), "");
        // Not encoded, and yet clear.
        let found = login("one://me:a@b:c@host");
        assert_eq!(found, (Some("me".into()), Some("a@b:c".into())));
    }

    #[test]
    fn what_is_wrong_is_refused_without_showing_it() {
        let all = |url: &str| {
            let url = parse(url)?;
            url.login()?;
            url.hosts(1).map(drop)
        };
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
            let error = all(url).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter2"), "{error:?}");
        }
        let url = parse("one://me:hunter2@a?x=hunter2").unwrap();
        assert!(!format!("{url:?}").contains("hunter2"), "{url:?}");
    }

    #[test]
    fn nothing_leaves_the_machine_in_plain_unasked() {
        let wire = |url: &str| {
            let mut url = parse(url).unwrap();
            let hosts = url.hosts(1).unwrap();
            url.wire(&hosts, "ones")
        };
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
    fn every_parameter_must_be_one_that_the_store_has() {
        let reason = |url: &str| match parse(url).unwrap_err() {
            OpenError::Invalid { reason, .. } => reason,
            other => panic!("{other}"),
        };
        assert_eq!(
            reason("one://a?wiat=1"),
            "there is no parameter wiat: use x, y, mode, tls"
        );
        // As in a password with a question mark.
        assert!(!reason("one://a?Hunter2%20=1").contains("Hunter2"));
        assert!(reason("one://a?x=1&x=2").contains("twice"));
    }

    #[test]
    fn a_driver_gets_the_parameters_that_are_left() {
        let mut url = parse("one://u:p@h:1/d?x=%2Fa%20b&mode=x").unwrap();
        assert_eq!(url.parameter("x").unwrap().as_deref(), Some("/a b"));
        assert_eq!(url.rest("other"), "other://u:p@h:1/d?mode=x");
        assert_eq!(url.parameter("mode").unwrap().as_deref(), Some("x"));
        assert_eq!(url.rest("db"), "db://u:p@h:1/d");
    }

    #[test]
    fn hosts_are_taken_apart() {
        let each = |url| parse(url).unwrap().rest_by_host("other");
        assert_eq!(
            each("one://u:p,q@h:1,[::1]/d,e?mode=x,y"),
            [
                "other://u:p,q@h:1/d,e?mode=x,y",
                "other://u:p,q@[::1]/d,e?mode=x,y"
            ]
        );
        assert_eq!(each("one://h?x=x"), ["other://h?x=x"]);
    }

    #[test]
    fn a_driver_sees_no_password_that_it_would_take_apart() {
        let refused = |url| StoreUrl::parse_for_driver(url, &["one"], &KNOWN).unwrap_err();
        for url in [
            "one://u:hunter2@hunter2@h/d",
            "one://u:hunter2/hunter2@h/d",
            "one://u:hunter2?hunter2=hunter2@h/d",
            "one://u:hunter2#hunter2@h/d",
            "one://h/d#hunter2",
            "one:u:hunter2",
        ] {
            assert!(!refused(url).to_string().contains("hunter2"), "{url}");
        }
        StoreUrl::parse_for_driver("one://u:p@h/d?mode=x", &["one"], &KNOWN).unwrap();
    }
}

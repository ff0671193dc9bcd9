//! The URLs of stores that are reached over the network.
//!
//! ```text
//! SCHEME://[USER][:PASSWORD]@HOST[:PORT][,HOST[:PORT]...][/PATH][?NAME=VALUE&...]
//! ```
//!
//! All stores have the same parameters for the same things, and the same rules for them:
//!
//! | parameter | |
//! |---|---|
//! | `tls` | `required` or `off`; the rule is at the head of [`tls`] |
//! | `ca` | a file with the authorities that are trusted, instead of this machine's; for MySQL, beside the public ones |
//! | `cert`, `key` | files with the client's own certificate and key |
//! | `password_file` | a file with the password |
//! | `socket` | a Unix socket in place of the host; PostgreSQL has `host`, as libpq |
//!
//! Users, passwords and values may be percent-encoded. A parameter that the store does
//! not have is refused: one with a spelling mistake must not be a protection that is
//! silently missing. No error quotes anything but the name of a parameter, and the path of a
//! private key that others may read. A `/`, `?`, `#` or
//! `@` within a password must be encoded: otherwise a piece of the password could be taken for
//! a host, or be quoted by a driver that parses the rest of the URL ([`StoreUrl::rest`]).

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::lease::store::connect::password::Password;
use crate::lease::store::connect::tls::{self, Protection, TlsFiles};
use crate::lease::store::options::{Hidden, OpenError, OpenOptions};

/// A host and its port, as they are dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Without the brackets of an IPv6 address.
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl Host {
    /// The name, in brackets if it is an IPv6 address.
    pub(crate) fn bracketed(&self) -> String {
        match self.name.contains(':') {
            true => format!("[{}]", self.name),
            false => self.name.clone(),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.bracketed(), self.port)
    }
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Host(Host),
    /// A Unix socket.
    Socket(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(f),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

/// Shows endpoints as a URL has them.
pub(crate) fn join(endpoints: &[Endpoint]) -> String {
    let places: Vec<_> = endpoints.iter().map(Endpoint::to_string).collect();
    places.join(",")
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
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let mut parsed = Self {
            scheme,
            authority,
            path,
            parameters: Vec::new(),
        };
        if authority.matches('@').count() > 1 || tail.contains('@') {
            return Err(parsed.wrong(
                "there is an '@' too many, or one after a '/', '?' or '#': inside of a user's \
                 name, a password or a value write them as %40, %2F, %3F and %23",
            ));
        }
        if tail.contains('#') {
            return Err(parsed.wrong("a '#' is no part of it"));
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            parsed.add_parameter(pair, parameters)?;
        }
        Ok(parsed)
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
        self.add(name, value)
    }

    pub(crate) fn add(&mut self, name: &'a str, value: &'a str) -> Result<(), OpenError> {
        if self.has(name) {
            return Err(self.wrong(format!("the parameter {name} is given twice")));
        }
        self.parameters.push((name, value));
        Ok(())
    }

    /// Whether there is a parameter of this name, which nobody has taken out.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|(other, _)| *other == name)
    }

    /// Moves the parameters of these names into a URL of their own.
    pub(crate) fn split_off(&mut self, names: &[&str]) -> Self {
        let is_one = |name: &str| names.contains(&name);
        Self {
            parameters: self.parameters.extract_if(.., |it| is_one(it.0)).collect(),
            ..*self
        }
    }

    /// Takes the parameter with this name out, as it is written.
    fn take(&mut self, name: &str) -> Option<&'a str> {
        let at = self.parameters.iter().position(|it| it.0 == name)?;
        Some(self.parameters.remove(at).1)
    }

    /// Gives the parameter `alias`, if it is there, the name that all stores have for it.
    pub(crate) fn rename(&mut self, alias: &str, name: &'static str) -> Result<(), OpenError> {
        match self.take(alias) {
            Some(value) => self.add(name, value),
            None => Ok(()),
        }
    }

    /// Takes the parameter with this name out, if it is there.
    pub(crate) fn parameter(&mut self, name: &str) -> Result<Option<String>, OpenError> {
        let value = self.take(name).map(|value| self.decode(name, value));
        value.transpose()
    }

    /// The user and the password, as far as they are given.
    fn login(&self) -> Result<(Option<String>, Option<Hidden>), OpenError> {
        let Some((login, _)) = self.authority.split_once('@') else {
            return Ok((None, None));
        };
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password).filter(|it| !it.is_empty())),
            None => (login, None),
        };
        let user = (!user.is_empty()).then(|| self.decode("the user", user));
        let password = password.map(|text| self.decode("the password", text).map(Hidden::new));
        Ok((user.transpose()?, password.transpose()?))
    }

    /// The hosts, at least one.
    pub(crate) fn hosts(&self, default_port: u16) -> Result<Vec<Host>, OpenError> {
        let (_, hosts) = self.login_and_hosts();
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

    /// The path, decoded, as the name of a database.
    pub(crate) fn database(&self) -> Result<String, OpenError> {
        match self.path() {
            "" => Err(self.wrong("it names no database")),
            path if path.contains('/') => Err(self.wrong(
                "the database's name ends at a '/': leave out what follows, or write it as %2F",
            )),
            path => self.decode("the database", path),
        }
    }

    /// The user, and where the password comes from, if not from `variable`.
    pub(crate) fn credentials(
        &mut self,
        options: &OpenOptions,
        variable: &'static str,
    ) -> Result<(Option<String>, Password), OpenError> {
        let (user, given) = self.login()?;
        let file = self.parameter("password_file")?;
        let password = Password::new(options, given, file, variable);
        Ok((user, password.map_err(|reason| self.wrong(reason))?))
    }

    /// The same for a server where a user has a password.
    ///
    /// # Errors
    /// Also for a user without one.
    pub(crate) fn credentials_in_full(
        &mut self,
        options: &OpenOptions,
        variable: &'static str,
    ) -> Result<(Option<String>, Password), OpenError> {
        let (user, password) = self.credentials(options, variable)?;
        if user.is_some() && password.is_missing() {
            return Err(self.wrong(format!(
                "a user needs a password: in the URL, in a password_file, or in {variable}"
            )));
        }
        Ok((user, password))
    }

    /// Where the server may be, and how connections are protected: its hosts, or the one
    /// `socket`. With the scheme `secure` connections are encrypted.
    pub(crate) fn endpoints(
        &mut self,
        default_port: u16,
        secure: Option<&str>,
    ) -> Result<(Vec<Endpoint>, Protection), OpenError> {
        let hosts = self.hosts(default_port)?;
        let Some(path) = self.parameter("socket")? else {
            let protection = self.protection(hosts.iter().map(|host| &*host.name), secure)?;
            return Ok((hosts.into_iter().map(Endpoint::Host).collect(), protection));
        };
        match self.protection([], secure)? {
            Protection::Local | Protection::Off if hosts.len() == 1 => {
                Ok((vec![Endpoint::Socket(path.into())], Protection::Local))
            }
            _ => Err(self.wrong("a Unix socket leads to one server, without TLS")),
        }
    }

    /// How connections to these hosts are protected, by `tls`, `ca`, `cert`, `key` and the
    /// scheme `secure`.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] where what is sent would leave this machine in plain, and the URL
    /// does not say `tls=off`; and for files that can't be used.
    pub(crate) fn protection<'h>(
        &mut self,
        hosts: impl IntoIterator<Item = &'h str>,
        secure: Option<&str>,
    ) -> Result<Protection, OpenError> {
        let tls = self.parameter("tls")?;
        let files = self.tls_files()?;
        let is_described = secure == Some(self.scheme) || files != TlsFiles::default();
        match tls.as_deref() {
            Some("required") => Ok(Protection::Tls(files)),
            Some("off") if is_described => Err(self.wrong(
                "tls=off allows no TLS, and the scheme or another parameter asks for it: leave \
                 out one of them",
            )),
            Some("off") => Ok(Protection::Off),
            Some(_) => Err(self.wrong("tls is required, off or left out")),
            None if is_described => Ok(Protection::Tls(files)),
            None if hosts.into_iter().all(tls::is_local) => Ok(Protection::Local),
            None => match secure {
                Some(secure) => Err(self.wrong(tls::refusal(secure))),
                None => Ok(Protection::Tls(files)),
            },
        }
    }

    /// The files of `ca`, `cert` and `key`.
    pub(crate) fn tls_files(&mut self) -> Result<TlsFiles, OpenError> {
        let mut file = |name| Ok(self.parameter(name)?.map(PathBuf::from));
        let (ca, cert, key) = (file("ca")?, file("cert")?, file("key")?);
        let identity = match (cert, key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((cert, key)),
            _ => return Err(self.wrong("give cert and key, or neither")),
        };
        let files = TlsFiles { ca, identity };
        // Bad files are reported here, before the first connection.
        let found = files.read().and_then(|found| found.check());
        found.map_err(|reason| self.wrong(reason))?;
        Ok(files)
    }

    /// The URL again, with `scheme` and the parameters that are left.
    pub(crate) fn rest(&self, scheme: &str) -> String {
        self.rest_at(scheme, self.authority)
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

    const KNOWN: [&str; 8] = ["x", "y", "mode", "tls", "ca", "cert", "key", "socket"];

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
        let mut url = parse("ones://me:p%40,s%3As@a.b:1,[::1]:2,c/3?x=1%2F2&y=").unwrap();
        assert_eq!(url.scheme, "ones");
        let (user, password) = url.login().unwrap();
        assert_eq!(user.as_deref(), Some("me"));
        assert_eq!(password.unwrap().expose(), "p@,s:s");
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
        // An empty one is none, so that the environment's counts.
        assert_eq!(login("one://me:@a"), (Some("me".into()), None));
        assert_eq!(login("one://me@a/"), (Some("me".into()), None));
        assert_eq!(parse("one://me@a/").unwrap().path(), "");
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
            "one://u:hunter2@hunter2@h/d",
            "one://u:hunter2/hunter2@h/d",
            "one://u:hunter2?hunter2=hunter2@h/d",
            "one://u:hunter2#hunter2@h/d",
            "one://h/d#hunter2",
            "one:u:hunter2",
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
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");
        let ca = format!("ca={data}/ca.pem");
        let key = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(format!("{data}/client.key"), key.path()).unwrap();
        let identity = format!("cert={data}/client.pem&key={}", key.path().display());
        // By a store with a scheme for TLS, and by one without.
        let protection = |url: &str, secure| -> Result<&str, OpenError> {
            Ok(match parse(url)?.endpoints(1, secure)?.1 {
                Protection::Tls(_) => "tls",
                Protection::Local => "local",
                Protection::Off => "off",
            })
        };
        let all = |url: &str| [Some("ones"), None].map(|secure| protection(url, secure));
        let [tls, local, off] = ["tls", "local", "off"];
        for (url, expected) in [
            ("one://a?tls=required", tls),
            ("one://localhost?tls=required", tls),
            (&format!("one://a,localhost?{ca}"), tls),
            (&format!("one://localhost?tls=required&{ca}"), tls),
            (&format!("one://localhost?{identity}"), tls),
            ("one://localhost", local),
            ("one://[::1],127.0.0.1:1", local),
            ("one://a?socket=x", local),
            ("one://a?socket=x&tls=off", local),
            ("one://a,localhost?tls=off", off),
            ("one://localhost?tls=off", off),
        ] {
            assert_eq!(all(url).map(Result::unwrap), [expected; 2], "{url}");
        }
        for url in ["ones://a", "ones://localhost", "ones://a?tls=required"] {
            assert_eq!(protection(url, Some("ones")).unwrap(), tls, "{url}");
        }
        // Where no scheme asks for TLS, it is the default, and otherwise asked for.
        for url in ["one://a", "one://localhost,a", "one://0.0.0.0"] {
            assert_eq!(protection(url, None).unwrap(), tls, "{url}");
            let error = protection(url, Some("ones")).unwrap_err().to_string();
            assert!(
                error.contains("write ones://") && error.contains("tls=off"),
                "{error}"
            );
        }
        let both = "leave out one";
        for (url, part) in [
            ("one://a?tls=on", "required"),
            ("ones://a?tls=off", both),
            (&format!("one://a?tls=off&{ca}"), both),
            ("one://a?cert=/dev/null", "neither"),
            ("one://a?ca=/nowhere", "ca can't be read"),
            ("ones://a?socket=x", "Unix socket"),
            ("one://a?socket=x&tls=required", "Unix socket"),
            ("one://a,b?socket=x", "Unix socket"),
        ] {
            let error = protection(url, Some("ones")).unwrap_err().to_string();
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
            "there is no parameter wiat: use x, y, mode, tls, ca, cert, key, socket"
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
        assert_eq!(url.rest_without_host("db"), "db://u:p@/d");
        let mut url = parse("one://h?x=1&mode=x").unwrap();
        assert_eq!(url.split_off(&["mode", "y"]).rest("db"), "db://h?mode=x");
        assert_eq!(url.rest("db"), "db://h?x=1");
    }
}

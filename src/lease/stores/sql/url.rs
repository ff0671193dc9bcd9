//! A store's URL, before a driver sees it.

use percent_encoding::percent_decode_str;

use crate::lease::options::OpenError;

/// A URL whose credentials are where a parser looks for them, and whose
/// parameters are all known.
///
/// The drivers' parsers name what they do not understand, and would take a
/// password that holds a `/`, `?` or `@` apart and quote a piece of it. So those
/// are refused here, without a word of what was found.
#[derive(Debug)]
pub(in crate::lease::stores) struct Url<'a> {
    scheme: &'static str,
    /// Without the parameters.
    base: &'a str,
    /// As they are written: percent-encoded.
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Url<'a> {
    /// Takes `url` apart. `known` are the names of the parameters.
    ///
    /// # Errors
    /// [`OpenError::Invalid`], which holds no part of the URL but the name of a
    /// parameter.
    pub(in crate::lease::stores) fn parse(
        scheme: &'static str,
        url: &'a str,
        known: &[&str],
    ) -> Result<Self, OpenError> {
        let invalid = |reason: String| OpenError::Invalid { scheme, reason };
        let (_, rest) = url
            .split_once("://")
            .ok_or_else(|| invalid(format!("begin it with {scheme}://")))?;
        let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(authority);
        if authority.matches('@').count() > 1 || tail.contains('@') {
            return Err(invalid(
                "there is an '@' too many, or one after a '/', '?' or '#': inside of a user's \
                 name or a password write them as %40, %2F, %3F and %23"
                    .to_owned(),
            ));
        }
        if tail.contains('#') {
            return Err(invalid("a '#' is no part of it".to_owned()));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut parameters: Vec<(&str, &str)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&name) {
                let known = known.join(", ");
                return Err(invalid(format!(
                    "there is no parameter {name:?}: the parameters are {known}"
                )));
            }
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(invalid(format!("{name} is given twice")));
            }
            parameters.push((name, value));
        }
        Ok(Self {
            scheme,
            base,
            parameters,
        })
    }

    /// The value of a parameter, which the driver then does not see.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] when it is not UTF-8.
    pub(in crate::lease::stores) fn take(
        &mut self,
        name: &str,
    ) -> Result<Option<String>, OpenError> {
        let Some(at) = self.parameters.iter().position(|(n, _)| *n == name) else {
            return Ok(None);
        };
        let (_, value) = self.parameters.remove(at);
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| self.invalid(format!("{name} is not UTF-8")))?;
        Ok(Some(value.into_owned()))
    }

    /// The URL again, with `scheme` and the parameters that are left.
    pub(in crate::lease::stores) fn rest(&self, scheme: &str) -> String {
        let (_, base) = self.base.split_once("://").unwrap_or_default();
        let mut url = format!("{scheme}://{base}");
        for (index, (name, value)) in self.parameters.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(&format!("{name}={value}"));
        }
        url
    }

    /// The URL again for each of its hosts, which commas divide.
    #[cfg(feature = "mysql")]
    pub(in crate::lease::stores) fn for_each_host(&self, scheme: &str) -> Vec<String> {
        let url = self.rest(scheme);
        let (_, rest) = url.split_once("://").unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let start = authority.find('@').map_or(0, |at| at + 1);
        let (login, hosts) = authority.split_at(start);
        let hosts = hosts.split(',');
        hosts
            .map(|host| format!("{scheme}://{login}{host}{tail}"))
            .collect()
    }

    /// Refuses the URL for this reason, which must not quote from it.
    pub(in crate::lease::stores) fn invalid(&self, reason: impl Into<String>) -> OpenError {
        OpenError::Invalid {
            scheme: self.scheme,
            reason: reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 2] = ["mode", "ca"];

    fn refused(url: &str) -> String {
        Url::parse("db", url, &KNOWN).unwrap_err().to_string()
    }

    #[test]
    fn own_parameters_are_taken_and_the_rest_is_passed_on() {
        let mut url = Url::parse("db", "db://u:p@h:1/d?ca=%2Fa%20b&mode=x", &KNOWN).unwrap();
        assert_eq!(url.take("ca").unwrap().as_deref(), Some("/a b"));
        assert_eq!(url.take("ca").unwrap(), None);
        assert_eq!(url.rest("other"), "other://u:p@h:1/d?mode=x");
        assert_eq!(url.take("mode").unwrap().as_deref(), Some("x"));
        assert_eq!(url.rest("db"), "db://u:p@h:1/d");
    }

    #[cfg(feature = "mysql")]
    #[test]
    fn hosts_are_taken_apart() {
        let url = |text| {
            Url::parse("db", text, &KNOWN)
                .unwrap()
                .for_each_host("other")
        };
        assert_eq!(
            url("db://u:p,q@h:1,[::1]/d,e?mode=x,y"),
            [
                "other://u:p,q@h:1/d,e?mode=x,y",
                "other://u:p,q@[::1]/d,e?mode=x,y"
            ]
        );
        assert_eq!(url("db://h?ca=x"), ["other://h?ca=x"]);
    }

    #[test]
    fn unknown_parameters_are_named() {
        let text = refused("db://u:p@h/d?mod=x");
        assert!(text.contains("\"mod\"") && text.contains("mode"), "{text}");
        assert!(refused("db://h/d?mode=x&mode=y").contains("twice"));
    }

    #[test]
    fn no_piece_of_a_password_is_quoted() {
        for url in [
            "db://u:hunter2@hunter2@h/d",
            "db://u:hunter2/hunter2@h/d",
            "db://u:hunter2?hunter2=hunter2@h/d",
            "db://u:hunter2#hunter2@h/d",
            "db:u:hunter2",
        ] {
            assert!(!refused(url).contains("hunter2"), "{url}");
        }
    }
}

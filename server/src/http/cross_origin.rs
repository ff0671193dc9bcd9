//! Requests that the page of another site makes a browser send.
//!
//! A browser sends requests to this machine for every page that its user visits. No such page
//! has any business here, but a server on loopback may have no tokens:
//!
//! | the page | is given away by | gets |
//! |---|---|---|
//! | has a name that is made to lead here (DNS rebinding), and so may read answers | `Host`, or `:authority`, which is that name | 421 |
//! | sends a request here that it can't read the answer of: a form, an image | `Sec-Fetch-Site`, or where the browser sends none, `Origin` | 403 |
//!
//! Both are checked if a request needs no token. A token is protection enough: a page does not know
//! it, and no browser adds it by itself. No response has a CORS field, so no page of another site
//! may send a token either, nor read a response.
//!
//! A name can't be made to lead here if it has no dot (as in a container's network), ends with
//! `.localhost`, or is an address. `http.hosts` lists others. Names are not checked on Unix
//! sockets, which no browser connects to, and with TLS, where a browser compares the certificate
//! with the page's name.
//!
//! Paths that need no permission are open to every page: `/livez` and `/readyz`, because probes use
//! any name, and the page and the description, which are the same everywhere. A client that sends
//! none of these fields is not a browser.
//!
//! The rule for `Sec-Fetch-Site` and `Origin` is that of `CrossOriginProtection` in Go's
//! net/http, but for methods, as figures are read by GET.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::request::Parts;

use super::problem::{Kind, Problem};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names that requests on a connection may be for.
#[derive(Clone, Debug)]
pub(super) enum Hosts {
    /// No page can choose one.
    All,
    /// These, in lower case, beside those that can't lead to two servers.
    Known(Arc<[String]>),
}

/// Refuses requests from pages of other sites. The connection has put [`Hosts`] there.
pub(super) fn check(head: &Parts) -> Result<(), Problem> {
    let hosts = match head.extensions.get() {
        Some(Hosts::All) => None,
        Some(Hosts::Known(hosts)) => Some(&hosts[..]),
        None => Some(&[][..]),
    };
    if hosts.is_some_and(|hosts| !authorities(head).all(|own| is_known(own, hosts))) {
        let detail = "a page of the internet could have this name and read the answer: ask for \
                      localhost or an address, set http.hosts to this name if it is the \
                      server's own, or set tokens";
        return Err(Problem::new(Kind::UNKNOWN_HOST, detail));
    }
    if is_from_elsewhere(head) {
        let detail = "a page of another site sent this request: use a program, or the \
                      page of this server; if it is behind a proxy, have the field Host passed \
                      on, or set tokens";
        return Err(Problem::new(Kind::CROSS_SITE, detail));
    }
    Ok(())
}

/// The authorities that the request names; a browser sends one.
fn authorities(head: &Parts) -> impl Iterator<Item = &[u8]> {
    let of_uri = head.uri.authority();
    let of_uri = of_uri.map(|authority| authority.as_str().as_bytes());
    let of_fields = head.headers.get_all(HOST).into_iter();
    of_uri
        .into_iter()
        .chain(of_fields.map(|value| value.as_bytes()))
}

/// Whether no page can have the name, or it is one of these.
fn is_known(authority: &[u8], hosts: &[String]) -> bool {
    let Ok(authority) = str::from_utf8(authority) else {
        return false;
    };
    if let Some(rest) = authority.strip_prefix('[') {
        let parts = rest.split_once(']');
        return parts.is_some_and(|(ip, port)| ip.parse::<Ipv6Addr>().is_ok() && is_port(port));
    }
    let end = authority.find(':').unwrap_or(authority.len());
    let (name, port) = authority.split_at(end);
    if !is_port(port) || !is_name(name) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    !name.contains('.')
        || name.ends_with(".localhost")
        || name.parse::<Ipv4Addr>().is_ok()
        || hosts.contains(&name)
}

/// With its colon; or nothing.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    text.is_empty() || digits.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_name(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    !text.is_empty() && text.bytes().all(is_of_name)
}

/// Whether a browser says that a page of another origin sends this.
fn is_from_elsewhere(head: &Parts) -> bool {
    let mut sites = head.headers.get_all(SEC_FETCH_SITE).into_iter().peekable();
    if sites.peek().is_some() {
        // None is that of somebody who has typed the address.
        return !sites.all(|site| site == "same-origin" || site == "none");
    }
    // Browsers that are old, or use a name without TLS, send this alone.
    let mut origins = head.headers.get_all(ORIGIN).into_iter();
    !origins.all(|origin| is_own(origin.as_bytes(), head))
}

/// Whether the origin is what the request is for. Both leave out the usual port.
fn is_own(origin: &[u8], head: &Parts) -> bool {
    let schemes = [&b"http://"[..], b"https://"];
    let mut authority = schemes.iter().filter_map(|it| origin.strip_prefix(*it));
    authority.next().is_some_and(|origin| {
        let mut own = authorities(head);
        own.any(|own| own.eq_ignore_ascii_case(origin))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use proptest::prelude::*;

    use super::*;

    fn known(authority: &str) -> bool {
        is_known(authority.as_bytes(), &["ids.example.com".to_owned()])
    }

    #[test]
    fn a_name_that_a_page_may_have_is_unknown() {
        let own = "localhost LOCALHOST:7464 a.localhost:1 127.0.0.1 10.1.2.3:80 [::1] \
                   [::ffff:127.0.0.1]:7464 ringflake:7464 my_ids ids.example.com \
                   IDS.example.com:443 localhost:";
        for own in own.split(' ') {
            assert!(known(own), "{own}");
        }
        let others = ":7464 evil.example evil.example:7464 localhost. localhost.evil.example \
                      notlocalhost.evil evil.notlocalhost a.ids.example.com ids.example.com. \
                      127.0.0.1.evil.example 127.1 [::1 [::1].evil.example [::1]7464 \
                      [evil.example] ::1 localhost:7464:1 localhost:x localhost@evil localhost/ \
                      \u{e4}";
        for other in others.split(' ').chain([""]) {
            assert!(!known(other), "{other}");
        }
        assert!(!is_known(b"\xff", &[]));
    }

    /// Whether a request with these fields is from elsewhere, each `name: value`.
    fn elsewhere(fields: &str) -> bool {
        let mut request = Request::new(());
        for field in fields.split(", ").filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once(':').unwrap();
            let name: HeaderName = name.parse().unwrap();
            let value = value.trim().parse().unwrap();
            request.headers_mut().append(name, value);
        }
        is_from_elsewhere(&request.into_parts().0)
    }

    #[test]
    fn a_page_of_another_origin_is_elsewhere() {
        for own in [
            "",
            "sec-fetch-site: same-origin",
            "sec-fetch-site: none",
            "origin: http://localhost:7464",
            "origin: https://LOCALHOST:7464",
            // The browser knows better than a proxy that has changed the host.
            "sec-fetch-site: same-origin, origin: https://ids.example.com",
        ] {
            assert!(!elsewhere(&format!("host: localhost:7464, {own}")), "{own}");
        }
        for other in [
            "sec-fetch-site: same-site",
            "sec-fetch-site: cross-site",
            "sec-fetch-site: ",
            "sec-fetch-site: none, sec-fetch-site: x",
            "origin: http://localhost:7465",
            "origin: http://localhost",
            "origin: http://evil.example",
            "origin: ftp://localhost:7464",
            "origin: localhost:7464",
            "origin: null",
            "sec-fetch-site: cross-site, origin: http://localhost:7464",
        ] {
            let fields = format!("host: localhost:7464, {other}");
            assert!(elsewhere(&fields), "{other}");
        }
        assert!(elsewhere("origin: http://localhost"), "no host");
    }

    proptest! {
        #[test]
        fn a_name_of_a_site_is_unknown(
            name in "[a-z0-9-]{1,9}(\\.[a-z0-9-]{1,9}){0,2}\\.[a-z]{2,7}",
            port: u16,
        ) {
            let authority = format!("{name}:{port}");
            prop_assert!(!is_known(authority.as_bytes(), &[]));
            prop_assert!(is_known(authority.as_bytes(), &[name]));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = is_known(&bytes, &[]);
        }
    }
}

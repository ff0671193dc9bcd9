//! Who may be spoken to in plain.
//!
//! A password, and a lease, go to this machine or to a server whose certificate
//! was verified. Anything else must be asked for by name in the URL. The decision
//! is about what is dialled, not about what a certificate should say: a name may
//! lead anywhere, and is this machine's only if it is `localhost`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How a connection is protected where the URL leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    /// Nobody sits in between: plain is good enough.
    Open,
    /// TLS, with the chain and the host's name verified.
    Verified,
}

/// What holds for connections to all of `hosts`, if the URL says nothing.
pub(crate) fn default_for<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Default {
    if hosts.into_iter().all(is_local) {
        Default::Open
    } else {
        Default::Verified
    }
}

/// Whether a connection to `host` stays on this machine.
///
/// An address is one of the loopback's; other ways to write one, such as `127.1`
/// or `0.0.0.0`, are taken for somebody else's.
pub(crate) fn is_local(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    match bare.parse() {
        Ok(IpAddr::V4(address)) => Ipv4Addr::is_loopback(&address),
        Ok(IpAddr::V6(address)) => Ipv6Addr::is_loopback(&address),
        Err(_) => bare.eq_ignore_ascii_case("localhost"),
    }
}

/// Why a URL that asks for no TLS is refused, and what to write; `secure` is the
/// scheme that asks for it.
pub(crate) fn refusal(secure: &str) -> String {
    format!(
        "a host is not this machine, and what is sent in plain can be read and changed on the \
         way, passwords included: write {secure}:// for TLS, or accept that with tls=off"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_local() {
        for host in [
            "127.0.0.1",
            "127.8.9.10",
            "::1",
            "[::1]",
            "localhost",
            "LocalHost",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "0.0.0.0",
            "::",
            "127.1",
            "10.0.0.1",
            "128.0.0.1",
            "::ffff:10.0.0.1",
            "localhost.example.com",
            "localhost.",
            "127.0.0.1.example.com",
            "db",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn one_host_elsewhere_is_enough() {
        assert_eq!(default_for(["::1", "localhost"]), Default::Open);
        assert_eq!(default_for(["::1", "db"]), Default::Verified);
    }
}

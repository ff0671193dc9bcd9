//! Values that a configuration writes as text.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The value of a list of addresses that is empty on purpose.
pub(super) const OFF: &str = "off";

/// A time, such as `90s`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    /// humantime panics at sums beyond its range; so many digits can't add up.
    const DIGITS: usize = 9;
    let is_short = text.bytes().filter(u8::is_ascii_digit).count() <= DIGITS;
    let time = is_short.then(|| humantime::parse_duration(text).ok());
    time.flatten().ok_or_else(|| {
        "give a number and its unit, of at most 9 digits in all, such as 500ms or 90s".to_owned()
    })
}

/// An address of this machine with its port.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let address = match text.strip_prefix("localhost:") {
        Some(port) => port
            .parse()
            .ok()
            .map(|port: u16| (Ipv4Addr::LOCALHOST, port).into()),
        None => text.parse().ok(),
    };
    address.ok_or_else(|| {
        format!(
            "{text:?} is no address with a port: give one such as 127.0.0.1:6379 or [::1]:6379, \
             or {OFF} for none"
        )
    })
}

/// Addresses, each after a comma, or the word for none.
pub fn parse_addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    match text {
        OFF => Ok(Vec::new()),
        _ => text.split(',').map(str::trim).map(parse_address).collect(),
    }
}

/// Names of a server, each after a comma.
pub fn parse_hosts(text: &str) -> Result<Vec<String>, String> {
    text.split(',').map(str::trim).map(read_host).collect()
}

pub(super) fn read_host(text: &str) -> Result<String, String> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_of_name);
    match text.len() <= 253 && text.split('.').all(is_label) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!(
            "{text:?} is no name of a server: give one such as ids.example.com, without a port \
             and without *"
        )),
    }
}

/// The mode of a socket: octal digits.
pub fn parse_mode(text: &str) -> Result<u32, String> {
    let is_octal = (3..=4).contains(&text.len()) && text.bytes().all(|b| (b'0'..b'8').contains(&b));
    let mode = is_octal
        .then(|| u32::from_str_radix(text, 8).ok())
        .flatten();
    mode.filter(|mode| mode & !0o666 == 0 && mode & 0o600 == 0o600)
        .ok_or_else(|| {
            format!(
                "{text:?} is no mode of a socket: give 0600 for this user alone, 0660 for its \
                 group too, or 0666 for everybody"
            )
        })
}

pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("{text:?} is neither 1 nor 0")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_has_a_port() {
        let localhost = parse_addresses("localhost:1, [::]:80").unwrap();
        assert_eq!(
            localhost,
            ["127.0.0.1:1", "[::]:80"].map(|it| it.parse().unwrap())
        );
        assert_eq!(parse_addresses("off"), Ok(vec![]));
        let wrong = "|6379|:6379|127.0.0.1|localhost|localhost:x|a:1|127.0.0.1:1,off";
        for wrong in wrong.split('|') {
            assert!(parse_addresses(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_socket_has_a_mode_that_lets_its_owner_in() {
        for (text, mode) in [("0600", 0o600), ("660", 0o660), ("0666", 0o666)] {
            assert_eq!(parse_mode(text), Ok(mode));
        }
        for wrong in "|0|66|0777|0060|0o660|+660|00660|08".split('|') {
            assert!(parse_mode(wrong).unwrap_err().contains("0660"), "{wrong}");
        }
    }

    #[test]
    fn a_name_of_a_server_has_no_port_and_no_star() {
        let hosts = parse_hosts("IDs.example.com, my_ids").unwrap();
        assert_eq!(hosts, ["ids.example.com", "my_ids"]);
        // 63 bytes of a label and 253 in all are allowed.
        let (label, name) = ("a".repeat(64), ["a"; 128].join("."));
        for wrong in [&label, &name] {
            assert!(parse_hosts(wrong).is_err(), "{wrong}");
        }
        assert!(parse_hosts(&name[2..]).is_ok() && parse_hosts(&label[1..]).is_ok());
        let wrong = "|ids.example.com:7464|*.example.com|ids.example.com.|http://ids|[::1]|a,";
        for wrong in wrong.split('|') {
            assert!(parse_hosts(wrong).unwrap_err().contains("ids.example.com"));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,20}") {
            let _ = (parse_time(&text), parse_addresses(&text), parse_mode(&text));
            let _ = (parse_switch(&text), parse_hosts(&text));
        }

    }
}

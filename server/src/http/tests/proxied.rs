//! Connections that a proxy forwards with a header of the PROXY protocol.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use super::served::{Served, serve};
use crate::access::Access;

/// All that the server sends for these bytes, until it closes.
fn exchange(served: &Served, bytes: &str) -> String {
    let mut stream = TcpStream::connect(served.at).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut answer = String::new();
    // A reset means the same as the end here.
    let _ = stream.read_to_string(&mut answer);
    answer
}

const HEADER: &str = "PROXY TCP4 192.0.2.1 192.0.2.9 1 2\r\n";
const REQUEST: &str = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[test]
fn a_request_behind_the_header_is_answered() {
    let served = serve(|setup| setup.config.proxy_protocol = true);
    for header in [HEADER, "PROXY UNKNOWN\r\n"] {
        let answer = exchange(&served, &format!("{header}{REQUEST}"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{header}: {answer}");
    }
    // Without the header there is no answer.
    assert_eq!(exchange(&served, REQUEST), "");
}

#[test]
fn the_client_is_the_one_that_the_header_names() {
    let access = Access::by_name();
    let served = serve(|setup| {
        setup.config.proxy_protocol = true;
        setup.rights = Arc::clone(&access);
    });
    let take = "POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                content-length: 0\r\n\r\n";
    let answer = exchange(&served, &format!("{HEADER}{take}"));
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert_eq!(access.refused(), ["192.0.2.1 take"]);
}

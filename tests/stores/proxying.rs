//! The proxy loses what it says and nothing else.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::kit::serve;
use ringflake_kit::eventually;
use ringflake_kit::proxy::{Fault, Proxy, Then};

/// A server that answers each line with the same line, and the port it is at.
fn echo() -> u16 {
    serve(|stream| drop(io::copy(&mut &stream, &mut &stream)))
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    // Turns a hang into a failure.
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// Sends this letter, and waits for it.
fn ask(mut stream: &TcpStream, letter: u8) -> io::Result<()> {
    stream.write_all(&[letter])?;
    let mut reply = [0];
    stream.read_exact(&mut reply)?;
    assert_eq!(reply, [letter]);
    Ok(())
}

#[test]
fn replies_are_lost_from_the_request_that_was_named() {
    let proxy = Proxy::to(echo());
    let mut stream = connect(&proxy);
    ask(&stream, b'a').unwrap();

    proxy.set(Fault::LoseReplies {
        after: 2,
        then: Then::Hang,
    });
    ask(&stream, b'b').unwrap();
    ask(&stream, b'c').unwrap();
    stream.write_all(b"d").unwrap();
    eventually("the reply is lost", || proxy.lost() == 1);

    // The next reply is not the lost one.
    proxy.set(Fault::None);
    ask(&stream, b'e').unwrap();
}

#[test]
fn a_connection_is_closed_when_its_reply_was_lost() {
    let proxy = Proxy::to(echo());
    let stream = connect(&proxy);
    proxy.set(Fault::LoseReplies {
        after: 0,
        then: Then::Close,
    });
    ask(&stream, b'a').unwrap_err();
    assert_eq!(proxy.lost(), 1);

    proxy.set(Fault::None);
    ask(&stream, b'b').unwrap_err();
    ask(&connect(&proxy), b'c').unwrap();
}

#[test]
fn a_cut_ends_old_connections_and_new_ones() {
    let proxy = Proxy::to(echo());
    let stream = connect(&proxy);
    ask(&stream, b'a').unwrap();
    proxy.set(Fault::Cut);
    ask(&stream, b'b').unwrap_err();
    ask(&connect(&proxy), b'c').unwrap_err();
    proxy.set(Fault::None);
    ask(&connect(&proxy), b'd').unwrap();
}

#[test]
fn new_connections_can_go_elsewhere() {
    // Nobody serves tcpmux.
    let proxy = Proxy::to(1);
    ask(&connect(&proxy), b'a').unwrap_err();
    proxy.redirect(echo());
    ask(&connect(&proxy), b'b').unwrap();
}

#[test]
fn dropping_it_ends_everything() {
    let proxy = Proxy::to(echo());
    let stream = connect(&proxy);
    ask(&stream, b'a').unwrap();
    let port = proxy.port();
    drop(proxy);
    ask(&stream, b'b').unwrap_err();
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}

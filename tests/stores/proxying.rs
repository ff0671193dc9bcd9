//! The proxy loses what it says and nothing else.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use ringflake_kit::eventually;
use ringflake_kit::proxy::{After, Fault, Proxy, Then};

/// A server that answers each line with the same line, and the port it is at.
fn echo() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let stream = stream.unwrap();
                let mut buffer = [0; 1024];
                while let Ok(count @ 1..) = (&stream).read(&mut buffer) {
                    if (&stream).write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    // Turns a hang into a failure.
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// Sends `request`, and waits for the first `count` bytes of the reply.
fn ask(mut stream: &TcpStream, request: &str, count: usize) -> io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut reply = vec![0; count];
    stream.read_exact(&mut reply)?;
    Ok(String::from_utf8(reply).unwrap())
}

/// Sends `request`, of whose reply the proxy loses the rest after `count` bytes.
#[track_caller]
fn ask_and_lose(mut stream: &TcpStream, proxy: &Proxy, request: &str, count: usize) {
    let lost = proxy.lost();
    ask(stream, request, count).unwrap();
    eventually("the reply is lost", || proxy.lost() == lost + 1);
    let patience = stream.read_timeout().unwrap();
    let short = Some(Duration::from_millis(1));
    stream.set_read_timeout(short).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    stream.set_read_timeout(patience).unwrap();
}

fn lose(after: After, then: Then) -> Fault {
    Fault::LoseReplies { after, then }
}

#[test]
fn replies_are_lost_from_the_request_that_was_named() {
    let proxy = Proxy::to(echo());
    let stream = connect(&proxy);
    assert_eq!(ask(&stream, "a", 1).unwrap(), "a");

    proxy.set(lose(After::Requests(2), Then::Hang));
    assert_eq!(ask(&stream, "b", 1).unwrap(), "b");
    assert_eq!(ask(&stream, "c", 1).unwrap(), "c");
    ask_and_lose(&stream, &proxy, "d", 0);

    proxy.set(Fault::None);
    assert_eq!(ask(&stream, "e", 1).unwrap(), "e");
}

#[test]
fn a_connection_is_closed_when_its_reply_was_lost() {
    let proxy = Proxy::to(echo());
    let stream = connect(&proxy);
    proxy.set(lose(After::Requests(0), Then::Close));
    ask(&stream, "a", 1).unwrap_err();
    assert_eq!(proxy.lost(), 1);

    proxy.set(Fault::None);
    ask(&stream, "b", 1).unwrap_err();
    assert_eq!(ask(&connect(&proxy), "c", 1).unwrap(), "c");
}

#[test]
fn a_reply_is_cut_after_so_many_bytes() {
    let proxy = Proxy::to(echo());
    let stream = connect(&proxy);
    proxy.set(lose(After::Bytes(3), Then::Hang));
    ask_and_lose(&stream, &proxy, "abcdef", 3);
}

#[test]
fn a_cut_ends_old_connections_and_new_ones() {
    let proxy = Proxy::to(echo());
    let stream = connect(&proxy);
    assert_eq!(ask(&stream, "a", 1).unwrap(), "a");
    proxy.set(Fault::Cut);
    ask(&stream, "b", 1).unwrap_err();
    ask(&connect(&proxy), "c", 1).unwrap_err();
    proxy.set(Fault::None);
    assert_eq!(ask(&connect(&proxy), "d", 1).unwrap(), "d");
}

#[test]
fn a_delayed_reply_comes_later() {
    let proxy = Proxy::to(echo());
    let stream = connect(&proxy);
    let delay = Duration::from_millis(50);
    proxy.set(Fault::Delay(delay));
    let start = Instant::now();
    assert_eq!(ask(&stream, "a", 1).unwrap(), "a");
    assert!(start.elapsed() >= delay);
}

#[test]
fn new_connections_can_go_elsewhere() {
    let nobody = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let proxy = Proxy::to(port);
    ask(&connect(&proxy), "a", 1).unwrap_err();
    proxy.redirect(echo());
    assert_eq!(ask(&connect(&proxy), "b", 1).unwrap(), "b");
}

#[test]
fn dropping_it_ends_everything() {
    let proxy = Proxy::to(echo());
    let stream = connect(&proxy);
    assert_eq!(ask(&stream, "a", 1).unwrap(), "a");
    let port = proxy.port();
    drop(proxy);
    ask(&stream, "b", 1).unwrap_err();
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}

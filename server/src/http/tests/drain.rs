//! The end: what was begun is finished, and nothing else is begun.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use ringflake_kit::eventually;

use super::served::{Served, serve};
use super::wire::Wire;

const LONG: Duration = Duration::from_secs(60);

/// A connection whose request has begun: the front asks for the rest of it.
fn begun(served: &Served) -> Wire {
    let mut wire = served.connect();
    wire.send(
        "POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n\
         content-type: application/json\r\ncontent-length: 2\r\n\r\n",
    );
    assert_eq!(wire.reply().status, 100);
    wire
}

#[test]
fn a_request_that_was_begun_is_answered() {
    let served = serve(|_| {});
    let (mut begun, mut idle) = (begun(&served), served.connect());
    assert_eq!(idle.get("/livez").status, 200);
    let at = served.at;
    let ending = thread::spawn(move || served.end(LONG));
    // Whoever is idle is closed, and nobody else is let in.
    idle.assert_closed();
    eventually("the listener is closed", || TcpStream::connect(at).is_err());
    begun.send("{}");
    let reply = begun.reply();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["connection"], "close");
    begun.assert_closed();
    assert!(ending.join().unwrap(), "it ended by itself");
}

#[test]
fn a_request_that_never_ends_is_ended_at_the_deadline() {
    let served = serve(|_| {});
    let mut begun = begun(&served);
    assert!(!served.end(Duration::from_millis(50)));
    begun.assert_closed();
}

#[test]
fn a_front_that_nobody_uses_ends_at_once() {
    assert!(serve(|_| {}).end(LONG));
}

//! Clients that take their time. Each is ended by the server, whatever the test does.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::limits::{buffer_little, narrow};
use super::served::{Served, serve};
use crate::tls;
use crate::wire::Wire;

const SOON: Duration = Duration::from_secs(2);
const NEVER: Duration = Duration::from_secs(3600);

/// A busy machine may stop the client or the server for longer than [`SOON`], so that the
/// server closes the connection at another deadline than the one under test. A test then tries
/// again, but not more often than this.
const ATTEMPTS: u64 = 30;

/// Requests have little time, and silence has all.
fn impatient() -> Served {
    serve(|setup| {
        buffer_little(setup);
        setup.limits.request_time = SOON;
        setup.limits.idle_time = NEVER;
    })
}

/// Sends single bytes for as long as somebody is there.
fn trickle(wire: &Wire) -> thread::JoinHandle<()> {
    let mut stream = wire.stream.try_clone().unwrap();
    thread::spawn(move || {
        while stream.write_all(b"a").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    })
}

#[test]
fn a_head_that_never_ends_is_closed() {
    let served = impatient();
    served.connect().assert_closed();
    for start in ["G", "GET /livez HTTP/1.1\r\nhost: x\r\nx: "] {
        let mut wire = served.connect();
        wire.send(start);
        let trickling = trickle(&wire);
        wire.assert_closed();
        trickling.join().unwrap();
    }
}

/// The socket of a connection with TLS that has had an answer to this request.
fn answered_over_tls(served: &Served, method: &str, path: &str) -> TcpStream {
    let answered = |_| {
        let mut wire = served.connect().with_tls();
        wire.try_request(method, path, &[], "").ok()?;
        Some(wire.stream.sock)
    };
    (0..ATTEMPTS).find_map(answered).expect("a first response")
}

fn impatient_tls() -> Served {
    serve(|setup| {
        setup.tls = Some(tls::testing::server());
        setup.limits.request_time = SOON;
        setup.limits.idle_time = NEVER;
    })
}

#[test]
fn a_tls_record_that_never_ends_is_closed() {
    let served = impatient_tls();
    let mut socket = answered_over_tls(&served, "POST", "/v1/ids?namespace=orders");
    // Of application data, with a length of 16 KiB.
    let part = [&[0x17, 3, 3, 0x40, 0][..], &[0; 1000]].concat();
    socket.write_all(&part).unwrap();
    // Until the server closes.
    Wire::new(socket).read_to_end();
}

#[test]
fn a_tls_connection_without_an_authorized_request_is_closed() {
    let served = impatient_tls();
    let socket = answered_over_tls(&served, "GET", "/livez");
    Wire::new(socket).read_to_end();
}

#[test]
fn a_body_that_never_ends_is_refused_and_closed() {
    let served = impatient();
    for start in [
        "POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\n{",
        "POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n\
         9c40\r\n{",
    ] {
        let refused = |_| {
            let mut wire = served.connect();
            wire.send(start);
            let trickling = trickle(&wire);
            let reply = wire.try_reply();
            if let Ok(reply) = &reply {
                assert_eq!((reply.status, &*reply.problem()), (422, "invalid"));
                wire.read_to_end();
            }
            trickling.join().unwrap();
            reply.ok()
        };
        (0..ATTEMPTS).find_map(refused).expect("a response");
    }
    assert_eq!(served.counters().ids.load(Ordering::Relaxed), 0);
}

/// Also of a client that sends no more.
#[test]
fn an_answer_that_nobody_reads_ends() {
    for shutdown in [None, Some(Shutdown::Write)] {
        let served = impatient();
        served.namespaces.open("orders").unwrap();
        // On a busy machine the answer may not begin in time.
        let has_begun = (1..=ATTEMPTS).any(|attempt| {
            let mut wire = narrow(served.at);
            let take = "POST /v1/ids?namespace=orders&count=65536 HTTP/1.1\r\nhost: x\r\n";
            wire.send(format!("{take}connection: close\r\n\r\n"));
            if let Some(shutdown) = shutdown {
                // An error where the server has closed the connection already.
                let _ = wire.stream.shutdown(shutdown);
            }
            served.until(attempt, attempt);
            let reply = wire.try_reply().ok().filter(|reply| reply.status != 503);
            if let Some(reply) = &reply {
                assert_eq!((reply.status, reply.is_whole), (200, false));
            }
            reply.is_some()
        });
        assert!(has_begun);
    }
}

#[test]
fn silence_between_requests_ends() {
    let served = serve(|setup| {
        setup.limits.request_time = NEVER;
        setup.limits.idle_time = SOON;
    });
    let mut wire = served.connect();
    assert_eq!(wire.get("/livez").status, 200);
    wire.assert_closed();
}

/// Nor does it hold up the end of the server.
#[test]
fn a_handshake_that_never_ends_is_closed() {
    for (request_time, ends_first) in [(300, false), (3_600_000, true)] {
        let served = serve(|setup| {
            setup.tls = Some(tls::testing::server());
            setup.limits.request_time = Duration::from_millis(request_time);
        });
        let mut wire = served.connect();
        wire.send([22]);
        if ends_first {
            served.until(1, 0);
            assert!(served.end(Duration::from_secs(60)));
        }
        wire.assert_closed();
    }
}

#[test]
fn a_second_head_has_no_more_time_than_the_first() {
    let served = impatient();
    let answered = |_| {
        let mut wire = served.connect();
        let reply = wire.try_request("GET", "/livez", &[], "").ok()?;
        assert_eq!(reply.status, 200);
        Some(wire)
    };
    let mut wire = (0..ATTEMPTS).find_map(answered).expect("a first response");
    wire.send("GET /livez HTTP/1.1\r\nx: ");
    let trickling = trickle(&wire);
    wire.assert_closed();
    trickling.join().unwrap();
}

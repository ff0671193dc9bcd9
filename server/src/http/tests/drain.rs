//! The end: what was begun is finished, and nothing else is begun.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::served::{serve, serve_ahead, serve_namespaces};
use crate::namespaces::OpenError;
use crate::wire::Wire;
use ringflake_kit::eventually;

const LONG: Duration = Duration::from_secs(60);

/// For how long new requests are answered, where a busy machine must not miss that.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn clients_that_come_back_at_once_do_not_keep_the_listener_open() {
    let mut served = serve(|_| {});
    let at = served.at;
    let client = thread::spawn(move || {
        let mut connections = 0;
        // Until nobody listens any more. Often enough, and without using up the ports.
        while let Ok(stream) = TcpStream::connect(at) {
            drop(stream);
            connections += 1;
            thread::sleep(Duration::from_millis(20));
        }
        connections
    });
    served.until_accepted(5);
    let ended = served.end_server(Duration::from_secs(20));
    assert!(ended, "the drain is not over after its time");
    assert!(client.join().unwrap() >= 5);
}

#[test]
fn kept_and_new_connections_are_answered_while_the_server_drains() {
    let served = serve(|setup| setup.drain_time = PATIENCE);
    let mut kept = served.connect();
    assert_eq!(kept.get("/livez").headers.get("connection"), None);
    served.drain.begin();
    for mut wire in [kept, served.connect()] {
        let reply = wire.post("/v1/ids?namespace=orders", &[]);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["connection"], "close");
        wire.assert_closed();
    }
    assert!(served.end(LONG));
}

/// Asks until an answer says that its connection closes, twice. Returns how many were
/// answered, or the error.
fn keep_busy(at: SocketAddr) -> std::io::Result<u64> {
    let mut answered = 0;
    for _ in 0..2 {
        let mut wire = Wire::connect(at);
        loop {
            let reply = wire.try_request("POST", "/v1/ids?namespace=orders", &[], "")?;
            assert_eq!((reply.status, reply.is_whole), (200, true));
            answered += 1;
            if reply.headers.contains_key("connection") {
                break;
            }
        }
    }
    Ok(answered)
}

#[test]
fn busy_clients_that_honour_connection_close_see_no_reset() {
    const CLIENTS: u64 = 40;

    let served = serve(|setup| setup.drain_time = PATIENCE);
    let at = served.at;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| thread::spawn(move || keep_busy(at)))
        .collect();
    eventually("all clients are busy", || {
        served.counters().ids.load(Ordering::Relaxed) > 10 * CLIENTS
    });
    assert!(served.end(LONG));
    for client in clients {
        assert!(client.join().unwrap().unwrap() > 1);
    }
}

#[test]
fn a_request_that_never_ends_is_ended_at_the_deadline() {
    // It waits for IDs, which this clock lets nobody have.
    let (served, _clock) = serve_ahead(100..200);
    let mut wire = served.connect();
    let take = "/v1/ids?namespace=ahead&count=15360";
    wire.exactly("POST", take, &["host: x"]);
    let generator = served.namespaces.get("ahead").unwrap().generator.clone();
    eventually("it has taken all that may be borrowed", || {
        generator.stats().issued >= 10 << 10
    });
    assert!(!served.end(Duration::from_millis(50)));
    wire.assert_closed();
}

#[test]
fn a_store_that_does_not_answer_does_not_hold_the_end_up() {
    let (asked, waits) = mpsc::channel();
    let (answer, never) = mpsc::channel::<()>();
    let channels = Mutex::new((asked, never));
    let mut served = serve_namespaces(
        |_| {},
        move |_, _| {
            let (asked, never) = &*channels.lock().unwrap();
            asked.send(()).unwrap();
            never.recv().unwrap_err();
            Err(OpenError::Unknown)
        },
    );
    let mut wire = served.connect();
    wire.exactly("POST", "/v1/ids?namespace=orders", &["host: x"]);
    waits.recv_timeout(LONG).unwrap();
    let (ended, ends) = mpsc::channel();
    let ending = thread::spawn(move || ended.send(served.end_server(Duration::ZERO)));
    // Not by itself.
    assert_eq!(ends.recv_timeout(LONG), Ok(false));
    wire.assert_closed();
    drop(answer);
    ending.join().unwrap().unwrap();
}

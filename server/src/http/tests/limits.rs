//! Connections, and what a full table does.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ringflake_kit::eventually;
use socket2::{Domain, SockRef, Socket, Type};

use super::super::Setup;
use super::super::buffer_permit::{ANSWER_BYTES, BYTES_PER_TLS_STRANGER, STRANGER_BYTES};
use super::served::serve;
use crate::access::Access;
use crate::buffer_budget::STRANGER_PARTS;
use crate::listener::Listener;
use crate::tls;
use crate::wire::{PATIENCE, TlsWire, Wire};

/// From this address of the machine itself.
pub(super) fn connect_from(from: [u8; 4], to: SocketAddr) -> Wire {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from = SocketAddr::from((Ipv4Addr::from(from), 0));
    socket.bind(&from.into()).unwrap();
    socket.connect(&to.into()).unwrap();
    Wire::tcp(TcpStream::from(socket))
}

#[test]
#[cfg(target_os = "linux")]
fn strangers_of_one_address_leave_tls_to_others() {
    /// Connections of one address before their first authorized request.
    const MOST: usize = STRANGER_BYTES / STRANGER_PARTS / BYTES_PER_TLS_STRANGER;
    const PART_OF_A_HEAD: &str = "POST /v1/ids HTTP/1.1\r\nhost: x\r\nx: ";
    /// Of a TLS record of 16 KiB.
    const PART_OF_A_RECORD: [u8; 6] = [0x17, 3, 3, 0x40, 0, 0];

    let served = serve(|setup| {
        setup.tls = Some(tls::testing::server());
        setup.rights = Access::by_name();
    });
    let connect = |from| connect_from(from, served.at).with_tls();
    let [one, another] = [[127, 0, 0, 1], [127, 0, 0, 2]];
    let stranger = |number: usize| {
        let mut wire = connect(one);
        wire.send(PART_OF_A_HEAD);
        if number % 2 == 1 {
            wire.stream.sock.write_all(&PART_OF_A_RECORD).unwrap();
        }
        wire
    };
    let take = |wire: &mut TlsWire| {
        let token = ["authorization: Bearer take"];
        wire.post("/v1/ids?namespace=orders", &token).status
    };
    let mut strangers: Vec<_> = (1..MOST).map(stranger).collect();
    // An authorized connection returns its permit.
    let mut users = Vec::new();
    for _ in 0..3 {
        let mut user = connect(one);
        assert_eq!(take(&mut user), 200);
        users.push(user);
    }
    strangers.push(stranger(0));
    // The handshake of one more waits for a permit.
    let mut late = connect(one);
    let wait = Some(Duration::from_millis(500));
    late.stream.sock.set_read_timeout(wait).unwrap();
    let error = late.stream.write_all(b"GET").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(take(&mut connect(another)), 200);
    assert_eq!(take(&mut users[0]), 200);
    drop(strangers.pop());
    late.stream.sock.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(take(&mut late), 200);
}

/// Has the sockets of this server buffer little, so that the server itself keeps most of an
/// answer that is not read.
pub(super) fn buffer_little(setup: &mut Setup) {
    let Listener::Tcp(listener) = &setup.listeners[0] else {
        panic!("the first listener is TCP");
    };
    SockRef::from(listener).set_send_buffer_size(4096).unwrap();
}

/// A connection whose socket buffers little as well.
pub(super) fn narrow(to: SocketAddr) -> Wire {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&to.into()).unwrap();
    Wire::tcp(TcpStream::from(socket))
}

/// The head of the largest answer, of which nothing more is read.
fn begun(mut wire: Wire) -> Wire {
    wire.send("POST /v1/ids?namespace=orders&count=65536 HTTP/1.1\r\nhost: x\r\n\r\n");
    wire.stream.read_exact(&mut [0]).unwrap();
    wire
}

#[test]
fn a_client_that_does_not_read_uses_half_of_the_memory() {
    /// Of a large answer in JSON.
    const BYTES: usize = 23 << 16;

    let served = serve(|setup| {
        buffer_little(setup);
    });
    served.namespaces.open("orders").unwrap();
    let most = ANSWER_BYTES / 2 / BYTES;
    let slow: Vec<_> = (0..most).map(|_| begun(narrow(served.at))).collect();
    // Requests that need little memory are served as before, and so are other clients.
    let mut wire = served.connect();
    assert_eq!(wire.post("/v1/ids?namespace=orders", &[]).status, 200);
    let mut other = connect_from([127, 0, 0, 2], served.at);
    let path = "/v1/ids?namespace=orders&count=65536";
    assert_eq!(other.post(path, &[]).status, 200);
    // A large answer waits for memory.
    wire.exactly("POST", path, &["host: x"]);
    drop(slow);
    assert_eq!(wire.reply().status, 200);
}

#[test]
fn a_client_that_is_gone_ends_its_connection() {
    let served = serve(|_| {});
    drop(begun(served.connect()));
    served.until(1, 1);
}

#[test]
fn a_client_that_sends_no_more_is_answered() {
    let served = serve(|_| {});
    for count in [1, 1024, 65_536] {
        for end in ["", "connection: close\r\n"] {
            for _ in 0..20 {
                let mut wire = served.connect();
                wire.send(format!(
                    "POST /v1/ids?namespace=orders&count={count} HTTP/1.1\r\nhost: x\r\n{end}\r\n"
                ));
                wire.stream.shutdown(Shutdown::Write).unwrap();
                let reply = wire.reply();
                assert_eq!((reply.status, reply.is_whole), (200, true), "{count}");
                assert_eq!(reply.json()["ids"].as_array().unwrap().len(), count);
                wire.assert_closed();
            }
        }
    }
}

#[test]
fn a_unix_socket_is_served_as_well() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("http.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let served = serve(|setup| {
        setup.listeners.push(Listener::Unix(listener));
        setup.limits.connections_per_client = 1;
    });
    let mut one = Wire::unix(&path);
    assert_eq!(one.post("/v1/ids?namespace=orders", &[]).status, 200);
    // Its user is a client of its own.
    let mut again = Wire::unix(&path);
    assert_eq!(again.reply().problem(), "busy");
    assert_eq!(served.counters().turned_away.load(Ordering::Relaxed), 1);
    assert_eq!(served.connect().get("/livez").status, 200);
}

#[test]
fn a_full_table_turns_away_and_recovers() {
    let served = serve(|setup| setup.limits.connections = 2);
    let (mut one, two) = (served.connect(), served.connect());
    let mut third = served.connect();
    let reply = third.reply();
    assert_eq!((reply.status, &*reply.problem()), (503, "busy"));
    assert_eq!(reply.headers["retry-after"], "1");
    assert_eq!(reply.headers["connection"], "close");
    third.assert_closed();
    // Open connections are served as before.
    let metrics = one.get("/metrics").text();
    let away = "ringflake_server_connections_turned_away_total{front=\"http\"} 1\n";
    assert!(metrics.contains(away), "{metrics}");
    drop(two);
    eventually("the place is free again", || {
        let mut wire = served.connect();
        wire.send("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
        wire.try_reply().is_ok_and(|reply| reply.status == 200)
    });
}

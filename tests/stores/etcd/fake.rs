//! Members that answer what a test wants: clocks that are off, none at all, and
//! what a proxy says.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use ringflake::lease::{LeaseStore, Namespace, StoreError};

use crate::kit::{acquire, ambiguous, made, now, serve, space, take, unavailable};
use crate::served::{Served as _, store};
use ringflake_kit::proxy::{Fault, Proxy};
use ringflake_kit::server::{Etcd, Lent, TestServer as _};

/// A server that passes each request on to a member, and each reply through
/// `change`, and the port that it is at. One that is changed to nothing ends the
/// connection. The server ends with the test's process.
fn before(member: u16, change: impl Fn(&str, String) -> String + Send + Sync + 'static) -> u16 {
    serve(move |mut client| {
        let mut server = TcpStream::connect(("127.0.0.1", member)).unwrap();
        while let Some(request) = message(&client) {
            server.write_all(request.as_bytes()).unwrap();
            let Some(reply) = message(&server) else { break };
            let reply = change(&request, reply);
            if reply.is_empty() || client.write_all(reply.as_bytes()).is_err() {
                break;
            }
        }
    })
}

/// The next request or reply, as it came. Its body has a length, or comes in chunks: etcd sends
/// replies of more than 2 KiB so.
fn message(mut stream: &TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    let mut read_up_to = |end: &[u8], bytes: &mut Vec<u8>| {
        while !bytes.ends_with(end) {
            stream.read_exact(&mut byte).ok()?;
            bytes.push(byte[0]);
        }
        Some(())
    };
    read_up_to(b"\r\n\r\n", &mut bytes)?;
    let head = String::from_utf8(bytes.clone()).unwrap().to_lowercase();
    if head.contains("transfer-encoding: chunked") {
        // No JSON has such an end.
        read_up_to(b"\r\n0\r\n\r\n", &mut bytes)?;
        return Some(String::from_utf8(bytes).unwrap());
    }
    let length = head
        .split_once("content-length: ")
        .and_then(|(_, rest)| rest.split_once("\r\n"))
        .map_or(0, |(digits, _)| digits.parse().unwrap());
    let start = bytes.len();
    bytes.resize(start + length, 0);
    stream.read_exact(&mut bytes[start..]).ok()?;
    Some(String::from_utf8(bytes).unwrap())
}

fn is_write(request: &str) -> bool {
    request.contains("request_put")
}

fn at(port: u16) -> Box<dyn LeaseStore> {
    store(&format!("etcd://127.0.0.1:{port}"))
}

fn blocks(etcd: &Etcd, space: &Namespace) -> usize {
    etcd.store().list(space).unwrap().blocks.len()
}

#[test]
fn a_member_whose_clock_is_off_grants_nothing() {
    let etcd = started!(Lent::<Etcd>::start());
    let space = made(&mut etcd.store(), "off", 5);
    let proxy = Proxy::to(etcd.port());
    let ahead = 20 * 365 * 86_400;
    proxy.set(Fault::Dates { ahead });
    let mut store = etcd.store_through(&proxy);
    match acquire(&mut store, &space).unwrap_err() {
        StoreError::ClockSkew { store_unix_ms, .. } => {
            let expected = now().saturating_add_signed(ahead * 1_000);
            assert!(store_unix_ms.abs_diff(expected) < 60_000);
        }
        other => panic!("{other}"),
    }
    let skew = store.check(&space, now()).unwrap().skew_ms().unwrap();
    assert!(skew > 86_400_000, "{skew}");
    assert_eq!(blocks(&etcd, &space), 0);
}

#[test]
fn a_member_that_tells_no_date_grants_nothing() {
    let etcd = started!(Lent::<Etcd>::start());
    let space = made(&mut etcd.store(), "dateless", 5);
    let port = before(etcd.port(), |_, reply| {
        reply.replace("\r\nDate: ", "\r\nNo: ")
    });
    unavailable(acquire(&mut at(port), &space)).says("no date");
    assert_eq!(blocks(&etcd, &space), 0);
}

#[test]
fn a_proxys_word_on_a_write_is_no_word_of_etcd() {
    let etcd = started!(Lent::<Etcd>::start());
    let space = made(&mut etcd.store(), "proxy", 5);
    // More than fits into a reply that is not in chunks.
    for _ in 0..8 {
        acquire(&mut etcd.store(), &space).unwrap();
    }
    let refuse_writes = |status: &'static str, body: &'static str| {
        before(etcd.port(), move |request, reply| {
            if !is_write(request) {
                return reply;
            }
            let length = body.len();
            format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}")
        })
    };
    let timed_out = r#"{"code":14,"message":"etcdserver: request timed out"}"#;
    for (status, body) in [("503", timed_out), ("502", "<html>"), ("200", "no json")] {
        let port = refuse_writes(status, body);
        ambiguous(acquire(&mut at(port), &space));
    }
    // Each was done before the proxy replied.
    assert_eq!(blocks(&etcd, &space), 8 + 3);

    let full = r#"{"code":8,"message":"etcdserver: mvcc: database space exceeded"}"#;
    let port = refuse_writes("429", full);
    unavailable(acquire(&mut at(port), &space)).says("space exceeded");
}

/// A write that is answered by another cluster than the one that was read.
#[test]
fn a_cluster_replaced_between_read_and_write_is_ambiguous() {
    let etcd = started!(Lent::<Etcd>::start());
    let space = made(&mut etcd.store(), "replaced", 5);
    let port = before(etcd.port(), |request, reply| {
        if !is_write(request) {
            return reply;
        }
        // As many digits as before, and as large but for the last.
        let (head, rest) = reply.split_once("\"cluster_id\":\"").unwrap();
        let (id, tail) = rest.split_once('"').unwrap();
        let (most, last) = id.split_at(id.len() - 1);
        let other = if last == "0" { "1" } else { "0" };
        format!("{head}\"cluster_id\":\"{most}{other}\"{tail}")
    });
    ambiguous(acquire(&mut at(port), &space)).says("replaced");
}

#[test]
fn a_server_without_the_gateway_is_named_as_such() {
    let off = ["--enable-grpc-gateway=false"];
    let etcd = started!(Etcd::start_with(1, &off));
    let answer = unavailable(etcd.store().list(&space("orders")));
    answer.says("--enable-grpc-gateway");
}

#[test]
fn a_read_that_breaks_is_repeated() {
    let etcd = started!(Lent::<Etcd>::start());
    let space = made(&mut etcd.store(), "breaks", 5);
    let replies = AtomicUsize::new(0);
    let port = before(etcd.port(), move |_, reply| {
        match replies.fetch_add(1, SeqCst) {
            0 => String::new(),
            _ => reply,
        }
    });
    take(&mut at(port), &space, 60);
    assert_eq!(blocks(&etcd, &space), 1);
}

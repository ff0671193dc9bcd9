//! Members that answer what a test wants: clocks that are off, none at all, and
//! what a proxy says.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use ringflake::lease::{Acquire, Fence, Floor, LeaseStore, Namespace, StoreError};

use crate::kit::{
    acquire, already_initialised, ambiguous, begin, exhausted, fenced, in_time, init, limits, made,
    now, renew, serve, space, take, tick, unavailable,
};
use crate::served::{Served as _, store};
use ringflake_kit::eventually;
use ringflake_kit::server::{Etcd, Lent, Reachable as _};

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

fn with_date(reply: &str, date: Option<&str>) -> String {
    let (head, rest) = reply.split_once("\r\nDate: ").unwrap();
    let (_, rest) = rest.split_once("\r\n").unwrap();
    match date {
        Some(date) => format!("{head}\r\nDate: {date}\r\n{rest}"),
        None => format!("{head}\r\n{rest}"),
    }
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
    let year_2045 = "Sun, 01 Jan 2045 00:00:00 GMT";
    let port = before(etcd.port(), move |_, reply| {
        with_date(&reply, Some(year_2045))
    });
    match acquire(&mut at(port), &space).unwrap_err() {
        StoreError::ClockSkew { store_unix_ms, .. } => {
            let midnight = 2_366_841_600_000;
            assert!(store_unix_ms <= midnight && store_unix_ms > midnight - 60_000);
        }
        other => panic!("{other}"),
    }
    let skew = at(port).check(&space, now()).unwrap().skew_ms().unwrap();
    assert!(skew > 86_400_000, "{skew}");
    assert_eq!(blocks(&etcd, &space), 0);
}

#[test]
fn a_member_that_tells_no_date_grants_nothing() {
    let etcd = started!(Lent::<Etcd>::start());
    let space = made(&mut etcd.store(), "dateless", 5);
    let port = before(etcd.port(), |_, reply| with_date(&reply, None));
    unavailable(acquire(&mut at(port), &space)).says("no date");
    assert_eq!(blocks(&etcd, &space), 0);
}

#[test]
fn a_client_whose_clock_is_within_the_second_is_not_refused() {
    let etcd = started!(Lent::<Etcd>::start());
    let space = space("second");
    let limits = limits().with_skew(Duration::from_secs(5));
    in_time(|| etcd.store().init(&space, &begin().with_limits(limits))).unwrap();
    // The limit is 5 s, and the date may be a second old.
    for (ahead_ms, granted) in [
        (-3_000, true),
        (3_500, true),
        (-7_000, false),
        (7_500, false),
    ] {
        // What takes longer, as on a busy machine, says nothing of the limit.
        eventually("an answer comes within a second", || {
            let begun = Instant::now();
            let ask = Acquire::new(1, 10, now().saturating_add_signed(ahead_ms));
            let answer = etcd.store().acquire(&space, &ask);
            if begun.elapsed() > Duration::from_secs(1) {
                return false;
            }
            match answer {
                Ok(_) => assert!(granted, "{ahead_ms}"),
                Err(StoreError::ClockSkew { .. }) => assert!(!granted, "{ahead_ms}"),
                Err(other) => panic!("{other}"),
            }
            true
        });
    }
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

/// The transaction must not be done on what was read before.
#[test]
fn what_changes_between_read_and_write_is_taken_in() {
    let etcd = started!(Lent::<Etcd>::start());
    // One block for all, and somebody who does something at each first reading.
    type Deed = fn(&mut dyn LeaseStore, &Namespace);
    let meddle = |space: &Namespace, deed: Deed| {
        let (url, space) = (etcd.url(), space.clone());
        let done = AtomicBool::new(false);
        at(before(etcd.port(), move |_, reply| {
            if !done.swap(true, SeqCst) {
                deed(&mut store(&url), &space);
            }
            reply
        }))
    };
    let mut direct = etcd.store();
    let raise: Deed = |store, space| {
        let floor = Floor::Tick(tick(space) + 500);
        store.raise_floor(space, floor, now()).unwrap();
    };

    let space = made(&mut direct, "renew-floor", 17);
    let grant = take(&mut direct, &space, 60);
    let fence = fenced(renew(&mut meddle(&space, raise), &space, &grant));
    assert!(matches!(fence, Fence::Floor { .. }), "{fence}");

    let space = made(&mut direct, "acquire-floor", 17);
    let grant = take(&mut meddle(&space, raise), &space, 60);
    let floor = direct.list(&space).unwrap().record.floor;
    assert_eq!(grant.ticks.start, floor);

    let space = made(&mut direct, "acquire-block", 17);
    let mut meddled = meddle(&space, |store, space| drop(take(store, space, 60)));
    exhausted(acquire(&mut meddled, &space));

    let space = made(&mut direct, "renew-block", 17);
    let grant = take(&mut direct, &space, 60);
    let mut meddled = meddle(&space, |store, space| {
        let block = store.list(space).unwrap().blocks.remove(0);
        store.release(space, block.block, block.epoch).unwrap();
        take(store, space, 60);
    });
    let fence = fenced(renew(&mut meddled, &space, &grant));
    assert!(matches!(fence, Fence::Epoch { .. }), "{fence}");

    let space = made(&mut direct, "raise", 17);
    let low = tick(&space) + 100;
    let raised = meddle(&space, raise).raise_floor(&space, Floor::Tick(low), now());
    assert!(raised.unwrap() > low, "the higher floor stays");

    let space = self::space("init");
    already_initialised(meddle(&space, init).init(&space, &begin()));
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

#[test]
fn a_server_without_the_gateway_is_named_as_such() {
    let off = ["--enable-grpc-gateway=false"];
    let etcd = started!(Etcd::start_with(1, &off));
    let answer = unavailable(etcd.store().list(&space("orders")));
    answer.says("--enable-grpc-gateway");
}

//! TLS on the TCP socket.

use std::collections::HashSet;
use std::io::Write as _;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use redis_protocol::resp2::types::OwnedFrame;
use ringflake_kit::eventually;

use super::kit::{incr, request, serve};
use super::{distinct, integers};
use crate::access::Access;
use crate::limits::Limits;
use crate::tls;

#[test]
fn requests_may_be_cut_by_records_anywhere() {
    let setup = serve(|it| it.tls = Some(tls::testing::server()));
    let mut client = setup.connect_tls();
    let mut ids = Vec::new();
    // A byte a record, some bytes, and a pipeline of several records.
    for (requests, bytes) in [(3, 1), (50, 7), (2_000, 100_000)] {
        for piece in incr("orders").repeat(requests).chunks(bytes) {
            client.send(piece);
        }
        ids.extend(integers(&client.replies(requests)));
    }
    let distinct: HashSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (2_053, 2_053));
}

#[test]
fn a_reply_of_many_records_is_whole() {
    let setup = serve(|it| it.tls = Some(tls::testing::server()));
    let mut client = setup.connect_tls();
    // Several times what the sockets have room for, and asked for before any of it is read.
    client.send(request(&["LPOP", "orders", "60000"]).repeat(16));
    distinct(client.ask(&request(&["ECHO", "end"]), 16));
    assert_eq!(client.replies(1), [OwnedFrame::BulkString(b"end".to_vec())]);
}

#[test]
fn a_connection_ends_with_the_goodbye_of_tls() {
    let setup = serve(|it| it.tls = Some(tls::testing::server()));
    let mut client = setup.connect_tls();
    client.send(request(&["QUIT"]));
    // Without it the end of file would be an error, as anybody on the way can cause one.
    assert_eq!(client.read_to_end(), b"+OK\r\n");
}

#[test]
fn a_handshake_has_the_time_of_a_request() {
    let limits = Limits {
        request_time: Duration::from_secs(2),
        ..Limits::default()
    };
    let setup = serve(|it| {
        it.tls = Some(tls::testing::server());
        it.limits = limits;
    });
    // One that is done, behind which there is silence as anywhere. A busy machine may need more
    // than one attempt.
    let mut done = None;
    eventually("a handshake is done in time", || {
        let mut client = setup.connect_tls();
        let sent = client.try_send(request(&["PING"]));
        let is_done = sent.is_ok() && client.try_replies(1).is_ok();
        done = is_done.then_some(client);
        is_done
    });
    let mut client = done.unwrap();
    // Without its first byte, and without its last. The idle timeout is 300 s, and a read waits
    // for 60 s at most.
    let start = Instant::now();
    for (mut begun, first) in [
        (setup.connect(true), &b""[..]),
        (setup.connect(true), &[22, 3, 1]),
    ] {
        begun.send(first);
        begun.assert_closed();
    }
    // If the silence were that of a handshake, the first client would be closed by then.
    std::thread::sleep(Duration::from_millis(2_200).saturating_sub(start.elapsed()));
    client.ask(&request(&["PING"]), 1);
}

#[test]
fn without_tls_there_is_no_reply_where_it_is_due() {
    let setup = serve(|it| it.tls = Some(tls::testing::server()));
    let mut plain = setup.connect_tcp();
    // Long enough for a header of TLS, which it is not.
    plain.send(incr("orders"));
    // An error where the server has closed the connection already.
    let _ = plain.stream.shutdown(Shutdown::Write);
    let end = plain.read_to_end();
    assert!(!end.starts_with(b":"), "{}", end.escape_ascii());
    assert_eq!(setup.count(|it| &it.requests), 0);
    // One whose handshake goes on until the drain stops nobody.
    let mut silent = setup.connect(true);
    silent.stream.write_all(&[22, 3, 1]).unwrap();
    // On the Unix socket there is none.
    let mut local = setup.connect(false);
    integers(&local.ask(&incr("orders"), 1));
    assert!(setup.end());
}

#[test]
fn a_permit_for_unauthenticated_connections_is_given_back() {
    let setup = serve(|it| {
        it.tls = Some(tls::testing::server());
        it.rights = Access::by_name();
    });
    let free = || setup.shared().budget.free_tls();
    let all = free();
    let mut client = setup.connect_tls();
    client.ask(&request(&["PING"]), 1);
    assert_eq!(free(), all - 1);
    client.ask(&request(&["AUTH", "take"]), 1);
    // The reply is sent a moment before.
    eventually("an authenticated connection has no permit", || {
        free() == all
    });
    let mut stranger = setup.connect_tls();
    stranger.ask(&request(&["PING"]), 1);
    assert_eq!(free(), all - 1);
    drop(stranger);
    eventually("a closed connection has no permit", || free() == all);
}

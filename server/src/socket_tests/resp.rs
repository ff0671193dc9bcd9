//! The Redis protocol over sockets.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use redis_protocol::resp2::types::OwnedFrame;
use ringflake_kit::eventually;

use super::ATTEMPTS;
use super::served::{TLS, serve};
use super::wire::{PATIENCE, Wire, incr, request};
use crate::access::Access;
use crate::config::Protocol::Resp;

/// All IDs of replies to `INCR`.
fn integers(replies: &[OwnedFrame]) -> Vec<i64> {
    let of = |reply: &OwnedFrame| match reply {
        OwnedFrame::Integer(number) => *number,
        other => panic!("{other:?}"),
    };
    replies.iter().map(of).collect()
}

/// The IDs of replies to `LPOP`, each once.
fn distinct(replies: Vec<OwnedFrame>) -> HashSet<Vec<u8>> {
    let mut seen = HashSet::new();
    for reply in replies {
        let OwnedFrame::Array(ids) = reply else {
            panic!("{reply:?}")
        };
        for id in ids {
            let OwnedFrame::BulkString(id) = id else {
                panic!("{id:?}")
            };
            assert!(seen.insert(id));
        }
    }
    seen
}

fn error(reply: &OwnedFrame) -> &str {
    match reply {
        OwnedFrame::Error(line) => line,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_are_read_as_the_settings_say() {
    let served = serve("resp.key-prefix = 'app:'\nresp.replace-colons = '.'");
    integers(&served.connect(Resp).ask(&incr("app:eu:orders"), 1));
    assert!(served.server().namespaces.get("eu.orders").is_some());
}

#[test]
fn replies_come_in_the_order_of_requests() {
    let served = serve("");
    let mut client = served.connect(Resp);
    let mut sent = Vec::new();
    // Runs of each length, of namespaces that alternate and are not open, between echoes.
    for round in 0..60 {
        let name = ["a", "b", "c"][round % 3];
        sent.extend(incr(name).repeat(round % 7));
        sent.extend(request(&["ECHO", &round.to_string()]));
        sent.extend(request(&["LPOP", name]));
        sent.extend(request(&["LPOP", name, &round.to_string()]));
        sent.extend(request(&["NONE"]));
    }
    // In pieces that end inside of requests.
    for piece in sent.chunks(13) {
        client.send(piece);
    }
    for round in 0..60 {
        integers(&client.replies(round % 7));
        let replies = client.replies(4);
        let echo = OwnedFrame::BulkString(round.to_string().into_bytes());
        assert_eq!(replies[0], echo);
        let is_string = matches!(replies[1], OwnedFrame::BulkString(_));
        assert!(is_string, "{replies:?}");
        let OwnedFrame::Array(ids) = &replies[2] else {
            panic!("{replies:?}")
        };
        assert_eq!(ids.len(), round);
        assert!(error(&replies[3]).starts_with("ERR unknown command 'NONE'"));
    }
}

#[test]
fn a_client_that_does_not_read_stops_nobody() {
    let served = serve("resp.workers = 1");
    let mut deaf = served.connect(Resp);
    // More than the sockets have room for.
    deaf.send(request(&["LPOP", "orders", "60000"]).repeat(24));
    let mut other = served.connect(Resp);
    for _ in 0..100 {
        other.take(Resp);
    }
    // All of it is there once the client reads, and each ID once.
    assert_eq!(distinct(deaf.replies(24)).len(), 24 * 60_000);
}

#[test]
fn a_silence_is_not_counted_to_the_request_after_it() {
    const REQUEST_TIME: Duration = Duration::from_secs(1);

    /// Whether an ID came. Without one, the time of the request itself must have passed.
    fn is_answered(ask: impl FnOnce() -> io::Result<Vec<OwnedFrame>>) -> bool {
        let began = Instant::now();
        // An error frame says that its namespace was not opened in time.
        let is_id = |replies: Vec<OwnedFrame>| matches!(replies[..], [OwnedFrame::Integer(_)]);
        let is_answered = ask().is_ok_and(is_id);
        // The server counts in ticks.
        let is_late = began.elapsed() >= REQUEST_TIME / 2;
        assert!(is_answered || is_late, "the silence was counted");
        is_answered
    }

    let served = serve("resp.workers = 1\nlimits.request-time = '1s'");
    let attempt = |number: u64| {
        let [mut half, mut fresh, mut other] = [(); 3].map(|()| served.connect(Resp));
        for wire in [&mut half, &mut fresh, &mut other] {
            if !wire.try_take(Resp).unwrap_or(false) {
                return false;
            }
        }
        // If it were counted, nothing would be left for the request.
        std::thread::sleep(REQUEST_TIME + Duration::from_millis(100));
        let request = incr("orders");
        let is_whole_answered = is_answered(|| {
            half.try_send(&request[..10])?;
            // Turns of the event loop, which has the half meanwhile.
            for _ in 0..3 {
                other.try_take(Resp)?;
            }
            half.try_send(&request[10..])?;
            half.try_replies(1)
        });
        // As is one that waits for its namespace, which each attempt has to itself.
        let is_fresh_answered = is_answered(|| {
            fresh.try_send(incr(&format!("fresh-{number}")))?;
            fresh.try_replies(1)
        });
        is_whole_answered && is_fresh_answered
    };
    // A busy machine may need longer than that for a request.
    assert!((0..ATTEMPTS).any(attempt), "none was answered in time");
}

#[test]
fn a_client_that_has_sent_nothing_yet_may_be_silent_as_any_other() {
    let served = serve("limits.request-time = '50ms'\nlimits.idle-time = '1h'");
    let mut late = served.connect(Resp);
    // If its silence were that of a request, it would be closed by then.
    std::thread::sleep(Duration::from_millis(300));
    late.ask(&request(&["PING"]), 1);
    // From the first byte on, it is a request.
    let mut half = served.connect(Resp);
    half.send(b"*");
    half.assert_closed();
}

#[test]
fn malformed_bytes_get_an_error_and_the_end() {
    let served = serve("");
    let mut client = served.connect(Resp);
    // Nobody reads what follows, and the replies arrive all the same. A client that a busy machine
    // stops meanwhile may find the connection closed before it has sent all of it.
    let (before, behind) = (incr("orders").repeat(3), incr("orders").repeat(10_000));
    let _ = client.try_send([&before, &b"*1\r\n:5\r\n"[..], &behind].concat());
    let replies = client.replies(4);
    integers(&replies[..3]);
    let expected = "ERR Protocol error: expected '$', got ':'";
    assert_eq!(error(&replies[3]), expected);
    client.assert_closed();
}

#[test]
fn a_drain_answers_what_has_come_and_closes() {
    let mut served = serve("");
    let mut idle = served.connect_unix(Resp);
    idle.ask(&request(&["PING"]), 1);
    let mut half = served.connect(Resp);
    let mut sent = incr("orders").repeat(2);
    let rest = sent.split_off(sent.len() - 5);
    integers(&half.ask(&sent, 1));
    let mut busy = served.connect(Resp);
    // More than the sockets have room for.
    let long = request(&["LPOP", "orders", "60000"]).repeat(16);
    busy.send([long, incr("orders").repeat(100)].concat());
    eventually("three requests are answered", || {
        served.count(Resp, |it| &it.requests) >= 3
    });
    let reading = std::thread::spawn(move || {
        idle.assert_closed();
        half.send(&rest[..1]);
        // Longer than new requests are read.
        std::thread::sleep(Duration::from_millis(700));
        // The next request has begun too late.
        integers(&half.ask(&[&rest[1..], b"*"].concat(), 1));
        half.assert_closed();
        integers(&busy.replies(116)[16..]);
        busy.assert_closed();
    });
    assert!(served.stop(PATIENCE).has_answered_all);
    reading.join().unwrap();
}

#[test]
fn a_drain_leaves_a_deaf_client_at_its_deadline() {
    let mut served = serve("");
    let mut deaf = served.connect(Resp);
    deaf.send(request(&["LPOP", "orders", "60000"]).repeat(16));
    eventually("it is answered", || {
        served.count(Resp, |it| &it.requests) > 0
    });
    let stopped = served.stop(Duration::from_millis(20));
    assert!(!stopped.has_answered_all);
    // It has a part, and then the end.
    assert!(deaf.read_to_end().len() < 16 * 60_000 * 20);
}

#[test]
fn a_client_that_is_quiet_when_the_server_drains_gets_no_reset() {
    let ends_well = || {
        let mut served = serve("");
        let mut client = served.connect(Resp);
        client.take(Resp);
        let since = Instant::now();
        served.server().drain.begin();
        client.assert_closed();
        // As a client does that has not looked yet. The first one would be answered by a reset,
        // and the second one fail.
        let sent = [(); 2].map(|()| client.try_send(incr("orders")));
        let is_well = sent.iter().all(Result::is_ok);
        // For half a second.
        let is_late = since.elapsed() >= Duration::from_millis(400);
        assert!(is_well || is_late, "{sent:?}");
        drop(client);
        assert!(served.stop(PATIENCE).has_answered_all);
        is_well
    };
    eventually("a client is in time", ends_well);
}

#[test]
fn the_reply_to_a_failed_authentication_is_late() {
    let served = serve("");
    served.set_rights(Access::named());
    let mut client = served.connect(Resp);
    let start = Instant::now();
    let requests = [request(&["AUTH", "wrong"]), request(&["AUTH", "take"])].concat();
    let replies = client.ask(&requests, 2);
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(error(&replies[0]).starts_with("WRONGPASS "));
    assert_eq!(replies[1], OwnedFrame::SimpleString(b"OK".to_vec()));
}

#[test]
fn a_client_has_the_request_timeout_to_authenticate_whatever_it_sends() {
    let time = Duration::from_millis(300);
    let served = serve("limits.request-time = '300ms'\nlimits.idle-time = '1h'");
    served.set_rights(Access::named());
    served.connect(Resp).assert_closed();
    // Each gets an error, which is progress.
    let is_closed = |stranger: &mut Wire| {
        let since = Instant::now();
        while stranger.try_send(request(&["PING"])).is_ok() && stranger.try_replies(1).is_ok() {
            assert!(since.elapsed() < PATIENCE, "it has no end");
        }
    };
    is_closed(&mut served.connect(Resp));
    // One that always has more to say, which waits for 200 ms each.
    let mut stranger = served.connect(Resp);
    stranger.send(request(&["AUTH", "wrong"]).repeat(20));
    let replies = (0..).take_while(|_| stranger.try_replies(1).is_ok());
    assert!(replies.count() < 20);
    // One that was authenticated and resets has as long again, and no longer.
    eventually("a client resets in time", || {
        let mut client = served.connect(Resp);
        let sent = client.try_send(request(&["AUTH", "take"]));
        if sent.is_err() || client.try_replies(1).is_err() {
            return false;
        }
        std::thread::sleep(2 * time);
        let since = Instant::now();
        client.ask(&request(&["RESET"]), 1);
        let is_in = client.try_send(request(&["PING"])).is_ok() && client.try_replies(1).is_ok();
        assert!(is_in || since.elapsed() >= time, "it was closed at once");
        is_closed(&mut client);
        is_in
    });
}

#[test]
fn requests_and_replies_may_be_cut_by_records_anywhere() {
    let served = serve(TLS);
    let mut client = served.connect(Resp).with_tls();
    let mut ids = Vec::new();
    // A byte a record, some bytes, and a pipeline of several records.
    for (requests, bytes) in [(3, 1), (50, 7), (2_000, 100_000)] {
        for piece in incr("orders").repeat(requests).chunks(bytes) {
            client.send(piece);
        }
        ids.extend(integers(&client.replies(requests)));
    }
    let distinct_ids: HashSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), distinct_ids.len()), (2_053, 2_053));
    // Several times what the sockets have room for, and asked for before any of it is read.
    client.send(request(&["LPOP", "orders", "60000"]).repeat(16));
    distinct(client.replies(16));
    // Without the goodbye of TLS the end of file would be an error, as anybody on the way can
    // cause one.
    client.send(request(&["QUIT"]));
    assert_eq!(client.read_to_end(), b"+OK\r\n");
}

#[test]
fn without_tls_there_is_no_reply_where_it_is_due() {
    let served = serve(TLS);
    let mut plain = served.connect(Resp);
    // Long enough for a header of TLS, which it is not.
    plain.stream.write_all(&incr("orders")).unwrap();
    // An error where the server has closed the connection already.
    let _ = plain.stream.shutdown(Shutdown::Write);
    let end = plain.read_to_end();
    assert!(!end.starts_with(b":"), "{}", end.escape_ascii());
    assert_eq!(served.count(Resp, |it| &it.requests), 0);
    // On the Unix socket there is none.
    served.connect_unix(Resp).take(Resp);
}

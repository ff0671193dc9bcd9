//! The server with sockets, and what its tests share.

mod clients;
pub(super) mod kit;
mod tls;

use std::collections::HashSet;
use std::io::Read as _;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use redis_protocol::resp2::types::OwnedFrame;
use ringflake_kit::eventually;

use self::kit::{error, incr, patient, request, serve};
use crate::access::Access;
use crate::clients::Client;
use crate::limits::Limits;

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

fn timeouts(request_time: Duration, idle_time: Duration) -> Limits {
    Limits {
        request_time,
        idle_time,
        ..Limits::default()
    }
}

#[test]
fn eight_clients_with_pipelines_get_no_id_twice() {
    const BATCHES: usize = 40;
    const DEPTH: usize = 500;

    let setup = serve(|_| {});
    let ids: Vec<_> = std::thread::scope(|scope| {
        let client = |number: usize| {
            let mut client = setup.connect(number.is_multiple_of(2));
            scope.spawn(move || {
                let mut ids = Vec::new();
                for _ in 0..BATCHES {
                    ids.extend(integers(&client.ask(&incr("orders").repeat(DEPTH), DEPTH)));
                }
                ids
            })
        };
        let clients: Vec<_> = (0..8).map(client).collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    });
    assert_eq!(ids.len(), 8 * BATCHES * DEPTH);
    // What they consist of, and not only the numbers.
    let namespace = setup.namespaces.get("orders").unwrap();
    let raws: HashSet<_> = ids
        .iter()
        .map(|&id| {
            let parts = namespace.generator.inspect(id.into()).unwrap();
            (parts.tick, parts.node, parts.sequence)
        })
        .collect();
    assert_eq!(raws.len(), ids.len());
    drop(namespace);
    let counts = [setup.count(|it| &it.requests), setup.count(|it| &it.ids)];
    assert_eq!(counts, [ids.len() as u64; 2]);
}

#[test]
fn replies_come_in_the_order_of_requests() {
    let setup = serve(|_| {});
    let mut client = setup.connect(true);
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
        assert_eq!(
            replies[0],
            OwnedFrame::BulkString(round.to_string().into_bytes())
        );
        assert!(
            matches!(replies[1], OwnedFrame::BulkString(_)),
            "{replies:?}"
        );
        let OwnedFrame::Array(ids) = &replies[2] else {
            panic!("{replies:?}")
        };
        assert_eq!(ids.len(), round);
        assert!(error(&replies[3]).starts_with("ERR unknown command 'NONE'"));
    }
}

#[test]
fn a_client_that_does_not_read_stops_nobody() {
    let setup = serve(|it| it.config.workers = 1);
    let mut deaf = setup.connect(true);
    // More than the sockets have room for.
    let asked = request(&["LPOP", "orders", "60000"]).repeat(24);
    deaf.send(&asked);
    let mut other = setup.connect(true);
    for _ in 0..100 {
        integers(&other.ask(&incr("orders"), 1));
    }
    // All of it is there once the client reads, and each ID once.
    assert_eq!(distinct(deaf.replies(24)).len(), 24 * 60_000);
}

#[test]
fn a_silence_is_not_counted_to_the_request_after_it() {
    const REQUEST_TIME: Duration = Duration::from_secs(1);
    /// A busy machine may need longer than that for a request, and then the next attempt counts.
    const ATTEMPTS: usize = 30;

    /// Whether a request was answered. Without an answer its own time must have passed.
    fn is_answered(ask: impl FnOnce() -> std::io::Result<Vec<OwnedFrame>>) -> bool {
        let began = Instant::now();
        // An error frame says that its namespace was not opened in time.
        let is_id = |replies: Vec<OwnedFrame>| matches!(replies[..], [OwnedFrame::Integer(_)]);
        let is_answered = ask().is_ok_and(is_id);
        // The server counts in ticks.
        let is_late = began.elapsed() >= REQUEST_TIME / 2;
        assert!(is_answered || is_late, "the silence was counted");
        is_answered
    }

    let limits = timeouts(REQUEST_TIME, Limits::default().idle_time);
    let setup = serve(|it| {
        it.config.workers = 1;
        it.limits = limits;
    });
    setup.namespaces.open("orders").unwrap();
    for attempt in 0..ATTEMPTS {
        let [mut half, mut fresh, mut other] = [(); 3].map(|()| setup.connect(true));
        for client in [&mut half, &mut fresh, &mut other] {
            integers(&client.ask(&incr("orders"), 1));
        }
        // If it were counted, nothing would be left for the request.
        std::thread::sleep(REQUEST_TIME + Duration::from_millis(100));
        let request = incr("orders");
        let is_whole_answered = is_answered(|| {
            half.try_send(&request[..10])?;
            for _ in 0..3 {
                // Turns of the event loop, which has the half meanwhile.
                integers(&other.ask(&incr("orders"), 1));
            }
            half.try_send(&request[10..])?;
            half.try_replies(1)
        });
        // As is one that waits for its namespace, which each attempt has to itself.
        let is_fresh_answered = is_answered(|| {
            fresh.try_send(incr(&format!("fresh-{attempt}")))?;
            fresh.try_replies(1)
        });
        if is_whole_answered && is_fresh_answered {
            return;
        }
    }
    panic!("no attempt was answered in time");
}

#[test]
fn a_client_that_has_sent_nothing_yet_may_be_silent_as_any_other() {
    const REQUEST_TIME: Duration = Duration::from_millis(50);

    let limits = timeouts(REQUEST_TIME, Duration::from_secs(3600));
    let setup = serve(|it| it.limits = limits);
    let mut late = setup.connect(false);
    // If its silence were that of a request, it would be closed by then.
    std::thread::sleep(6 * REQUEST_TIME);
    late.ask(&request(&["PING"]), 1);
    // From the first byte on, it is a request: the idle timeout would keep it open for an hour.
    let mut half = setup.connect(true);
    half.send(b"*");
    half.assert_closed();
}

#[test]
fn a_client_that_never_sends_anything_ends_at_the_idle_timeout() {
    const IDLE_TIME: Duration = Duration::from_secs(1);

    let limits = timeouts(Duration::from_millis(50), IDLE_TIME);
    let setup = serve(|it| it.limits = limits);
    let start = Instant::now();
    setup.connect(true).assert_closed();
    // The server counts in ticks, of which one may be half over.
    let passed = start.elapsed();
    assert!(passed >= IDLE_TIME.mul_f64(0.9), "{passed:?}");
}

#[test]
fn malformed_bytes_get_an_error_and_the_end() {
    let setup = serve(|_| {});
    let mut client = setup.connect(true);
    let mut sent = incr("orders").repeat(3);
    sent.extend_from_slice(b"*1\r\n:5\r\n");
    // Nobody reads that, and the replies arrive all the same. A client that a busy machine stops
    // meanwhile may find the connection closed before it has sent all of it.
    sent.extend(incr("orders").repeat(10_000));
    let _ = client.try_send(&sent);
    let replies = client.replies(4);
    integers(&replies[..3]);
    assert_eq!(
        error(&replies[3]),
        "ERR Protocol error: expected '$', got ':'"
    );
    client.assert_closed();
}

#[test]
fn a_browser_is_closed_before_its_body_is_read() {
    let setup = serve(|_| {});
    for (line, count) in [("POST", 1), ("GET", 2), ("PUT", 2)] {
        let mut client = setup.connect(true);
        let head = format!("{line} / HTTP/1.1\r\nHost: localhost:6379\r\n\r\n");
        let replies = client.ask(
            &[head.as_bytes(), &incr("orders"), b"INCR orders\r\n"].concat(),
            count,
        );
        let last = error(&replies[count - 1]);
        assert!(last.contains("not HTTP"), "{line}: {last}");
        client.assert_closed();
    }
    assert_eq!(setup.count(|it| &it.ids), 0);
}

#[test]
fn a_drain_answers_what_has_come_and_closes() {
    let setup = serve(|_| {});
    let mut idle = setup.connect(false);
    idle.ask(&request(&["PING"]), 1);
    let mut busy = setup.connect(true);
    busy.send(request(&["LPOP", "orders", "60000"]));
    busy.send(incr("orders").repeat(100));
    eventually("two requests are answered", || {
        setup.count(|it| &it.requests) >= 2
    });
    setup.drain.begin();
    let replies = busy.replies(101);
    integers(&replies[1..]);
    busy.assert_closed();
    idle.assert_closed();
    assert!(setup.end());
}

#[test]
fn a_drain_leaves_a_deaf_client_at_its_deadline() {
    let mut setup = serve(|_| {});
    let mut deaf = setup.connect(true);
    deaf.send(request(&["LPOP", "orders", "60000"]).repeat(16));
    let mut first = [0; 8];
    deaf.stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"*60000\r\n");
    assert!(!setup.end_within(Duration::from_millis(20)));
    // It has a part, and then the end.
    assert!(deaf.read_to_end().len() < 16 * 60_000 * 20);
}

#[test]
fn a_client_that_has_ended_its_side_is_answered() {
    let setup = serve(|_| {});
    let mut client = setup.connect_tcp();
    client.send(incr("orders").repeat(1_000));
    client.stream.shutdown(Shutdown::Write).unwrap();
    integers(&client.replies(1_000));
    client.assert_closed();
}

#[test]
fn a_namespace_that_can_not_be_opened_is_tried_again() {
    let setup = serve(|_| {});
    let mut client = setup.connect(true);
    setup.fail_builds(true);
    let replies = client.ask(
        &[incr("later").repeat(2), request(&["ECHO", "x"])].concat(),
        3,
    );
    for reply in &replies[..2] {
        assert!(
            error(reply).starts_with("ERR unknown namespace"),
            "{reply:?}"
        );
    }
    setup.fail_builds(false);
    integers(&client.ask(&incr("later"), 1));
}

#[test]
fn the_reply_to_a_failed_authentication_is_late() {
    let setup = serve(|it| it.rights = Access::by_name());
    let mut client = setup.connect(true);
    let start = Instant::now();
    let replies = client.ask(
        &[request(&["AUTH", "wrong"]), request(&["AUTH", "take"])].concat(),
        2,
    );
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(error(&replies[0]).starts_with("WRONGPASS "));
    assert_eq!(replies[1], OwnedFrame::SimpleString(b"OK".to_vec()));
}

#[test]
fn a_client_has_the_request_timeout_to_authenticate_whatever_it_sends() {
    let limits = timeouts(Duration::from_millis(300), Duration::from_secs(3600));
    let setup = serve(|it| {
        it.limits = limits;
        it.rights = Access::by_name();
    });
    setup.connect(true).assert_closed();
    let mut stranger = setup.connect(true);
    let since = Instant::now();
    // Each gets an error, which is progress.
    while stranger.try_send(request(&["PING"])).is_ok() && stranger.try_replies(1).is_ok() {
        assert!(since.elapsed() < Duration::from_secs(60), "it has no end");
    }
    // One that always has more to say, which waits for 200 ms each.
    let mut stranger = setup.connect(true);
    stranger.send(request(&["AUTH", "wrong"]).repeat(20));
    let replies = (0..)
        .take_while(|_| stranger.try_replies(1).is_ok())
        .count();
    assert!(replies < 20, "{replies}");
}

#[test]
fn a_client_that_resets_has_the_request_timeout_again() {
    let time = Duration::from_millis(300);
    let setup = serve(|it| {
        it.limits = timeouts(time, Duration::from_secs(3600));
        it.rights = Access::by_name();
    });
    let is_in_again = || {
        let mut client = setup.connect(true);
        let start = Instant::now();
        client.ask(&request(&["AUTH", "take"]), 1);
        while start.elapsed() < 2 * time {
            client.ask(&request(&["PING"]), 1);
        }
        let since = Instant::now();
        client.ask(&request(&["RESET"]), 1);
        let sent = client.try_send(request(&["AUTH", "take"]));
        let is_in = sent.is_ok() && client.try_replies(1).is_ok();
        assert!(is_in || since.elapsed() >= time, "it was closed at once");
        is_in
    };
    eventually("a client authenticates in time", is_in_again);
}

#[test]
fn a_client_that_is_quiet_when_the_server_drains_gets_no_reset() {
    let ends_well = || {
        let mut setup = serve(|_| {});
        let mut client = setup.connect(true);
        client.ask(&incr("orders"), 1);
        let since = Instant::now();
        setup.drain.begin();
        let rest = client.read_to_end();
        assert_eq!(rest, b"");
        // As a client does that has not looked yet. The first one would be answered by a reset,
        // and the second one fail.
        let sent = [(); 2].map(|()| client.try_send(incr("orders")));
        let is_well = sent.iter().all(Result::is_ok);
        // For half a second.
        let is_late = since.elapsed() >= Duration::from_millis(400);
        assert!(is_well || is_late, "{sent:?}");
        drop(client);
        assert!(setup.end_within(Duration::from_secs(60)));
        is_well
    };
    eventually("a client is in time", ends_well);
}

#[test]
fn a_client_over_the_budget_is_closed_with_an_error() {
    let setup = serve(|it| it.rights = Access::by_name());
    let part = [b"*1\r\n$900\r\n", &[b'x'; 800][..]].concat();
    // Another connection of the same client has all but a little of its half.
    let mut other = setup.shared().budget.share(Client::V4([127, 0, 0, 1]));
    let half = (0..).find(|kib| !other.set(kib << 10, false)).unwrap() - 1;
    assert_eq!(half, 4 << 10);
    let mut stranger = setup.connect(true);
    let replies = stranger.ask(&part, 1);
    assert!(error(&replies[0]).starts_with("ERR no memory for unfinished requests"));
    stranger.assert_closed();
    // One that is authenticated has another budget.
    let mut client = setup.connect(true);
    client.ask(&request(&["AUTH", "take"]), 1);
    client.send(&part[..part.len() - 1]);
    client.send([&[b'x'; 101][..], b"\r\n"].concat());
    assert!(error(&client.replies(1)[0]).starts_with("ERR unknown command"));
}

#[test]
fn a_full_table_refuses_with_words_and_recovers() {
    let limits = Limits {
        connections: 8,
        connections_per_client: 6,
        ..patient()
    };
    let setup = serve(|it| it.limits = limits);
    let mut clients: Vec<_> = (0..6).map(|_| setup.connect(true)).collect();
    for client in &mut clients {
        client.ask(&request(&["PING"]), 1);
    }
    let mut late = setup.connect(true);
    assert_eq!(
        error(&late.replies(1)[0]),
        "ERR max number of clients reached"
    );
    late.assert_closed();
    // Another client has its own places.
    for _ in 0..2 {
        let mut client = setup.connect(false);
        client.ask(&request(&["PING"]), 1);
        clients.push(client);
    }
    assert_eq!(
        error(&setup.connect(false).replies(1)[0]),
        "ERR max number of clients reached"
    );
    drop(clients);
    eventually("their places are free", || {
        setup.count(|it| &it.closed) == 8
    });
    let mut client = setup.connect(true);
    integers(&client.ask(&incr("orders"), 1));
    assert_eq!(setup.count(|it| &it.turned_away), 2);
}

#[test]
fn a_silent_client_ends_at_its_deadline() {
    let limits = timeouts(patient().request_time, Duration::from_millis(100));
    let setup = serve(|it| it.limits = limits);
    let (mut silent, mut connections) = (None, 0);
    // On a busy machine a client may be silent for too long before it sends something.
    eventually("a client is answered before its deadline", || {
        connections += 1;
        let mut client = setup.connect(true);
        let sent = client.try_send(request(&["PING"]));
        let is_answered = sent.is_ok() && client.try_replies(1).is_ok();
        silent = is_answered.then_some(client);
        is_answered
    });
    silent.unwrap().assert_closed();
    eventually("all connections are counted", || {
        setup.count(|it| &it.closed) == connections
    });
}

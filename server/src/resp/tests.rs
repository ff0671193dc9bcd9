//! The front with sockets, and what its tests share.

pub(super) mod kit;
mod tls;

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use redis_protocol::resp2::types::OwnedFrame;

use self::kit::{Setup, error, incr, request, wait_for};
use crate::limits::Limits;

/// All IDs of replies to `INCR`.
fn integers(replies: &[OwnedFrame]) -> Vec<i64> {
    let of = |reply: &OwnedFrame| match reply {
        OwnedFrame::Integer(number) => *number,
        other => panic!("{other:?}"),
    };
    replies.iter().map(of).collect()
}

#[test]
fn eight_clients_with_pipelines_get_no_id_twice() {
    const BATCHES: usize = 40;
    const DEPTH: usize = 500;

    let setup = Setup::new().start();
    let ids: Vec<_> = std::thread::scope(|scope| {
        let client = |number: usize| {
            let mut client = setup.connect(number.is_multiple_of(2));
            scope.spawn(move || {
                let mut ids = Vec::new();
                for _ in 0..BATCHES {
                    client.send(&incr("orders").repeat(DEPTH));
                    ids.extend(integers(&client.replies(DEPTH)));
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
    let counts = setup.counts();
    assert_eq!(
        (counts.requests, counts.ids),
        (ids.len() as u64, ids.len() as u64)
    );
    assert!(setup.end());
}

#[test]
fn replies_come_in_the_order_of_requests() {
    let setup = Setup::new().start();
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
    assert!(setup.end());
}

#[test]
fn a_client_that_does_not_read_stops_nobody() {
    let setup = Setup::new().workers(1).start();
    let mut deaf = setup.connect(true);
    // More than the sockets have room for.
    let asked = request(&["LPOP", "orders", "200000"]).repeat(8);
    deaf.send(&asked);
    let mut other = setup.connect(true);
    for _ in 0..100 {
        other.send(&incr("orders"));
        integers(&other.replies(1));
    }
    // All of it is there once the client reads, and each ID once.
    let mut seen = HashSet::new();
    for reply in deaf.replies(8) {
        let OwnedFrame::Array(ids) = reply else {
            panic!("{reply:?}")
        };
        seen.extend(ids.into_iter().map(|id| match id {
            OwnedFrame::BulkString(text) => text,
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(seen.len(), 8 * 200_000);
    assert!(setup.end());
}

#[test]
fn half_a_request_ends_at_its_deadline() {
    let limits = Limits {
        request_time: Duration::from_millis(100),
        ..Limits::default()
    };
    let setup = Setup::new().limits(limits).start();
    let mut half = setup.connect(true);
    half.send(b"*2\r\n$4\r\nINCR\r\n");
    assert!(half.is_closed());
    let mut idle = setup.connect(false);
    idle.send(&request(&["PING"]));
    assert_eq!(
        idle.replies(1),
        [OwnedFrame::SimpleString(b"PONG".to_vec())]
    );
    assert!(setup.end());
}

#[test]
fn a_silence_is_not_counted_to_the_request_after_it() {
    let limits = Limits {
        request_time: Duration::from_secs(4),
        ..Limits::default()
    };
    let setup = Setup::new().workers(1).limits(limits).start();
    let [mut half, mut fresh, mut other] = [(); 3].map(|()| setup.connect(true));
    for client in [&mut half, &mut fresh, &mut other] {
        client.send(&incr("orders"));
        integers(&client.replies(1));
    }
    std::thread::sleep(Duration::from_millis(4_100));
    let request = incr("orders");
    half.send(&request[..10]);
    for _ in 0..3 {
        // Turns of the event loop, which has the half meanwhile.
        other.send(&incr("orders"));
        integers(&other.replies(1));
    }
    half.send(&request[10..]);
    integers(&half.replies(1));
    // As is one that waits for its namespace.
    fresh.send(&incr("fresh"));
    integers(&fresh.replies(1));
    assert!(setup.end());
}

#[test]
fn a_silent_client_ends_at_its_deadline() {
    let limits = Limits {
        idle_time: Duration::from_millis(100),
        ..Limits::default()
    };
    let setup = Setup::new().limits(limits).start();
    let mut silent = setup.connect(true);
    silent.send(&request(&["PING"]));
    silent.replies(1);
    assert!(silent.is_closed());
    wait_for(|| setup.counts().closed == 1);
    assert!(setup.end());
}

#[test]
fn a_client_that_has_sent_nothing_yet_may_be_silent_as_any_other() {
    let limits = Limits {
        request_time: Duration::from_millis(50),
        idle_time: Duration::from_secs(5),
        ..Limits::default()
    };
    let setup = Setup::new().limits(limits).start();
    let (mut silent, start) = (setup.connect(true), Instant::now());
    let mut late = setup.connect(false);
    std::thread::sleep(Duration::from_millis(300));
    late.send(&request(&["PING"]));
    late.replies(1);
    assert!(silent.is_closed());
    assert!(
        start.elapsed() >= Duration::from_millis(4900),
        "{:?}",
        start.elapsed()
    );
    // From the first byte on, it is a request.
    let (mut half, start) = (setup.connect(true), Instant::now());
    half.send(b"*");
    assert!(half.is_closed());
    assert!(
        start.elapsed() < Duration::from_millis(4900),
        "{:?}",
        start.elapsed()
    );
    assert!(setup.end());
}

#[test]
fn a_full_table_refuses_with_words_and_recovers() {
    let limits = Limits {
        connections: 8,
        connections_per_client: 6,
        ..Limits::default()
    };
    let setup = Setup::new().limits(limits).start();
    let mut clients: Vec<_> = (0..6).map(|_| setup.connect(true)).collect();
    for client in &mut clients {
        client.send(&request(&["PING"]));
        client.replies(1);
    }
    let mut late = setup.connect(true);
    assert_eq!(
        error(&late.replies(1)[0]),
        "ERR max number of clients reached"
    );
    assert!(late.is_closed());
    // Another client has its own places.
    for _ in 0..2 {
        let mut client = setup.connect(false);
        client.send(&request(&["PING"]));
        client.replies(1);
        clients.push(client);
    }
    assert_eq!(
        error(&setup.connect(false).replies(1)[0]),
        "ERR max number of clients reached"
    );
    drop(clients);
    wait_for(|| setup.counts().closed == 8);
    let mut client = setup.connect(true);
    client.send(&incr("orders"));
    integers(&client.replies(1));
    assert_eq!(setup.counts().turned_away, 2);
    assert!(setup.end());
}

#[test]
fn malformed_bytes_get_an_error_and_the_end() {
    let setup = Setup::new().start();
    let mut client = setup.connect(true);
    let mut sent = incr("orders").repeat(3);
    sent.extend_from_slice(b"*1\r\n:5\r\n");
    // Nobody reads that, and the replies arrive all the same.
    sent.extend(incr("orders").repeat(10_000));
    client.send(&sent);
    let replies = client.replies(4);
    integers(&replies[..3]);
    assert_eq!(
        error(&replies[3]),
        "ERR Protocol error: expected '$', got ':'"
    );
    assert!(client.is_closed());
    assert!(setup.end());
}

#[test]
fn a_browser_is_closed_before_its_body_is_read() {
    let setup = Setup::new().start();
    for (line, count) in [("POST", 1), ("GET", 2), ("PUT", 2)] {
        let mut client = setup.connect(true);
        let head = format!("{line} / HTTP/1.1\r\nHost: localhost:6379\r\n\r\n");
        client.send(&[head.as_bytes(), &incr("orders"), b"INCR orders\r\n"].concat());
        let replies = client.replies(count);
        let last = error(&replies[count - 1]);
        assert!(last.contains("not HTTP"), "{line}: {last}");
        assert!(client.is_closed(), "{line}");
    }
    assert_eq!(setup.counts().ids, 0);
    assert!(setup.end());
}

#[test]
fn a_drain_answers_what_has_come_and_closes() {
    let setup = Setup::new().start();
    let mut idle = setup.connect(false);
    idle.send(&request(&["PING"]));
    idle.replies(1);
    let mut busy = setup.connect(true);
    busy.send(&request(&["LPOP", "orders", "100000"]));
    busy.send(&incr("orders").repeat(100));
    wait_for(|| setup.counts().requests >= 2);
    setup.drain.begin();
    let replies = busy.replies(101);
    integers(&replies[1..]);
    assert!(busy.is_closed());
    assert!(idle.is_closed());
    assert!(setup.end());
}

#[test]
fn a_drain_leaves_a_deaf_client_at_its_deadline() {
    let setup = Setup::new().start();
    let mut deaf = setup.connect(true);
    deaf.send(&request(&["LPOP", "orders", "500000"]));
    let mut first = [0; 9];
    deaf.stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"*500000\r\n");
    assert!(!setup.end_within(Duration::from_millis(20)));
    // It has a part, and then the end.
    assert!(deaf.read_to_end().len() < 500_000 * 20);
}

#[test]
fn quit_is_answered_and_ends_the_connection() {
    let setup = Setup::new().start();
    let mut client = setup.connect(false);
    client.send(&[request(&["QUIT"]), incr("orders")].concat());
    assert_eq!(
        client.replies(1),
        [OwnedFrame::SimpleString(b"OK".to_vec())]
    );
    assert!(client.is_closed());
    assert!(setup.end());
}

#[test]
fn a_client_that_has_ended_its_side_is_answered() {
    let setup = Setup::new().start();
    let mut client = setup.connect(true);
    client.send(&incr("orders").repeat(1_000));
    client.end_output();
    integers(&client.replies(1_000));
    assert!(client.is_closed());
    assert!(setup.end());
}

#[test]
fn a_namespace_that_can_not_be_opened_is_tried_again() {
    let setup = Setup::new().start();
    let mut client = setup.connect(true);
    setup.fail_builds(true);
    client.send(&[incr("later").repeat(2), request(&["ECHO", "x"])].concat());
    let replies = client.replies(3);
    for reply in &replies[..2] {
        assert!(
            error(reply).starts_with("ERR there is no such namespace"),
            "{reply:?}"
        );
    }
    setup.fail_builds(false);
    client.send(&incr("later"));
    integers(&client.replies(1));
    assert!(setup.end());
}

#[test]
fn a_hundred_thousand_malformed_frames_break_nothing() {
    let setup = Setup::new().start();
    let mut random = kit::Random::new(7);
    let mut sent = 0;
    while sent < 100_000 {
        let mut client = setup.connect(random.below(2) == 0);
        let mut bytes = Vec::new();
        for _ in 0..200 {
            bytes.extend(random.frame());
            sent += 1;
        }
        // The server may have closed before all is sent.
        let _ = client.stream.write_all(&bytes);
        client.end_output();
        client.read_to_end();
    }
    let mut client = setup.connect(true);
    client.send(&incr("orders"));
    integers(&client.replies(1));
    assert!(setup.end());
}

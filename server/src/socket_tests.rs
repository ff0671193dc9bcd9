//! Servers over sockets, each test with one of its own. Here is what holds for both protocols.

mod cross_origin;
mod health;
mod http;
mod life;
mod limits;
mod resp;
mod served;
mod wire;

use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use redis_protocol::resp2::types::OwnedFrame;
use ringflake_kit::eventually;

use self::served::{Served, TLS, serve, serve_namespaces, serve_narrow};
use self::wire::{PATIENCE, Wire, assert_lines, incr, request};
use crate::access::Access;
use crate::config::Protocol;
use crate::namespaces::OpenError;

/// Requests have little time, and silence has all.
const IMPATIENT: &str = "limits.request-time = '2s'\nlimits.idle-time = '1h'\n";

/// A busy machine may stop the client or the server for longer than the time that a request has,
/// so that the server closes the connection at another deadline than the one under test. A test
/// then tries again, but not more often than this.
const ATTEMPTS: u64 = 30;

/// Sends single bytes for as long as somebody is there.
fn trickle(wire: &Wire) -> thread::JoinHandle<()> {
    let mut stream = wire.stream.try_clone().unwrap();
    thread::spawn(move || {
        while stream.write_all(b"a").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    })
}

/// A connection that has had an ID.
fn answered(served: &Served, protocol: Protocol) -> Wire {
    let take = |_| {
        let mut wire = served.connect(protocol);
        wire.try_take(protocol)
            .is_ok_and(|taken| taken)
            .then_some(wire)
    };
    (0..ATTEMPTS).find_map(take).expect("a first response")
}

/// A request for as many IDs as an answer may have.
fn large_take(protocol: Protocol) -> Vec<u8> {
    match protocol {
        Protocol::Resp => request(&["LPOP", "orders", "65536"]),
        Protocol::Http => {
            b"POST /v1/ids?namespace=orders&count=65536 HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()
        }
    }
}

#[test]
fn a_full_table_turns_away_and_recovers() {
    let served = serve("limits.connections = 3\nlimits.connections-per-client = 2");
    for protocol in Protocol::ALL {
        let said: &[&str] = match protocol {
            Protocol::Resp => &["-ERR max number of clients reached\r\n"],
            Protocol::Http => &[
                "HTTP/1.1 503 ",
                "\r\nretry-after: 1\r\n",
                "\r\nconnection: close\r\n",
                "problem:busy\"",
            ],
        };
        let is_turned_away = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            assert!(said.iter().all(|part| text.contains(part)), "{text}");
        };
        let mut clients = [(); 2].map(|()| served.connect(protocol));
        clients.iter_mut().for_each(|client| client.take(protocol));
        is_turned_away(served.connect(protocol).read_to_end());
        // The user of a Unix socket is a client of its own. It has the last place.
        let mut local = served.connect_unix(protocol);
        local.take(protocol);
        is_turned_away(served.connect_unix(protocol).read_to_end());
        assert_eq!(served.count(protocol, |it| &it.turned_away), 2);
        if protocol == Protocol::Http {
            let metrics = clients[0].get("/metrics").text();
            let line = "ringflake_server_connections_turned_away_total{protocol=\"http\"} 2";
            assert_lines(&metrics, &[line]);
        }
        drop(clients);
        eventually("a place is free again", || {
            let taken = served.connect(protocol).try_take(protocol);
            taken.is_ok_and(|taken| taken)
        });
        local.take(protocol);
    }
}

#[test]
fn a_client_that_sends_no_more_is_answered() {
    let served = serve("");
    for count in [1, 1024, 65_536] {
        for field in ["", "connection: close\r\n"] {
            for _ in 0..10 {
                let mut wire = served.connect(Protocol::Http);
                let path = format!("/v1/ids?namespace=orders&count={count}");
                wire.send(format!("POST {path} HTTP/1.1\r\nhost: x\r\n{field}\r\n"));
                wire.stream.shutdown(Shutdown::Write).unwrap();
                let reply = wire.reply();
                assert_eq!((reply.status, reply.is_whole), (200, true), "{count}");
                assert_eq!(reply.json()["ids"].as_array().unwrap().len(), count);
                wire.assert_closed();
            }
        }
    }
    for (requests, replies, ids) in [
        (incr("orders").repeat(1_000), 1_000, 1_000),
        (large_take(Protocol::Resp), 1, 65_536),
    ] {
        let mut wire = served.connect(Protocol::Resp);
        wire.send(requests);
        wire.stream.shutdown(Shutdown::Write).unwrap();
        let counts = wire.replies(replies).into_iter().map(|reply| match reply {
            OwnedFrame::Integer(_) => 1,
            OwnedFrame::Array(ids) => ids.len(),
            other => panic!("{other:?}"),
        });
        assert_eq!(counts.sum::<usize>(), ids);
        wire.assert_closed();
    }
}

#[test]
fn a_request_that_never_ends_is_closed() {
    let served = serve(IMPATIENT);
    for (protocol, start) in [
        (Protocol::Resp, "*2\r\n$4\r\nINCR\r\n$9000\r\n"),
        (Protocol::Http, "G"),
        (Protocol::Http, "GET /livez HTTP/1.1\r\nhost: x\r\nx: "),
    ] {
        // The first request of a connection, and a later one.
        for mut wire in [served.connect(protocol), answered(&served, protocol)] {
            // An error where the server has closed the connection already.
            let _ = wire.try_send(start);
            let trickling = trickle(&wire);
            wire.assert_closed();
            trickling.join().unwrap();
        }
    }
    served.connect(Protocol::Http).assert_closed();
}

#[test]
fn silence_between_requests_ends() {
    let served = serve("limits.idle-time = '2s'");
    for protocol in Protocol::ALL {
        answered(&served, protocol).assert_closed();
    }
    served.connect(Protocol::Resp).assert_closed();
}

/// Nor does it hold up the end of the server.
#[test]
fn a_handshake_that_never_ends_is_closed() {
    for (request_time, ends_first) in [("300ms", false), ("1h", true)] {
        let mut served = serve(&format!("{TLS}limits.request-time = '{request_time}'"));
        let mut wires = Vec::new();
        for protocol in Protocol::ALL {
            // Without its first byte, and without its last.
            for start in [&b""[..], &[22, 3, 1]] {
                let mut wire = served.connect(protocol);
                wire.send(start);
                wires.push(wire);
            }
            eventually("both are accepted", || {
                served.count(protocol, |it| &it.accepted) == 2
            });
        }
        if ends_first {
            assert!(served.stop(PATIENCE).has_answered_all);
        }
        wires.iter_mut().for_each(Wire::assert_closed);
    }
}

#[test]
fn silence_after_a_handshake_is_not_counted_to_it() {
    const REQUEST_TIME: Duration = Duration::from_secs(1);
    let served = serve(&format!("{TLS}limits.request-time = '1s'"));
    for protocol in Protocol::ALL {
        let is_answered = |_| {
            let mut wire = served.connect(protocol).with_tls();
            if !wire.try_take(protocol).unwrap_or(false) {
                return false;
            }
            thread::sleep(REQUEST_TIME + Duration::from_millis(200));
            let began = Instant::now();
            let is_answered = wire.try_take(protocol).unwrap_or(false);
            // On a busy machine the request itself may take as long.
            let is_late = began.elapsed() >= REQUEST_TIME / 2;
            assert!(
                is_answered || is_late,
                "{protocol}: the silence was counted"
            );
            is_answered
        };
        assert!((0..ATTEMPTS).any(is_answered), "{protocol}");
    }
}

/// Also of a client that sends no more.
#[test]
fn an_answer_that_nobody_reads_ends() {
    for protocol in Protocol::ALL {
        for shutdown in [None, Some(Shutdown::Write)] {
            let served = serve_narrow(IMPATIENT);
            served.generator("orders");
            // On a busy machine the answer may not begin in time.
            let has_begun = (1..=ATTEMPTS).any(|attempt| {
                let mut wire = Wire::connect_narrow(served.address(protocol));
                wire.send(large_take(protocol));
                if let Some(shutdown) = shutdown {
                    // An error where the server has closed the connection already.
                    let _ = wire.stream.shutdown(shutdown);
                }
                eventually("it is closed", || {
                    served.count(protocol, |it| &it.closed) == attempt
                });
                let part = wire.read_to_end();
                assert!(part.len() < 8 << 16, "all of it came");
                part.starts_with(b"*65536\r\n") || part.starts_with(b"HTTP/1.1 200 ")
            });
            assert!(has_begun, "{protocol}");
        }
    }
}

#[test]
fn a_client_is_the_one_that_its_proxy_names() {
    const HEADER: &str = "PROXY TCP4 192.0.2.1 198.51.100.1 1 2\r\n";
    let served = serve(
        "
        resp.proxy-protocol = true
        http.proxy-protocol = true
        limits.connections-per-client = 2
        open-to-the-network-without-tokens-or-tls = true
        ",
    );
    for protocol in Protocol::ALL {
        let connect = |header: &str| {
            let mut wire = served.connect(protocol);
            wire.send(header);
            wire
        };
        served.set_rights(Access::everybody());
        // Connections without a header yet count for no client.
        let _headless = [(); 3].map(|()| connect(""));
        let mut most = [(); 2].map(|()| connect(HEADER));
        most.iter_mut().for_each(|wire| wire.take(protocol));
        let another = connect(HEADER).try_take(protocol);
        assert!(!another.unwrap_or(false), "it has two");
        connect(&HEADER.replace("2.1", "2.2")).take(protocol);
        connect("PROXY UNKNOWN\r\n").take(protocol);
        // A refusal is logged for it.
        served.set_rights(Access::named());
        let address = format!("192.0.2.{}", 3 + protocol as u8);
        let taken = connect(&HEADER.replace("192.0.2.1", &address)).try_take(protocol);
        assert!(!taken.unwrap(), "{protocol}");
        // Without a header there is no reply.
        let mut direct = served.connect(protocol);
        direct.send("PING\r\nGET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert_eq!(direct.read_to_end(), b"");
    }
    let mut refused = served.server().access.refused();
    refused.sort_unstable();
    assert_eq!(refused, ["192.0.2.3 take", "192.0.2.4 take"]);
}

#[test]
fn a_store_that_does_not_answer_does_not_hold_the_end_up() {
    for protocol in Protocol::ALL {
        let (asked, waits) = mpsc::channel();
        let (answer, never) = mpsc::channel::<()>();
        let channels = Mutex::new((asked, never));
        let mut served = serve_namespaces("", move |_| {
            let (asked, never) = &*channels.lock().unwrap();
            asked.send(()).unwrap();
            never.recv().unwrap_err();
            Err(OpenError::Unknown)
        });
        let mut wire = served.connect(protocol);
        wire.send(large_take(protocol));
        waits.recv_timeout(PATIENCE).unwrap();
        let (ended, ends) = mpsc::channel();
        let ending = thread::spawn(move || ended.send(served.stop(Duration::ZERO)));
        let stopped = ends.recv_timeout(PATIENCE).unwrap();
        assert!(!stopped.has_answered_all, "not by itself");
        wire.assert_closed();
        drop(answer);
        ending.join().unwrap().unwrap();
    }
}

#[test]
fn clients_that_come_back_at_once_do_not_keep_the_listener_open() {
    for protocol in Protocol::ALL {
        let mut served = serve("");
        let at = served.address(protocol);
        let client = thread::spawn(move || {
            // Until nobody listens any more. Often enough, and without using up the ports.
            while let Ok(stream) = TcpStream::connect(at) {
                drop(stream);
                thread::sleep(Duration::from_millis(20));
            }
        });
        eventually("so many connections came", || {
            served.count(protocol, |it| &it.accepted) >= 5
        });
        assert!(served.stop(PATIENCE).has_answered_all, "{protocol}");
        client.join().unwrap();
    }
}

#[test]
fn a_client_learns_of_a_failure_what_it_can_do() {
    let served = serve_namespaces("", |name| {
        Err(match name {
            "unknown" => OpenError::Unknown,
            "full" => OpenError::TooMany { most: 7 },
            "stopping" => OpenError::Stopping,
            _ => OpenError::UrlFile {
                path: "private".into(),
                source: Arc::new(std::io::Error::other("inside")),
            },
        })
    });
    let is_told = |text: &str, said: &str| {
        assert!(text.contains(said), "{text}");
        assert!(
            !text.contains("private") && !text.contains("inside"),
            "{text}"
        );
    };
    #[rustfmt::skip]
    let table = [
        ("unknown", "-ERR ", 404, "unknown-namespace", "unknown namespace"),
        ("full", "-ERR ", 409, "too-many-namespaces", "the limit of 7"),
        ("stopping", "-TRYAGAIN ", 503, "busy", "is stopping"),
        ("file", "-TRYAGAIN ", 503, "cannot-open", "namespace can't be opened"),
    ];
    for (name, code, status, kind, said) in table {
        let mut wire = served.connect(Protocol::Resp);
        wire.send([&incr(name), &b"QUIT\r\n"[..]].concat());
        let text = String::from_utf8(wire.read_to_end()).unwrap();
        assert!(text.starts_with(code), "{text}");
        is_told(&text, said);
        let mut wire = served.connect(Protocol::Http);
        let reply = wire.post(&format!("/v1/ids?namespace={name}"), &[]);
        assert_eq!((reply.status, &*reply.problem()), (status, kind));
        let comes_back = reply.headers.contains_key("retry-after");
        assert_eq!(comes_back, status == 503, "{name}");
        is_told(&reply.text(), said);
    }
}

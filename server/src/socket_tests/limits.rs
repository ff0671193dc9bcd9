//! What clients of HTTP may cost, those with TLS of both protocols, and how a drain ends them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use redis_protocol::resp2::types::OwnedFrame;
use ringflake_kit::{assert_says, eventually};

use super::served::{Served, TLS, serve, serve_ahead, serve_changed, serve_narrow};
use super::wire::{PATIENCE, TlsWire, Wire, incr, request};
use super::{ATTEMPTS, IMPATIENT, large_take, trickle};
use crate::access::Access;
use crate::config::Protocol::{Http, Resp};

/// Of a TLS record of 16 KiB.
const PART_OF_A_RECORD: [u8; 6] = [0x17, 3, 3, 0x40, 0, 0];

#[test]
#[cfg(target_os = "linux")]
fn strangers_of_one_address_leave_tls_to_others() {
    // A sixteenth of 45 MiB and of 48 MiB, in parts of 76 KiB.
    for (protocol, most) in [(Resp, 37), (Http, 40)] {
        let served = serve(TLS);
        served.set_rights(Access::named());
        let connect = |from| Wire::connect_from(from, served.address(protocol)).with_tls();
        let [one, another] = [[127, 0, 0, 1], [127, 0, 0, 2]];
        let begin = match protocol {
            Resp => "*1\r\n$900\r\n",
            Http => "POST /v1/ids HTTP/1.1\r\nhost: x\r\nx: ",
        };
        let stranger = |number: usize| {
            let mut wire = connect(one);
            wire.send(begin);
            if number % 2 == 1 {
                wire.stream.sock.write_all(&PART_OF_A_RECORD).unwrap();
            }
            wire
        };
        let take = |wire: &mut TlsWire| match protocol {
            Resp => {
                let requests = [request(&["AUTH", "take"]), incr("orders")].concat();
                matches!(wire.ask(&requests, 2)[1], OwnedFrame::Integer(_))
            }
            Http => {
                let token = ["authorization: Bearer take"];
                wire.post("/v1/ids?namespace=orders", &token).status == 200
            }
        };
        let mut strangers: Vec<_> = (1..most).map(stranger).collect();
        // An authorized connection returns its permit.
        let mut users = Vec::new();
        for _ in 0..3 {
            let mut user = connect(one);
            assert!(take(&mut user));
            users.push(user);
        }
        strangers.push(stranger(0));
        // The handshake of one more waits for a permit. That of another may have, until an
        // authorized one had returned its own.
        let delayed = || served.count(protocol, |it| &it.handshakes_delayed);
        let before = delayed();
        let mut late = connect(one);
        let wait = Some(Duration::from_millis(500));
        late.stream.sock.set_read_timeout(wait).unwrap();
        let error = late.stream.write_all(b"*").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{protocol}");
        eventually("the wait is counted", || delayed() == before + 1);
        assert!(take(&mut connect(another)) && take(&mut users[0]));
        drop(strangers.pop());
        late.stream.sock.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(take(&mut late));
    }
}

#[test]
fn a_client_that_does_not_read_uses_half_of_the_memory() {
    /// Large answers in JSON: half of 64 MiB.
    const MOST: usize = (32 << 20) / (23 << 16);
    let served = serve_narrow("");
    served.generator("orders");
    let begun = |_| {
        let mut wire = Wire::connect_narrow(served.address(Http));
        wire.send(large_take(Http));
        wire.stream.read_exact(&mut [0]).unwrap();
        wire
    };
    let slow: Vec<_> = (0..MOST).map(begun).collect();
    // Requests that need little memory are served as before, and so are other clients.
    let mut wire = served.connect(Http);
    wire.take(Http);
    let mut other = Wire::connect_from([127, 0, 0, 2], served.address(Http));
    other.send(large_take(Http));
    assert_eq!(other.reply().status, 200);
    // A large answer waits for memory, and the figures do not wait behind it.
    wire.send(large_take(Http));
    for path in ["/readyz", "/metrics", "/v1/status"] {
        assert_eq!(served.connect(Http).get(path).status, 200, "{path}");
    }
    drop(slow);
    assert_eq!(wire.reply().status, 200);
}

#[test]
fn health_checks_do_not_wait_for_other_requests_of_their_address() {
    /// A sixteenth of 48 MiB, in parts of 24 KiB.
    const MOST: usize = 128;
    let served = serve("limits.request-time = '30s'");
    served.set_rights(Access::named());
    let endless = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(600));
    let _active = [(); MOST + 1].map(|()| {
        let mut wire = served.connect(Http);
        wire.send(&endless);
        wire
    });
    let mut others = Vec::new();
    eventually("another request waits", || {
        let mut wire = served.connect(Http);
        wire.exactly("GET", "/", &["host: x"]);
        let moment = Some(Duration::from_millis(500));
        wire.stream.set_read_timeout(moment).unwrap();
        let read = wire.stream.peek(&mut [0]);
        others.push(wire);
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    });
    let _checks = ["/livez", "/readyz"].map(|path| {
        let mut wire = served.connect(Http);
        assert_eq!(wire.get(path).status, 200);
        wire
    });
    let closed = served.count(Http, |it| &it.closed);
    assert_eq!(closed, 0, "they have waited for the end of another request");
}

/// A connection with TLS that has had an answer to this request.
fn answered_over_tls(served: &Served, method: &str, path: &str) -> Wire {
    let answered = |_| {
        let mut wire = served.connect(Http).with_tls();
        wire.try_request(method, path, &[], "").ok()?;
        Some(Wire::new(wire.stream.sock))
    };
    (0..ATTEMPTS).find_map(answered).expect("a first response")
}

#[test]
fn a_tls_connection_of_no_use_is_closed() {
    let served = serve(&format!("{TLS}{IMPATIENT}"));
    // A record that never ends.
    let mut wire = answered_over_tls(&served, "POST", "/v1/ids?namespace=orders");
    wire.send([&PART_OF_A_RECORD[..], &[0; 1000]].concat());
    wire.read_to_end();
    // No authorized request.
    answered_over_tls(&served, "GET", "/livez").read_to_end();
}

#[test]
fn a_body_that_never_ends_is_refused_and_closed() {
    let served = serve(IMPATIENT);
    let take = "POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\n";
    for body in [
        "content-length: 60000\r\n\r\n{",
        "transfer-encoding: chunked\r\n\r\n9c40\r\n{",
    ] {
        let refused = |_| {
            let mut wire = served.connect(Http);
            wire.send(format!("{take}{body}"));
            let trickling = trickle(&wire);
            let reply = wire.try_reply();
            if let Ok(reply) = &reply {
                assert_eq!((reply.status, &*reply.problem()), (422, "invalid"));
                assert!(reply.text().contains("in the query"), "{reply:?}");
                wire.read_to_end();
            }
            trickling.join().unwrap();
            reply.ok()
        };
        (0..ATTEMPTS).find_map(refused).expect("a response");
    }
    assert_eq!(served.count(Http, |it| &it.ids), 0);
    // An empty one is none, whatever it is called.
    let form = "content-type: application/x-www-form-urlencoded";
    let answered = |_| {
        let mut wire = served.connect(Http);
        let reply = wire.try_request("POST", "/v1/ids?namespace=orders", &[form], "");
        reply.ok().filter(|reply| reply.status == 200)
    };
    (0..ATTEMPTS).find_map(answered).expect("an ID");
}

/// Answers new requests for so long while it drains that a busy machine does not miss that.
fn serve_patiently() -> Served {
    serve_changed("", |server| server.drain_time = Duration::from_secs(10))
}

#[test]
fn kept_and_new_connections_are_answered_while_the_server_drains() {
    let mut served = serve_patiently();
    // One without a request is closed in time, too.
    let _idle = served.connect(Http);
    let mut kept = served.connect(Http);
    assert_eq!(kept.get("/livez").headers.get("connection"), None);
    served.server().drain.begin();
    let metrics = served.connect(Http).get("/metrics").text();
    assert_says(&metrics, &["\nringflake_server_ready 0\n"]);
    for mut wire in [kept, served.connect(Http)] {
        let reply = wire.post("/v1/ids?namespace=orders", &[]);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["connection"], "close");
        wire.assert_closed();
    }
    assert!(served.stop(PATIENCE).is_clean());
}

#[test]
fn a_draining_server_answers_for_a_while_by_default() {
    let answers = |_| {
        let served = serve("");
        served.server().drain.begin();
        let begun = Instant::now();
        loop {
            let asked = begun.elapsed();
            let Ok(stream) = TcpStream::connect(served.address(Http)) else {
                return false;
            };
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let reply = Wire::new(stream).try_request("GET", "/livez", &[], "");
            if reply.is_err() || asked > Duration::from_millis(200) {
                return reply.is_ok();
            }
        }
    };
    // On a busy machine the later requests may come too late.
    assert!((0..ATTEMPTS).any(answers));
}

#[test]
fn a_draining_server_waits_for_the_rest_of_a_head() {
    let mut served = serve(TLS);
    let mut late = served.connect(Http).with_tls();
    assert_eq!(late.get("/livez").status, 200);
    late.send("GET /livez HTTP/1.1\r\n");
    // A handshake begins no request.
    let mut idle = served.connect(Http).with_tls();
    idle.stream.conn.complete_io(&mut idle.stream.sock).unwrap();
    served.server().drain.begin();
    // Without the end of the session if its handshake was not over.
    let _ = idle.stream.read_to_end(&mut Vec::new());
    late.send("host: x\r\n\r\n");
    assert_eq!(late.reply().status, 200);
    late.assert_closed();
    assert!(served.stop(PATIENCE).has_answered_all);
}

#[test]
fn an_answer_is_not_lost_with_the_input_behind_it() {
    let served = serve("");
    let mut wire = Wire::connect_narrow(served.address(Http));
    let head = "POST /v1/ids?namespace=orders&count=2500 HTTP/1.1\r\nhost: x\r\n";
    let behind = "\r\n".repeat(20 << 10);
    wire.send(format!("{head}connection: close\r\n\r\n{behind}"));
    eventually("it is closed", || served.count(Http, |it| &it.closed) == 1);
    let reply = wire.reply();
    assert_eq!((reply.status, reply.is_whole), (200, true));
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
    let mut served = serve_patiently();
    let at = served.address(Http);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| thread::spawn(move || keep_busy(at)))
        .collect();
    eventually("all clients are busy", || {
        served.count(Http, |it| &it.ids) > 10 * CLIENTS
    });
    assert!(served.stop(PATIENCE).is_clean());
    for client in clients {
        assert!(client.join().unwrap().unwrap() > 1);
    }
}

#[test]
fn a_take_that_waits_is_ended_at_the_deadline() {
    // It waits for IDs, which this clock lets nobody have.
    let (mut served, _clock) = serve_ahead(100..200);
    let mut wire = served.connect(Http);
    wire.exactly("POST", "/v1/ids?namespace=ahead&count=15360", &["host: x"]);
    let generator = served.generator("ahead");
    eventually("it has taken all that may be borrowed", || {
        generator.stats().issued >= 10 << 10
    });
    assert!(!served.stop(Duration::from_millis(50)).has_answered_all);
    wire.assert_closed();
}

//! Clients that nobody would like to have.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use ringflake_kit::{assert_says, eventually, short_or_long};

use crate::load::{Load, Way};
use crate::marks::Marks;
use crate::process::{Home, Serve};
use crate::wire::{Http, Resp};

/// A hang becomes a failure after this.
const PATIENCE: Duration = Duration::from_secs(60);

/// SplitMix64: the same bytes on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }

    /// Cut off somewhere, and with a few bytes that are others.
    fn spoil(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.truncate(1 + self.below(bytes.len()));
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len());
            bytes[at] = self.next() as u8;
        }
        bytes
    }

    fn frame(&mut self) -> Vec<u8> {
        let whole = self.pick(&[
            &b"*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n"[..],
            b"*3\r\n$4\r\nLPOP\r\n$6\r\norders\r\n$2\r\n10\r\n",
            b"*5\r\n$14\r\nRINGFLAKE.TAKE\r\n$6\r\norders\r\n$1\r\n9\r\n$6\r\nFORMAT\r\n$4\r\ntext\r\n",
            b"*4\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n$1\r\nx\r\n",
            b"INCR orders\r\n",
        ]);
        match self.below(6) {
            0 => self.bytes(64),
            1 => format!("*{}\r\n", self.next().cast_signed()).into_bytes(),
            2 => format!("*1\r\n${}\r\n", self.next().cast_signed()).into_bytes(),
            // A nesting that no request has.
            3 => b"*1\r\n".repeat(1 + self.below(50)),
            _ => self.spoil(whole.to_vec()),
        }
    }

    fn http(&mut self) -> Vec<u8> {
        let whole = self.pick(&[
            &b"POST /v1/ids?namespace=orders&count=3 HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n"[..],
            b"POST /v1/ids HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
              content-length: 22\r\n\r\n{\"namespace\":\"orders\"}",
            b"POST /v1/ids HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n",
        ]);
        match self.below(5) {
            0 => self.bytes(200),
            1 => {
                let length = self.next();
                format!("POST /v1/ids HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{{")
                    .into_bytes()
            }
            _ => self.spoil(whole.to_vec()),
        }
    }
}

/// Sends it on a connection of its own and reads what comes until the server closes.
fn send(port: u16, bytes: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may have closed before all is sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let ended = stream.read_to_end(&mut Vec::new());
    let is_timeout = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(
        !ended.is_err_and(|error| is_timeout(&error)),
        "it is kept open"
    );
}

#[test]
fn malformed_requests_of_both_protocols_cost_nothing() {
    const FRAMES: usize = 200;
    const GROWTH_KIB: u64 = 16 << 10;
    let home = Home::new();
    let mut server = Serve::local(&home);
    let mut marks = Marks::local(&home);
    let load = Load::start(&server);
    load.wait_for(1000);

    let connections = AtomicUsize::new(0);
    let flood = |resp_frames: usize, http: usize, seed: u64| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random(seed);
                for _ in 0..resp_frames / FRAMES {
                    let bytes: Vec<_> = (0..FRAMES).flat_map(|_| random.frame()).collect();
                    send(server.resp, &bytes);
                    connections.fetch_add(1, Relaxed);
                }
            });
            scope.spawn(|| {
                let mut random = Random(seed + 1);
                for _ in 0..http {
                    send(server.http, &random.http());
                    connections.fetch_add(1, Relaxed);
                }
            });
        });
    };
    let times = short_or_long(1, 10);
    // Memory that the server allocates once is not growth.
    flood(10_000, 1000, 1);
    let before = server.kib("VmHWM:");
    flood(times * 100_000, times * 10_000, 7);
    let after = server.kib("VmHWM:");
    assert!(
        after - before < GROWTH_KIB,
        "{before} KiB became {after} KiB"
    );

    load.wait_for(1000);
    load.end_unrefused(&mut marks);
    marks.check();
    let log = server.stop();
    assert!(!log.contains("panicked"), "{log}");
}

/// A connection on which an ID came: where others have left, as soon as that is noticed.
fn enter_resp(server: &Serve) -> Resp {
    let mut entered = None;
    eventually("there is room", || {
        let mut client = Resp::connect(server.resp);
        let reply = client.try_ask("INCR orders");
        entered = reply
            .is_ok_and(|reply| reply.starts_with(':'))
            .then_some(client);
        entered.is_some()
    });
    entered.unwrap()
}

fn enter_http(server: &Serve) -> Http {
    let mut entered = None;
    eventually("there is room", || {
        let mut client = Http::connect(server.http);
        let answer = client.take(1, "");
        entered = answer
            .is_ok_and(|answer| answer.status == 200)
            .then_some(client);
        entered.is_some()
    });
    entered.unwrap()
}

#[test]
fn a_full_table_refuses_with_words_and_serves_on() {
    let home = Home::new();
    let settings = "limits.connections = 6\n[namespaces.orders]\n";
    let mut server = Serve::new(&home, "serve", settings);
    server.start(&home);
    let mut marks = Marks::local(&home);
    // Two for each protocol, and then all that are left.
    let ways = [Way::Incr(1), Way::Pop(10), Way::Json(3), Way::Binary(5)];
    let load = Load::with(&server, &ways, "");
    load.wait_for(500);
    for _ in 0..short_or_long(5, 50) {
        let resp = [(); 4].map(|()| enter_resp(&server));
        let http = [(); 4].map(|()| enter_http(&server));
        let mut refused = Resp::connect(server.resp);
        assert_eq!(refused.said(), "-ERR max number of clients reached");
        let refused = Http::connect(server.http).read().unwrap();
        assert_eq!(refused.status, 503, "{}", refused.head);
        assert_says(
            &refused.head,
            &["\r\nretry-after: ", "\r\nconnection: close"],
        );
        // Those who are in do not notice.
        load.wait_for(500);
        drop((resp, http));
    }
    load.end_unrefused(&mut marks);
    marks.check();
    server.stop();
}

#[test]
fn clients_that_wait_for_ever_end_and_slow_nobody() {
    let home = Home::new();
    // Long enough that the clients of the load meet them on a busy machine.
    let times = "limits.request-time = '10s'\nlimits.idle-time = '10s'\n";
    let mut server = Serve::new(&home, "serve", &format!("{times}[namespaces.orders]\n"));
    server.start(&home);
    let mut marks = Marks::local(&home);
    let load = Load::start(&server);
    let beginnings: [(u16, &[u8]); 9] = [
        (server.resp, b""),
        (server.resp, b"PING\r\n"),
        (server.resp, b"*2\r\n$4\r\nIN"),
        (server.resp, b"INCR ord"),
        (server.http, b""),
        (server.http, b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n"),
        (server.http, b"POST /v1/ids HTTP/1.1\r\nhos"),
        (
            server.http,
            b"POST /v1/ids HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{",
        ),
        (
            server.http,
            b"POST /v1/ids HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{",
        ),
    ];
    let many = short_or_long(40, 400);
    let waiting: Vec<_> = (0..many)
        .flat_map(|_| &beginnings)
        .map(|(port, bytes)| {
            let mut stream = TcpStream::connect(("127.0.0.1", *port)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    load.wait_for(2000);
    for (mut stream, (_, bytes)) in waiting.into_iter().zip(beginnings.iter().cycle()) {
        let mut said = Vec::new();
        let ended = stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        assert!(
            ended.is_ok(),
            "{ended:?} after {:?}: {said}",
            bytes.escape_ascii().to_string()
        );
    }
    load.wait_for(2000);
    load.end_unrefused(&mut marks);
    marks.check();
    server.stop();
}

#[test]
fn idle_connections_of_http_cost_little() {
    const MANY: u64 = 2000;
    let home = Home::new();
    let settings = "limits.request-time = '1h'\n[namespaces.orders]\n";
    let mut server = Serve::new(&home, "serve", settings);
    server.start(&home);
    assert_eq!(Http::connect(server.http).take(1, "").unwrap().status, 200);
    let before = server.kib("VmRSS:");
    let mut idle: Vec<_> = (0..MANY).map(|_| Http::connect(server.http)).collect();
    // It is behind all others in the queue.
    assert_eq!(Http::connect(server.http).take(1, "").unwrap().status, 200);
    let opened = server.kib("VmRSS:") - before;
    for client in &mut idle {
        assert_eq!(client.take(1, "").unwrap().status, 200);
    }
    let asked = server.kib("VmRSS:") - before;
    // Two buffers of 8 KiB are what hyper has for each that has asked.
    assert!(opened < 8 * MANY, "{opened} KiB of {MANY} connections");
    assert!(asked < 24 * MANY, "{asked} KiB of {MANY} connections");
    server.stop();
}

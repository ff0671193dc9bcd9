//! Malformed requests, and connections that are idle. `server/src/socket_tests.rs` has slow clients
//! and full tables.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ringflake_kit::home::Home;
use ringflake_kit::split_mix::SplitMix64;
use ringflake_kit::tls::{self, file};
use ringflake_kit::{eventually, short_or_long};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::load::{Load, PATIENCE};
use crate::marks::Marks;
use crate::process::Serve;

/// One of these requests, cut off somewhere, and with a few bytes that are others.
fn spoiled(random: &mut SplitMix64, requests: &[&[u8]]) -> Vec<u8> {
    let mut bytes = random.pick(requests).to_vec();
    bytes.truncate(1 + random.below(bytes.len() as u64) as usize);
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.below(256) as u8;
    }
    bytes
}

const RESP: [&[u8]; 6] = [
    b"*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n",
    b"*3\r\n$4\r\nLPOP\r\n$6\r\norders\r\n$2\r\n10\r\n",
    b"*4\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n$1\r\nx\r\n",
    b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
    b"*1\r\n$9223372036854775807\r\n*9223372036854775807\r\n",
    b"INCR orders\r\n",
];

const HTTP: [&[u8]; 5] = [
    b"POST /v1/ids?namespace=orders&count=3 HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
    b"POST /v1/ids HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
      content-length: 22\r\n\r\n{\"namespace\":\"orders\"}",
    b"POST /v1/ids HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"POST /v1/ids HTTP/1.1\r\nhost: a\r\ncontent-length: 18446744073709551615\r\n\r\n{",
    b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n",
];

/// Sends it on a connection of its own and reads what comes until the server closes.
fn send(port: u16, bytes: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may have closed before all is sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let ended = stream.read_to_end(&mut Vec::new());
    let is_timeout = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(!ended.is_err_and(|error| is_timeout(&error)), "it is open");
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

    let flood = |resp_frames: usize, http: usize, seed: u64| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = SplitMix64::new(seed);
                for _ in 0..resp_frames / FRAMES {
                    let frames = (0..FRAMES).flat_map(|_| spoiled(&mut random, &RESP));
                    send(server.resp, &frames.collect::<Vec<_>>());
                }
            });
            scope.spawn(|| {
                let mut random = SplitMix64::new(seed + 1);
                (0..http).for_each(|_| send(server.http, &spoiled(&mut random, &HTTP)));
            });
        });
    };
    let times = short_or_long(1, 10);
    // Memory that the server allocates once is not growth.
    flood(10_000, 1000, 1);
    let before = server.kib("VmHWM:");
    flood(times * 100_000, times * 10_000, 7);
    let growth = server.growth("VmHWM:", before);
    assert!(growth < GROWTH_KIB, "{before} KiB and {growth} KiB more");

    load.wait_for(1000);
    load.end_unrefused(&mut marks);
    marks.check();
    let log = server.stop();
    assert!(!log.contains("panicked"), "{log}");
}

/// Takes an ID on a connection that has no other request.
fn take_one(stream: &mut TcpStream, request: &[u8], reply: &[u8]) {
    stream.write_all(request).unwrap();
    let mut head = vec![0; reply.len()];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head, reply);
}

#[test]
fn idle_connections_cost_little() {
    const MANY: u64 = 2000;
    for (is_http, request, reply) in [
        (true, HTTP[0], &b"HTTP/1.1 200"[..]),
        (false, RESP[0], b":"),
    ] {
        let home = Home::new();
        let settings = "limits.request-time = '1h'\nresp.workers = 2\n[namespaces.orders]\n";
        let mut server = Serve::new(&home, "serve", settings);
        server.start(&home);
        let port = if is_http { server.http } else { server.resp };
        let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
        let take_one = |stream: &mut TcpStream| take_one(stream, request, reply);
        take_one(&mut connect());
        let before = server.kib("VmRSS:");
        let mut idle: Vec<_> = (0..MANY).map(|_| connect()).collect();
        // It is behind all others in the queue.
        take_one(&mut connect());
        let opened = server.growth("VmRSS:", before);
        idle.iter_mut().for_each(take_one);
        let asked = server.growth("VmRSS:", before);
        // Buffers of a request, of which hyper has two of 8 KiB, are not kept.
        assert!(opened < 8 * MANY, "{opened} KiB of {MANY} connections");
        let of_10_000 = before + 10_000 / MANY * asked;
        assert!(
            of_10_000 < 100 << 10,
            "{before} KiB, and {asked} of {MANY} connections"
        );
        server.stop();
    }
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A connection with TLS of a client at the address with this number. Its handshake begins with
/// the first bytes that are sent, and has this time.
fn connect_tls(port: u16, address: usize, trust: &Arc<ClientConfig>, time: Duration) -> TlsStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(time)).unwrap();
    let header = format!("PROXY TCP4 192.0.2.{address} 192.0.2.99 1 2\r\n");
    stream.write_all(header.as_bytes()).unwrap();
    let name = "localhost".try_into().unwrap();
    let session = ClientConnection::new(Arc::clone(trust), name).unwrap();
    StreamOwned::new(session, stream)
}

/// Addresses that together use up the budget of unauthorized connections, and how many
/// connections each of them has then: a sixteenth of `STRANGER_BYTES` of the server, in parts of
/// 76 KiB.
const ADDRESSES: usize = 16;
const EACH: usize = 40;

/// The budget, and 16 MiB for the allocator.
const GROWTH_KIB: u64 = (48 + 16) << 10;

fn start_with_tls(home: &Home) -> Serve {
    let key = std::fs::read_to_string(file("server.key")).unwrap();
    let settings = format!(
        "limits.request-time = '1h'\nhttp.proxy-protocol = true\ntls.certificate = '{}'\n\
         tls.key = '{}'\ntokens.take = '{}'\n[namespaces.orders]\n",
        file("server.pem"),
        home.write("server.key", &key).display(),
        home.write("tokens", "take-0123456789abcdef").display(),
    );
    let mut server = Serve::new(home, "serve", &settings);
    server.start(home);
    server
}

/// By these the memory of a connection before its first authorized request is sized.
#[test]
fn handshakes_that_never_end_stay_within_their_budget() {
    let home = Home::new();
    let mut server = start_with_tls(&home);
    let (port, trust) = (server.http, Arc::new(tls::client(&[])));
    let before = server.kib("VmHWM:");
    // The start of one message of 64 KiB, in records of 16 KiB.
    let mut hello = vec![1, 0, 0xff, 0xff];
    hello.resize(60_000, 0);
    let record = |part: &[u8]| {
        let length = u16::try_from(part.len()).unwrap().to_be_bytes();
        [&[0x16, 3, 1][..], &length, part].concat()
    };
    let records: Vec<u8> = hello.chunks(1 << 14).flat_map(record).collect();
    let clients: Vec<_> = (0..ADDRESSES * EACH)
        .map(|number| {
            let address = 1 + number % ADDRESSES;
            let mut client = connect_tls(port, address, &trust, PATIENCE).sock;
            client.write_all(&records).unwrap();
            client
        })
        .collect();
    eventually("most of it is read", || {
        server.growth("VmHWM:", before) > 30 << 10
    });
    drop(clients);
    let growth = server.growth("VmHWM:", before);
    assert!(growth < GROWTH_KIB, "{before} KiB and {growth} KiB more");
    server.stop();
}

#[test]
fn tls_clients_of_http_without_a_token_stay_within_their_budget() {
    /// Connections of each address above its share.
    const MORE: usize = 75;

    let home = Home::new();
    let mut server = start_with_tls(&home);
    let (port, trust) = (server.http, Arc::new(tls::client(&[])));
    let mut user = connect_tls(port, ADDRESSES + 1, &trust, PATIENCE);
    let mut take = || {
        let take = b"POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\n\
                     authorization: Bearer take-0123456789abcdef\r\ncontent-length: 0\r\n\r\n";
        user.write_all(take).unwrap();
        let mut reply = [0; 1024];
        let length = user.read(&mut reply).unwrap();
        let reply = &reply[..length];
        assert!(
            reply.starts_with(b"HTTP/1.1 200"),
            "{}",
            reply.escape_ascii()
        );
    };
    take();
    let before = server.kib("VmHWM:");

    let head = format!(
        "GET /livez HTTP/1.1\r\nhost: x\r\nx: {}",
        "x".repeat(14_000)
    );
    let body = "POST /v1/ids HTTP/1.1\r\nhost: x\r\ncontent-length: 65536\r\n\r\n";
    let body = format!("{body}{}", "x".repeat(60_000));
    // A record of 16 KiB, without its last bytes.
    let record = [&[0x17, 3, 3, 0x40, 0][..], &[b'x'; 16_000]].concat();
    // It is answered, and closed for the body that is not read, which may reset it.
    let rejected = |address: usize| {
        let mut client = connect_tls(port, address, &trust, PATIENCE);
        let _ = client.write_all(body.as_bytes());
        let mut reply = [0; 12];
        let read = client.read_exact(&mut reply);
        assert!(read.is_err() || &reply == b"HTTP/1.1 401", "{reply:?}");
        client
    };
    let stranger = |address: usize, number: usize| {
        // One more than may be waits for its handshake.
        let time = match number < EACH {
            true => PATIENCE,
            false => Duration::from_millis(20),
        };
        let mut client = connect_tls(port, address, &trust, time);
        let sent = match number % 2 {
            0 => client.write_all(head.as_bytes()),
            _ => client
                .write_all(b"GET")
                .and_then(|()| client.sock.write_all(&record)),
        };
        (client, sent.is_ok())
    };
    let flood = |address: usize| {
        let rejected: Vec<_> = (0..EACH).map(|_| rejected(address)).collect();
        let strangers: Vec<_> = (0..EACH + MORE)
            .map(|number| stranger(address, number))
            .collect();
        (rejected, strangers)
    };
    let clients: Vec<_> = thread::scope(|scope| {
        let flood = &flood;
        let threads: Vec<_> = (1..=ADDRESSES)
            .map(|address| scope.spawn(move || flood(address)))
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let growth = server.growth("VmHWM:", before);
    for (_, strangers) in &clients {
        let accepted = strangers.iter().filter(|(_, is_accepted)| *is_accepted);
        assert_eq!(accepted.count(), EACH);
    }
    assert!(growth < GROWTH_KIB, "{before} KiB and {growth} KiB more");
    take();
    drop(clients);
    // The heap is trimmed every 30 seconds.
    #[cfg(target_env = "gnu")]
    ringflake_kit::eventually_within(2 * PATIENCE, "the memory is given back", || {
        server.kib("VmRSS:") < before + (16 << 10)
    });
    server.stop();
}

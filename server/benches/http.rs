//! How many IDs a second come over one connection of HTTP, in binary; and how long one ID
//! takes, asked for when it is due, alone and beside clients that take all they can?
//!
//! Server and clients are one process and share its cores, over the loopback device. When the
//! clock has stopped, all IDs are sorted: none came twice.
//!
//! ```text
//! cargo bench -p ringflake-server --bench http -- [bulk] [single] [beside]
//! ```

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ringflake_server::{Config, NamespaceSettings, Server, Settings};

/// Single takes a second, over all connections.
const RATE: u32 = 5_000;
const CONNECTIONS: u32 = 4;

/// IDs of a large answer: the most that the server allows.
const LARGE: usize = 1 << 16;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let is_given = |name: &str| given.iter().any(|own| own == name);
    let is_wanted = |name| is_given(name) || given.iter().all(|own| own.starts_with('-'));
    // Without `--bench` nobody asked for figures: a test of the benchmark.
    let (answers, time) = match is_given("--bench") {
        true => (800, Duration::from_secs(10)),
        false => (2, Duration::from_millis(200)),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let mut orders = NamespaceSettings::default();
    // 2^12 nodes: 537 M IDs/s for as long as it likes.
    orders.blocks = Some(128);
    let mut settings = Settings::default();
    settings.data_dir = Some(directory.path().to_owned());
    settings.best_effort = Some(true);
    settings.resp.listen = Some(Vec::new());
    settings.http.listen = Some(vec!["127.0.0.1:0".parse().expect("an address")]);
    settings.namespaces.insert("orders".to_owned(), orders);
    let config = Config::new(settings).expect("it is allowed");
    let server = Server::start(config).expect("it starts");
    let at = server.addresses()[0].1.to_string();
    let at = at.parse().expect("an address");

    let mut ids: Vec<[u8; 8]> = Vec::new();
    if is_wanted("bulk") {
        ids.extend_from_slice(bulk(at, answers).as_chunks().0);
    }
    if is_wanted("single") {
        ids.extend(single(at, time, "single"));
    }
    if is_wanted("beside") {
        ids.extend(beside(at, time));
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an ID came twice");
    println!("{count} IDs, none of them twice");
    let stopped = server.stop(Duration::from_secs(60));
    assert!(stopped.is_clean(), "{stopped:?}");
}

/// Large answers, one after the other on a connection that stays open.
fn bulk(at: SocketAddr, answers: usize) -> Vec<u8> {
    let mut client = Client::connect(at);
    client.take(&mut vec![0; 8 * LARGE]);
    let mut bytes = vec![1; 8 * LARGE * answers];
    let start = Instant::now();
    for answer in bytes.chunks_exact_mut(8 * LARGE) {
        client.take(answer);
    }
    let rate = (LARGE * answers) as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("bulk: {rate:.1} M IDs/s over one connection, in answers of {LARGE}");
    bytes
}

/// Single takes, each due at a moment of its own, whether those before it are done or not.
fn single(at: SocketAddr, time: Duration, name: &str) -> Vec<[u8; 8]> {
    let start = Instant::now() + Duration::from_millis(50);
    let count = RATE * time.as_millis() as u32 / 1000 / CONNECTIONS;
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            let mut client = Client::connect(at);
            thread::spawn(move || {
                let take = |nth| {
                    let due = start + Duration::from_secs(1) * (nth * CONNECTIONS + number) / RATE;
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    // A late wake-up of this thread is not the server's latency.
                    let (late, mut id) = (due.elapsed(), [0; 8]);
                    client.take(&mut id);
                    (id, (due.elapsed(), late))
                };
                (0..count).map(take).collect::<Vec<_>>()
            })
        })
        .collect();
    let join = |client: thread::JoinHandle<Vec<_>>| client.join().expect("a client");
    let taken = clients.into_iter().flat_map(join);
    let (ids, times): (Vec<_>, Vec<(Duration, Duration)>) = taken.unzip();
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    let answered: Vec<_> = times.iter().map(|(whole, late)| *whole - *late).collect();
    let (whole, late) = times.into_iter().unzip();
    println!(
        "{name}: {rate:.0} takes/s, each from when it was due: {}",
        quantiles(whole)
    );
    println!("{name}: until the client asked: {}", quantiles(late));
    println!("{name}: from then on: {}", quantiles(answered));
    ids
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() as f64 * part) as usize).min(times.len() - 1)];
    let parts = ["p50", "p90", "p99", "p99.9", "p100"];
    parts
        .map(|part| {
            format!(
                "{part} {:.0?}",
                at(part[1..].parse::<f64>().expect("a number") / 100.0)
            )
        })
        .join(", ")
}

/// The same beside two clients that take large answers without a pause.
fn beside(at: SocketAddr, time: Duration) -> Vec<[u8; 8]> {
    let ends = AtomicBool::new(false);
    let load = || {
        let (mut client, mut bytes, mut taken) = (Client::connect(at), vec![0; 8 * LARGE], 0);
        let start = Instant::now();
        while !ends.load(Ordering::Relaxed) {
            client.take(&mut bytes);
            taken += LARGE;
        }
        taken as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    thread::scope(|scope| {
        let others = [scope.spawn(load), scope.spawn(load)];
        let ids = single(at, time, "beside");
        ends.store(true, Ordering::Relaxed);
        let rates = others.map(|other| other.join().expect("a client"));
        let rate = rates.iter().sum::<f64>();
        println!("beside: {rate:.1} M IDs/s over two other connections meanwhile, not compared");
        ids
    })
}

struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    fn connect(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        Self {
            stream,
            buffer: vec![0; 4096],
        }
    }

    /// Asks for as many IDs as `out` has room for, and reads them.
    fn take(&mut self, out: &mut [u8]) {
        let count = out.len() / 8;
        let request = format!(
            "POST /v1/ids?namespace=orders&count={count} HTTP/1.1\r\nhost: x\r\n\
             accept: application/octet-stream\r\ncontent-length: 0\r\n\r\n"
        );
        let sent = self.stream.write_all(request.as_bytes());
        sent.expect("a server that reads");
        let mut read = 0;
        let head = loop {
            let more = self.stream.read(&mut self.buffer[read..]);
            read += more.expect("an answer");
            let mut ends = self.buffer[..read].windows(4);
            if let Some(end) = ends.position(|end| end == b"\r\n\r\n") {
                break end + 4;
            }
        };
        assert!(self.buffer.starts_with(b"HTTP/1.1 200 "));
        let (first, rest) = out.split_at_mut(read - head);
        first.copy_from_slice(&self.buffer[head..read]);
        self.stream.read_exact(rest).expect("the rest of it");
    }
}

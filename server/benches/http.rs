//! How many IDs a second come over one connection of HTTP, in binary; and how long one ID
//! takes, asked for when it is due, alone and beside clients that take all they can?
//!
//! Server and clients are one process and share its cores, over the loopback device. Every
//! ID is decrypted and marked when the clock has stopped: none came twice.
//!
//! ```text
//! cargo bench -p ringflake-server --bench http -- [bulk] [single] [beside]
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::local::Local;
use ringflake::{Cipher, Layout};
use ringflake_server::{Config, NamespaceSettings, Server, Settings};

/// Single takes a second, over all connections.
const RATE: u32 = 5_000;
/// Connections with single takes.
const CONNECTIONS: u32 = 4;

/// IDs of a large answer: the most that the server allows.
const LARGE: usize = 1 << 16;

/// How thoroughly to measure.
#[derive(Clone, Copy)]
struct Effort {
    /// Large answers of a measurement.
    answers: usize,
    /// How long single takes are asked for.
    time: Duration,
}

impl Effort {
    const MEASURE: Self = Self {
        answers: 800,
        time: Duration::from_secs(10),
    };
    /// Where nobody asked for figures, as a test of the benchmark.
    const TRY: Self = Self {
        answers: 2,
        time: Duration::from_millis(200),
    };
}

fn main() {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let wanted = |name: &str| given.is_empty() || given.iter().any(|own| own == name);
    let effort = match std::env::args().any(|arg| arg == "--bench") {
        true => Effort::MEASURE,
        false => Effort::TRY,
    };
    let served = Served::start(effort);
    let mut marks = Marks::new(&served);
    if wanted("bulk") {
        bulk(&served, &mut marks);
    }
    if wanted("single") {
        single(&served, &mut marks, "single");
    }
    if wanted("beside") {
        beside(&served, &mut marks);
    }
    println!("{} IDs, none of them twice", marks.count);
    let stopped = served.server.stop(Duration::from_secs(60));
    assert!(stopped.is_clean(), "{stopped:?}");
}

/// Large answers, one after the other on a connection that stays open.
fn bulk(served: &Served, marks: &mut Marks) {
    let answers = served.effort.answers;
    let mut client = Client::connect(served.at);
    let mut bytes = vec![1; 8 * LARGE * answers];
    client.large(&mut bytes[..8 * LARGE]);
    marks.mark(&bytes[..8 * LARGE]);
    let start = Instant::now();
    for answer in bytes.chunks_exact_mut(8 * LARGE) {
        client.large(answer);
    }
    let rate = (LARGE * answers) as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("bulk: {rate:.1} M IDs/s over one connection, in answers of {LARGE}");
    marks.mark(&bytes);
}

/// Single takes, each due at a moment of its own, whether those before it are done or not.
fn single(served: &Served, marks: &mut Marks, name: &str) {
    let start = Instant::now() + Duration::from_millis(50);
    let count = RATE * served.effort.time.as_millis() as u32 / 1000 / CONNECTIONS;
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            let mut client = Client::connect(served.at);
            thread::spawn(move || {
                let mut taken = Vec::new();
                for nth in 0..count {
                    let due = start + Duration::from_secs(1) * (nth * CONNECTIONS + number) / RATE;
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    // How late the machine has woken this thread is no fault of the server.
                    let late = due.elapsed();
                    let id = client.single();
                    taken.push((id, (due.elapsed(), late)));
                }
                taken
            })
        })
        .collect();
    let taken = clients
        .into_iter()
        .flat_map(|client| client.join().expect("a client"));
    let (ids, times): (Vec<_>, Vec<(Duration, Duration)>) = taken.unzip();
    let seconds = start.elapsed().as_secs_f64();
    marks.mark(ids.as_flattened());
    let mut answered: Vec<_> = times.iter().map(|(whole, late)| *whole - *late).collect();
    let (mut whole, mut late): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    println!(
        "{name}: {:.0} takes/s, each from when it was due: {}",
        whole.len() as f64 / seconds,
        quantiles(&mut whole)
    );
    println!("{name}: until the client asked: {}", quantiles(&mut late));
    println!("{name}: from then on: {}", quantiles(&mut answered));
}

fn quantiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() as f64 * part) as usize).min(times.len() - 1)];
    let named = [
        ("p50", 0.5),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("longest", 1.0),
    ];
    named
        .map(|(name, part)| format!("{name} {:.0?}", at(part)))
        .join(", ")
}

/// The same beside two clients that take large answers without a pause.
fn beside(served: &Served, marks: &mut Marks) {
    let ends = AtomicBool::new(false);
    let long = thread::scope(|scope| {
        let others: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = Client::connect(served.at);
                    let (mut bytes, mut taken) = (vec![0; 8 * LARGE], 0);
                    let start = Instant::now();
                    while !ends.load(Ordering::Relaxed) {
                        client.large(&mut bytes);
                        taken += LARGE;
                    }
                    taken as f64 / start.elapsed().as_secs_f64() / 1e6
                })
            })
            .collect();
        single(served, marks, "beside");
        ends.store(true, Ordering::Relaxed);
        let others = others
            .into_iter()
            .map(|other| other.join().expect("a client"));
        others.sum::<f64>()
    });
    println!("beside: {long:.1} M IDs/s over two other connections meanwhile, not marked");
}

/// A server with a namespace that is wide enough.
struct Served {
    effort: Effort,
    server: Server,
    at: SocketAddr,
    directory: tempfile::TempDir,
}

impl Served {
    fn start(effort: Effort) -> Self {
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
        let at = server.addresses()[0]
            .1
            .to_string()
            .parse()
            .expect("an address");
        Self {
            effort,
            server,
            at,
            directory,
        }
    }
}

/// A connection that stays open.
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

    fn single(&mut self) -> [u8; 8] {
        let mut id = [0; 8];
        self.take(&mut id).expect("an ID");
        id
    }

    fn large(&mut self, out: &mut [u8]) {
        self.take(out).expect("IDs");
    }

    /// Asks for as many IDs as `out` has room for, and reads them.
    fn take(&mut self, out: &mut [u8]) -> io::Result<()> {
        let count = out.len() / 8;
        let request = format!(
            "POST /v1/ids?namespace=orders&count={count} HTTP/1.1\r\nhost: x\r\n\
             accept: application/octet-stream\r\ncontent-length: 0\r\n\r\n"
        );
        self.stream.write_all(request.as_bytes())?;
        let mut read = 0;
        let head = loop {
            read += self.stream.read(&mut self.buffer[read..])?;
            let end = self.buffer[..read]
                .windows(4)
                .position(|end| end == b"\r\n\r\n");
            if let Some(end) = end {
                break end + 4;
            }
        };
        assert!(self.buffer.starts_with(b"HTTP/1.1 200 "));
        let (first, rest) = out.split_at_mut(read - head);
        first.copy_from_slice(&self.buffer[head..read]);
        self.stream.read_exact(rest)
    }
}

/// The raws of all IDs, a bit each.
struct Marks {
    cipher: Cipher,
    seen: std::collections::HashMap<u64, Box<[u64; 2048]>>,
    count: usize,
}

impl Marks {
    fn new(served: &Served) -> Self {
        let local = Local::new("orders").in_directory(served.directory.path());
        let secret = local.secret(&Layout::RANDFLAKE).expect("it can be read");
        Self {
            cipher: Cipher::sparx64(&secret.expect("it has one")),
            seen: Default::default(),
            count: 0,
        }
    }

    fn mark(&mut self, bytes: &[u8]) {
        let (ids, rest) = bytes.as_chunks();
        assert!(rest.is_empty());
        for id in ids {
            let raw = self.cipher.decrypt(u64::from_le_bytes(*id));
            let page = self
                .seen
                .entry(raw >> 17)
                .or_insert_with(|| Box::new([0; 2048]));
            let word = &mut page[(raw >> 6) as usize % 2048];
            assert!(*word & (1 << (raw % 64)) == 0, "an ID came twice");
            *word |= 1 << (raw % 64);
        }
        self.count += ids.len();
    }
}

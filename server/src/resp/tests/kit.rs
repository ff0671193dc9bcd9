//! A front on free ports with generators of its own, and a client.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use ringflake::{CachedGenerator, Layout, StaticLease};
use ringflake_kit::eventually;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};

use crate::access::{Rights, Role};
use crate::drain::Drain;
use crate::front::FrontCounters;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::namespaces::{Namespaces, OpenError};
use crate::resp::context::Shared;
use crate::resp::{Frontend, Options, Tls};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The limits of tests that are about something else than the request timeout: a busy machine
/// may stop a client or the server for seconds.
pub(super) fn patient() -> Limits {
    Limits {
        request_time: Duration::from_secs(3600),
        ..Limits::default()
    }
}

/// A generator on nodes that no other of this process has.
pub(in crate::resp) fn generator() -> CachedGenerator {
    static NEXT: AtomicU64 = AtomicU64::new(40_000);
    let node = NEXT.fetch_add(64, Relaxed);
    let lease = StaticLease::assume_unique(Layout::RANDFLAKE, node..node + 64);
    CachedGenerator::builder(Layout::RANDFLAKE)
        .plain()
        .lease(lease)
        .build()
        .unwrap()
}

/// Everybody may do everything.
pub(in crate::resp) struct Everything;

impl Rights for Everything {
    fn allows(&self, _: Role, _: Option<&[u8]>) -> bool {
        true
    }
}

/// A token for each right, which has its name.
pub(in crate::resp) struct ByName;

impl Rights for ByName {
    fn allows(&self, role: Role, token: Option<&[u8]>) -> bool {
        token == Some(role.name().as_bytes())
    }
}

pub(super) struct Setup {
    rights: Arc<dyn Rights>,
    limits: Limits,
    proxy_protocol: bool,
    workers: usize,
    tls: Option<(Tls, CertificateDer<'static>)>,
}

impl Setup {
    pub(super) fn new() -> Self {
        Self {
            rights: Arc::new(Everything),
            limits: patient(),
            proxy_protocol: false,
            workers: 2,
            tls: None,
        }
    }

    /// TLS on TCP, with a certificate of its own.
    pub(super) fn tls(mut self) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = made.signing_key.serialize_der().try_into().unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        self.tls = Some((Arc::new(ArcSwap::from_pointee(config)), certificate));
        self
    }

    pub(super) fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub(super) fn rights(mut self, rights: impl Rights + 'static) -> Self {
        self.rights = Arc::new(rights);
        self
    }

    pub(super) fn proxy_protocol(mut self) -> Self {
        self.proxy_protocol = true;
        self
    }

    pub(super) fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    pub(super) fn start(self) -> Running {
        let fails = Arc::new(AtomicBool::new(false));
        let build = {
            let fails = Arc::clone(&fails);
            move |_: &str| match fails.load(Relaxed) {
                true => Err(OpenError::Unknown),
                false => Ok(generator()),
            }
        };
        let namespaces = Arc::new(Namespaces::new(Box::new(build), 64));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let unix = UnixListener::bind(&path).unwrap();
        let drain = Drain::default();
        let (tls, certificate) = self.tls.unzip();
        let front = Frontend::start(Options {
            listeners: vec![Listener::Tcp(tcp), Listener::Unix(unix)],
            namespaces: Arc::clone(&namespaces),
            rights: self.rights,
            tls,
            limits: self.limits,
            proxy_protocol: self.proxy_protocol,
            announce: None,
            key_prefix: String::new(),
            workers: self.workers,
            drain: drain.clone(),
        });
        Running {
            front: front.unwrap(),
            namespaces,
            drain,
            address,
            path,
            certificate,
            fails,
            _directory: directory,
        }
    }
}

pub(super) struct Running {
    front: Frontend,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) drain: Drain,
    address: SocketAddr,
    path: PathBuf,
    certificate: Option<CertificateDer<'static>>,
    fails: Arc<AtomicBool>,
    _directory: tempfile::TempDir,
}

/// The sums of all workers.
pub(super) struct Counts {
    pub(super) turned_away: u64,
    pub(super) closed: u64,
    pub(super) requests: u64,
    pub(super) ids: u64,
}

impl Running {
    pub(super) fn connect(&self, tcp: bool) -> Client {
        let stream = if tcp {
            let stream = TcpStream::connect(self.address).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Stream::Tcp(stream)
        } else {
            let stream = UnixStream::connect(&self.path).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Stream::Unix(stream)
        };
        Client::new(stream)
    }

    /// A client of [`Setup::tls`].
    pub(super) fn connect_tls(&self) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone().unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let Stream::Tcp(socket) = self.connect(true).stream else {
            unreachable!("it is TCP");
        };
        Client::new(Stream::Tls(Box::new(StreamOwned::new(session, socket))))
    }

    pub(super) fn fail_builds(&self, fails: bool) {
        self.fails.store(fails, Relaxed);
    }

    pub(super) fn shared(&self) -> &Shared {
        self.front.shared()
    }

    pub(super) fn counts(&self) -> Counts {
        let sum = |of: fn(&FrontCounters) -> &AtomicU64| {
            let counters = self.front.counters().iter();
            counters.map(|counters| of(counters).load(Relaxed)).sum()
        };
        Counts {
            turned_away: sum(|counters| &counters.turned_away),
            closed: sum(|counters| &counters.closed),
            requests: sum(|counters| &counters.requests),
            ids: sum(|counters| &counters.ids),
        }
    }

    /// Drains, and says whether all of the front has gone and left the namespaces.
    pub(super) fn end(self) -> bool {
        self.end_within(PATIENCE)
    }

    pub(super) fn end_within(self, patience: Duration) -> bool {
        self.drain.begin();
        let has_answered_all = self.front.join(Instant::now() + patience);
        if !has_answered_all {
            // `join` does not wait for long for a worker that a busy machine does not run.
            eventually("the front lets go of its namespaces", || {
                Arc::strong_count(&self.namespaces) == 1
            });
        }
        // Whatever the clients do.
        assert!(Arc::try_unwrap(self.namespaces).is_ok());
        has_answered_all
    }
}

pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// What is written at once is a record of its own.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Tls(stream) => stream.flush(),
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
        }
    }
}

pub(super) struct Client {
    pub(super) stream: Stream,
    input: Vec<u8>,
    /// What is done with of it.
    at: usize,
}

impl Client {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            input: Vec::new(),
            at: 0,
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// The same, with an error if the server has closed the connection.
    pub(super) fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    pub(super) fn end_output(&self) {
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            Stream::Tls(stream) => stream.sock.shutdown(Shutdown::Write),
        };
    }

    /// The next so many replies.
    pub(super) fn replies(&mut self, count: usize) -> Vec<OwnedFrame> {
        self.try_replies(count).unwrap()
    }

    /// The same, with an error if the server closes the connection before.
    pub(super) fn try_replies(&mut self, count: usize) -> io::Result<Vec<OwnedFrame>> {
        let replies = (0..count).map(|_| self.reply()).collect();
        self.input.drain(..self.at);
        self.at = 0;
        replies
    }

    fn reply(&mut self) -> io::Result<OwnedFrame> {
        loop {
            let rest = &self.input[self.at..];
            // A list one by one, as a long one is not there at once.
            if rest.starts_with(b"*") {
                if let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                    let length = std::str::from_utf8(&rest[1..end - 1]).unwrap();
                    let length = length.parse().unwrap();
                    self.at += end + 1;
                    let items = (0..length).map(|_: usize| self.reply());
                    return items.collect::<io::Result<_>>().map(OwnedFrame::Array);
                }
            } else if let Some((reply, used)) = decode(rest).unwrap() {
                self.at += used;
                return Ok(reply);
            }
            let mut more = [0; 1 << 16];
            match self.stream.read(&mut more)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => self.input.extend_from_slice(&more[..read]),
            }
        }
    }

    /// Whether the server closes it, without another reply.
    pub(super) fn is_closed(&mut self) -> bool {
        self.input.is_empty() && self.read_to_end().is_empty()
    }

    /// All that comes before the server closes.
    pub(super) fn read_to_end(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{error}"),
        }
        rest
    }
}

pub(super) fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

pub(super) fn incr(name: &str) -> Vec<u8> {
    request(&["INCR", name])
}

pub(super) fn error(reply: &OwnedFrame) -> &str {
    match reply {
        OwnedFrame::Error(line) => line,
        other => panic!("{other:?}"),
    }
}

/// Numbers that look random: SplitMix64.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)) % end
    }

    /// Bytes that look like a request and are none, for the most part.
    pub(super) fn frame(&mut self) -> Vec<u8> {
        let mut frame = match self.below(4) {
            0 => incr("orders"),
            1 => request(&["LPOP", "orders", "3"]),
            2 => request(&["HELLO", "3", "SETNAME", "x"]),
            _ => b"PING\r\n".to_vec(),
        };
        for _ in 0..self.below(3) {
            let at = self.below(frame.len() as u64) as usize;
            match self.below(3) {
                0 => frame[at] = self.below(256) as u8,
                1 => frame.truncate(at + 1),
                _ => frame.insert(at, b"*$:\r\n0-9"[self.below(8) as usize]),
            }
        }
        frame
    }
}

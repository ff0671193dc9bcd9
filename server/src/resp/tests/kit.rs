//! A front on free ports with generators of its own, and a client.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use ringflake::{CachedGenerator, Layout, StaticLease};
use ringflake_kit::eventually;
use rustls::{ClientConnection, StreamOwned};

use crate::access::Access;
use crate::config::ProtocolConfig;
use crate::counters::{Counters, total};
use crate::drain::Drain;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::namespaces::{Namespaces, OpenError};
use crate::resp::context::Shared;
use crate::resp::{Options, RespServer};
use crate::tls;

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

/// A server for everybody, with this changed.
pub(super) fn serve(change: impl FnOnce(&mut Options)) -> Running {
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
    let mut options = Options {
        listeners: vec![Listener::Tcp(tcp), Listener::Unix(unix)],
        namespaces: Arc::clone(&namespaces),
        rights: Access::open(),
        config: ProtocolConfig {
            workers: 2,
            ..ProtocolConfig::default()
        },
        tls: None,
        limits: patient(),
        drain: drain.clone(),
    };
    change(&mut options);
    Running {
        front: Some(RespServer::start(options).unwrap()),
        namespaces,
        drain,
        address,
        path,
        fails,
        _directory: directory,
    }
}

/// A server that runs. Dropped, it must end by itself.
pub(super) struct Running {
    front: Option<RespServer>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) drain: Drain,
    address: SocketAddr,
    path: PathBuf,
    fails: Arc<AtomicBool>,
    _directory: tempfile::TempDir,
}

impl Running {
    fn connect_tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(super) fn connect(&self, tcp: bool) -> Client {
        if tcp {
            return Client::new(self.connect_tcp());
        }
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client::new(stream)
    }

    /// A client of [`tls::testing::server`]. What it sends at once is a record of its own.
    pub(super) fn connect_tls(&self) -> Client {
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(tls::testing::client(), name).unwrap();
        Client::new(StreamOwned::new(session, self.connect_tcp()))
    }

    pub(super) fn fail_builds(&self, fails: bool) {
        self.fails.store(fails, Relaxed);
    }

    pub(super) fn shared(&self) -> &Shared {
        self.front.as_ref().unwrap().shared()
    }

    /// The sum of a count of all workers.
    pub(super) fn count(&self, of: fn(&Counters) -> &AtomicU64) -> u64 {
        total(self.front.as_ref().unwrap().counters(), of)
    }

    /// Drains, and says whether all of the front has gone and left the namespaces.
    pub(super) fn end(mut self) -> bool {
        self.end_within(PATIENCE)
    }

    pub(super) fn end_within(&mut self, patience: Duration) -> bool {
        let Some(front) = self.front.take() else {
            return true;
        };
        self.drain.begin();
        let has_answered_all = front.join(Instant::now() + patience);
        // Whatever the clients do. `join` does not wait for long for a worker that a busy machine
        // does not run.
        eventually("the front lets go of its namespaces", || {
            Arc::strong_count(&self.namespaces) == 1
        });
        has_answered_all
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.end_within(PATIENCE));
        }
    }
}

pub(super) trait Stream: Read + Write + Send {
    fn end_output(&self) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn end_output(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Stream for UnixStream {
    fn end_output(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Stream for StreamOwned<ClientConnection, TcpStream> {
    fn end_output(&self) -> io::Result<()> {
        self.sock.end_output()
    }
}

pub(super) struct Client {
    pub(super) stream: Box<dyn Stream>,
    input: Vec<u8>,
    /// How many bytes of the input are decoded.
    at: usize,
}

impl Client {
    fn new(stream: impl Stream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
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
        let _ = self.stream.end_output();
    }

    pub(super) fn replies(&mut self, count: usize) -> Vec<OwnedFrame> {
        self.try_replies(count).unwrap()
    }

    pub(super) fn ask(&mut self, requests: &[u8], replies: usize) -> Vec<OwnedFrame> {
        self.send(requests);
        self.replies(replies)
    }

    /// [`replies`](Self::replies), with an error if the server closes the connection before.
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

//! A server on free ports with generators of its own, and a client.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use ringflake::{CachedGenerator, Layout, StaticLease};
use ringflake_kit::eventually;

use crate::access::Access;
use crate::config::ProtocolConfig;
use crate::counters::{Counters, total};
use crate::drain::Drain;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::namespaces::{Namespaces, OpenError};
use crate::resp::context::Shared;
use crate::resp::{Options, RespServer};
use crate::wire::{PATIENCE, Stream, Wire};

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
        server: Some(RespServer::start(options).unwrap()),
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
    server: Option<RespServer>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) drain: Drain,
    address: SocketAddr,
    path: PathBuf,
    fails: Arc<AtomicBool>,
    _directory: tempfile::TempDir,
}

impl Running {
    pub(super) fn connect(&self, tcp: bool) -> Client {
        match tcp {
            true => self.connect_tcp().boxed(),
            false => Wire::unix(&self.path).boxed(),
        }
    }

    pub(super) fn connect_tcp(&self) -> Wire {
        Wire::connect(self.address)
    }

    pub(super) fn connect_tls(&self) -> Client {
        self.connect_tcp().with_tls().boxed()
    }

    pub(super) fn fail_builds(&self, fails: bool) {
        self.fails.store(fails, Relaxed);
    }

    pub(super) fn shared(&self) -> &Shared {
        self.server.as_ref().unwrap().shared()
    }

    /// The sum of a count of all workers.
    pub(super) fn count(&self, of: fn(&Counters) -> &AtomicU64) -> u64 {
        total(self.server.as_ref().unwrap().counters(), of)
    }

    /// Drains, and says whether all of the server has gone and left the namespaces.
    pub(super) fn end(mut self) -> bool {
        self.end_within(PATIENCE)
    }

    pub(super) fn end_within(&mut self, patience: Duration) -> bool {
        let Some(server) = self.server.take() else {
            return true;
        };
        self.drain.begin();
        let has_answered_all = server.join(Instant::now() + patience);
        // Whatever the clients do. `join` does not wait for long for a worker that a busy machine
        // does not run.
        eventually("the server lets go of its namespaces", || {
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

pub(super) type Client = Wire<Box<dyn Stream>>;

impl<S: Stream> Wire<S> {
    pub(super) fn replies(&mut self, count: usize) -> Vec<OwnedFrame> {
        self.try_replies(count).unwrap()
    }

    pub(super) fn ask(&mut self, requests: &[u8], replies: usize) -> Vec<OwnedFrame> {
        self.send(requests);
        self.replies(replies)
    }

    /// [`replies`](Self::replies), with an error if the server closes the connection before.
    pub(super) fn try_replies(&mut self, count: usize) -> io::Result<Vec<OwnedFrame>> {
        let mut at = 0;
        let replies = (0..count).map(|_| self.frame(&mut at)).collect();
        self.rest.drain(..at);
        replies
    }

    /// The reply that begins there in what was read.
    fn frame(&mut self, at: &mut usize) -> io::Result<OwnedFrame> {
        loop {
            let rest = &self.rest[*at..];
            // A list one by one, as a long one is not there at once.
            if rest.starts_with(b"*") {
                if let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                    let length = std::str::from_utf8(&rest[1..end - 1]).unwrap();
                    let length = length.parse().unwrap();
                    *at += end + 1;
                    let items = (0..length).map(|_: usize| self.frame(at));
                    return items.collect::<io::Result<_>>().map(OwnedFrame::Array);
                }
            } else if let Some((reply, used)) = decode(rest).unwrap() {
                *at += used;
                return Ok(reply);
            }
            if !self.more()? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
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

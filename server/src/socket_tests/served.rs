//! A server of both protocols.

use std::net::SocketAddr;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use ringflake::{CachedGenerator, ManualClock, PaddingFill};
use ringflake_kit::tls::{file, only_for_us};
use ringflake_kit::{eventually, small};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use super::wire::{PATIENCE, Wire};
use crate::access::Table;
use crate::config::{Config, Protocol, Settings};
use crate::counters::{Counters, total};
use crate::namespaces::{Namespaces, OpenError};
use crate::server::{Inherited, Server, Stopped};

/// What a test does not say: a busy machine may stop a client or the server for seconds.
const DEFAULTS: &str = "
    data-dir = 'data'
    best-effort = true
    on-demand = true
    resp.listen = 'off'
    resp.unix = 'resp.sock'
    resp.workers = 2
    http.listen = 'off'
    http.unix = 'http.sock'
    http.workers = 2
    limits.request-time = '1h'
    ";

/// Settings of a server with the tests' certificate.
pub(super) const TLS: &str = "tls.certificate = 'server.pem'\ntls.key = 'server.key'\n";

pub(super) struct Served {
    /// `None` once it was stopped.
    server: Option<Server>,
    directory: TempDir,
    addresses: [SocketAddr; 2],
}

pub(super) fn serve(settings: &str) -> Served {
    serve_changed(settings, |_| {})
}

/// With namespaces that `build` makes.
pub(super) fn serve_namespaces(
    settings: &str,
    build: impl Fn(&str) -> Result<CachedGenerator, OpenError> + Send + Sync + 'static,
) -> Served {
    let namespaces = Arc::new(Namespaces::new(Box::new(build), 8));
    serve_changed(settings, |server| server.namespaces = namespaces)
}

/// With connections that buffer little, so that the server itself keeps most of an answer that is
/// not read.
pub(super) fn serve_narrow(settings: &str) -> Served {
    start(
        settings,
        |socket| socket.set_send_buffer_size(4096).unwrap(),
        |_| {},
    )
}

/// With this changed before it accepts.
pub(super) fn serve_changed(settings: &str, change: impl FnOnce(&mut Server)) -> Served {
    start(settings, |_| {}, change)
}

fn start(settings: &str, prepare: impl Fn(&Socket), change: impl FnOnce(&mut Server)) -> Served {
    let directory = TempDir::new().unwrap();
    for name in ["server.pem", "server.key"] {
        let path = directory.path().join(name);
        std::fs::copy(file(name), &path).unwrap();
        only_for_us(&path);
    }
    let read = |text| Settings::from_toml(text, &directory.path().join("serve.toml")).unwrap();
    let config = Config::new(read(settings).over(read(DEFAULTS))).unwrap();
    let sockets = Protocol::ALL.map(|_| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        prepare(&socket);
        socket
            .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .unwrap();
        socket.listen(1024).unwrap();
        socket
    });
    let addresses = [0, 1].map(|at: usize| {
        let address = sockets[at].local_addr().unwrap();
        address.as_socket().unwrap()
    });
    let inherited = Protocol::ALL.into_iter().zip(sockets);
    let inherited = inherited.map(|(protocol, socket)| Inherited::tcp(protocol, socket.into()));
    let server = Server::start_changed(config, inherited.collect(), change, || false).unwrap();
    Served {
        server,
        directory,
        addresses,
    }
}

/// With one namespace, `few`, that has so many IDs, by the thousand, and no more.
pub(super) fn serve_few(ids: u64) -> Served {
    let layout = small::layout(20, 2, 10);
    let ticks = ids.div_ceil(layout.sequences());
    let generator = CachedGenerator::builder(layout)
        .plain()
        .lease(small::lease(layout, 1..2, 0..ticks))
        .clock(ManualClock::new(layout.epoch_unix_ms()))
        .borrow_limit(Duration::from_secs(ticks))
        .build()
        .unwrap();
    // A take while a producer still has a run in hand would find the lease exhausted.
    let expected = generator
        .capacity()
        .min((ticks * layout.sequences()) as usize);
    eventually("the ring is filled", || generator.stats().level >= expected);
    serve_one("few", generator)
}

/// With one namespace, `ahead`, on the lease of these ticks of a second, by this clock, which
/// begins 100 s into the layout; 10 s may be borrowed, and no ID waits in the ring.
pub(super) fn serve_ahead(ticks: Range<u64>) -> (Served, ManualClock) {
    let layout = small::layout(20, 2, 10);
    let clock = small::clock_at(layout, 100);
    let generator = CachedGenerator::builder(layout)
        .plain()
        .lease(small::lease(layout, 1..2, ticks))
        .clock(clock.clone())
        .borrow_limit(Duration::from_secs(10))
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .assist_fill(None)
        .build()
        .unwrap();
    let served = serve_one("ahead", generator);
    served.server().namespaces.open("ahead").unwrap();
    (served, clock)
}

fn serve_one(only: &'static str, generator: CachedGenerator) -> Served {
    serve_namespaces("", move |name| match name == only {
        true => Ok(generator.clone()),
        false => Err(OpenError::Unknown),
    })
}

impl Served {
    pub(super) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(super) fn address(&self, protocol: Protocol) -> SocketAddr {
        self.addresses[protocol as usize]
    }

    pub(super) fn connect(&self, protocol: Protocol) -> Wire {
        Wire::connect(self.address(protocol))
    }

    pub(super) fn connect_unix(&self, protocol: Protocol) -> Wire<UnixStream> {
        Wire::unix(&self.path(&format!("{protocol}.sock")))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn set_rights(&self, rights: Table) {
        self.server().access.replace(rights);
    }

    pub(super) fn generator(&self, namespace: &str) -> CachedGenerator {
        let namespace = self.server().namespaces.open(namespace).unwrap();
        namespace.generator.clone()
    }

    /// The sum of a count of all threads of a protocol.
    pub(super) fn count(&self, protocol: Protocol, of: fn(&Counters) -> &AtomicU64) -> u64 {
        let mut all = self.server().counters.iter();
        let (_, threads) = all.find(|(name, _)| *name == protocol.name()).unwrap();
        total(threads, of)
    }

    pub(super) fn stop(&mut self, patience: Duration) -> Stopped {
        self.server.take().unwrap().stop(patience)
    }
}

/// The server must end by itself.
impl Drop for Served {
    fn drop(&mut self) {
        if let Some(server) = self.server.take()
            && !std::thread::panicking()
        {
            assert!(server.stop(PATIENCE).has_answered_all);
        }
    }
}

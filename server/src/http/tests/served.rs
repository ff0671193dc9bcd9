//! A server, its namespaces and its address.

use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ringflake::{CachedGenerator, ManualClock, PaddingFill, Shutdown};
use ringflake_kit::eventually;
use ringflake_kit::small;
use tempfile::TempDir;

use super::super::{DRAIN_TIME, HttpServer, LAST_PATIENCE, Setup};
use crate::access::Access;
use crate::config::{Config, ProtocolConfig, Settings};
use crate::counters::Counters;
use crate::drain::Drain;
use crate::factory::GeneratorFactory;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::namespaces::{Namespaces, OpenError};
use crate::wire::Wire;

/// The request timeout of tests that are about something else: a busy machine may stop a
/// client or the server for seconds.
const REQUEST_TIME: Duration = Duration::from_secs(3600);

pub(super) struct Served {
    pub(super) drain: Drain,
    pub(super) namespaces: Arc<Namespaces>,
    counters: Arc<Counters>,
    pub(super) at: SocketAddr,
    server: Option<HttpServer>,
    _directory: TempDir,
}

/// With `orders` and `others`, which are local, and those of [`finite`]; and with this
/// changed.
pub(super) fn serve(change: impl FnOnce(&mut Setup)) -> Served {
    serve_namespaces(change, |local, name| local.build(name))
}

/// With one namespace, `few`, that has so many IDs and no more.
pub(super) fn serve_few(ids: u64, change: impl FnOnce(&mut Setup)) -> Served {
    let generator = finite(ids);
    serve_namespaces(change, move |_, name| match name {
        "few" => Ok(generator.clone()),
        _ => Err(OpenError::Unknown),
    })
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
    let served = serve_namespaces(
        |_| {},
        move |_, name| match name {
            "ahead" => Ok(generator.clone()),
            _ => Err(OpenError::Unknown),
        },
    );
    served.namespaces.open("ahead").unwrap();
    (served, clock)
}

/// A generator of so many IDs, by the thousand.
fn finite(ids: u64) -> CachedGenerator {
    let layout = small::layout(20, 2, 10);
    let ticks = ids.div_ceil(layout.sequences());
    let clock = ManualClock::new(layout.epoch_unix_ms());
    let generator = CachedGenerator::builder(layout)
        .plain()
        .lease(small::lease(layout, 1..2, 0..ticks))
        .clock(clock)
        .borrow_limit(Duration::from_secs(ticks))
        .build()
        .unwrap();
    // A take while a producer still has a run in hand would find the lease exhausted.
    let expected = generator
        .capacity()
        .min((ticks * layout.sequences()) as usize);
    eventually("the ring is filled", || generator.stats().level >= expected);
    generator
}

/// With the namespaces that `build` makes, beside those that are local.
pub(super) fn serve_namespaces(
    change: impl FnOnce(&mut Setup),
    build: impl Fn(&GeneratorFactory, &str) -> Result<CachedGenerator, OpenError>
    + Send
    + Sync
    + 'static,
) -> Served {
    let directory = TempDir::new().unwrap();
    let text = "data-dir = 'data'\nbest-effort = true\non-demand-names = ['orders', 'others']";
    let settings = Settings::from_toml(text, &directory.path().join("serve.toml"));
    let config = Config::new(settings.unwrap()).unwrap();
    let local = GeneratorFactory::new(Arc::new(config));
    let build = move |name: &str| build(&local, name);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (drain, namespaces) = (Drain::default(), Namespaces::new(Box::new(build), 8));
    let namespaces = Arc::new(namespaces);
    let counters = Arc::default();
    let mut setup = Setup {
        listeners: vec![Listener::Tcp(listener)],
        config: ProtocolConfig {
            workers: 2,
            ..ProtocolConfig::default()
        },
        namespaces: Arc::clone(&namespaces),
        rights: Access::open(),
        tls: None,
        limits: Limits {
            request_time: REQUEST_TIME,
            ..Limits::default()
        },
        drain: drain.clone(),
        drain_time: DRAIN_TIME,
        counters: Arc::clone(&counters),
        others: Vec::new(),
    };
    change(&mut setup);
    let server = Some(HttpServer::start(setup).unwrap());
    Served {
        drain,
        namespaces,
        counters,
        at,
        server,
        _directory: directory,
    }
}

impl Served {
    pub(super) fn connect(&self) -> Wire {
        Wire::connect(self.at)
    }

    /// The counters of the listener.
    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Waits until so many connections have been accepted.
    pub(super) fn until_accepted(&self, accepted: u64) {
        eventually("so many connections came", || {
            self.counters().accepted.load(Ordering::Relaxed) >= accepted
        });
    }

    /// Waits until so many connections have been accepted, and so many of them have ended.
    pub(super) fn until(&self, accepted: u64, closed: u64) {
        eventually("so many connections came and went", || {
            let counters = self.counters();
            let seen = |count: &AtomicU64| count.load(Ordering::Relaxed);
            (seen(&counters.accepted), seen(&counters.closed)) == (accepted, closed)
        });
    }

    /// Ends the server; answers whether all connections ended by themselves.
    pub(super) fn end_server(&mut self, patience: Duration) -> bool {
        self.drain.begin();
        let server = self.server.take().unwrap();
        server.join(Instant::now() + patience)
    }

    /// The same, after which nobody has its namespaces.
    pub(super) fn end(mut self, patience: Duration) -> bool {
        let joining = Instant::now();
        let ended = self.end_server(patience);
        let Self { namespaces, .. } = self;
        if joining.elapsed() >= LAST_PATIENCE {
            // `join` has given up on threads that a busy machine did not run in that time.
            eventually("the server lets go of its namespaces", || {
                Arc::strong_count(&namespaces) == 1
            });
        }
        // Nothing of the server has them any more.
        let namespaces = Arc::into_inner(namespaces).expect("the server let go of them");
        for (name, shutdown) in namespaces.shutdown(Duration::from_secs(60)) {
            // Those of the test are the test's, too.
            if name != "few" && name != "ahead" {
                assert_eq!(shutdown, Shutdown::Released, "{name}");
            }
        }
        ended
    }
}

//! A service of any number of processes, on any number of machines, that leases its nodes from a
//! server. Start it several times at once.
//!
//! ```sh
//! cargo run --release --features etcd,postgres --example cluster -- \
//!     --init etcd://localhost:2379
//! ```
//!
//! Stop the server while it runs, and start it again: the IDs go on. Without a server at hand,
//! `.ci/with-etcd` and `.ci/with-postgres` run a command with one of its own.

use std::env;
use std::error::Error;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{
    Fingerprint, History, Holder, Init, LeaseStatus, LeaseStore, Namespace, OpenOptions,
    StoreError, StoreLimits, open,
};
use ringflake::{CachedGenerator, Clock, Layout, Secret, SystemClock};

const LAYOUT: Layout = Layout::RANDFLAKE;
const NAMESPACE: &str = "orders";

/// The store may be away for five minutes before anybody notices.
const LEASE_DURATION: Duration = Duration::from_secs(300);

/// A tenth more than the lease duration, which all processes must agree on: it is written
/// down by `init`.
const HORIZON: Duration = Duration::from_secs(330);

/// What the command line says.
struct Arguments {
    url: String,
    init: bool,
    running_time: Duration,
}

impl Arguments {
    /// Reads them; ends the process with its usage where there is no URL.
    fn read() -> Self {
        let mut found = Self {
            url: env::var("RINGFLAKE_STORE").unwrap_or_default(),
            init: false,
            running_time: Duration::from_secs(10),
        };
        let mut rest = env::args().skip(1);
        let mut wrong = false;
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--init" => found.init = true,
                "--seconds" => match rest.next().and_then(|count| count.parse().ok()) {
                    Some(count) => found.running_time = Duration::from_secs(count),
                    None => wrong = true,
                },
                option if option.starts_with('-') => wrong = true,
                url => url.clone_into(&mut found.url),
            }
        }
        if wrong || found.url.is_empty() {
            eprintln!("usage: cluster [--init] [--seconds N] [URL]");
            eprintln!("without a URL, that of the variable RINGFLAKE_STORE is taken");
            process::exit(2);
        }
        found
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::read();
    // Nothing is connected yet, so this fails for a wrong URL only. A URL names every member of an
    // etcd cluster: each is tried in turn. TLS and more are parameters of it, such as ?ca=FILE.
    let options = OpenOptions::new().timeout(Duration::from_secs(10));
    let mut store = open(&arguments.url, &options)?;
    // The same one in every process. A service reads it from a file:
    // `Secret::from_file`.
    let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f")?;
    if arguments.init {
        initialise(&mut *store, &secret)?;
    }

    let ids = CachedGenerator::builder(LAYOUT)
        .secret(&secret)
        .lease_store(store)
        .namespace(NAMESPACE)
        .lease_duration(LEASE_DURATION)
        // For those who read `ringflake store ls`.
        .holder(Holder::new(host(), process::id().to_string()))
        .build()?;
    for lease in ids.leases() {
        eprintln!("process {} leases {lease}", process::id());
    }

    let started = Instant::now();
    while started.elapsed() < arguments.running_time {
        match ids.take() {
            Ok(id) => println!("{id}"),
            // No reason to end: IDs flow again once the store answers.
            Err(refused) => eprintln!("no ID: {refused}"),
        }
        if let Some(status) = ids.lease_status() {
            report(&status);
        }
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Makes the namespace, unless it exists. In production this is a step of the deployment and not of
/// each start, since `New` is true only once: a lost namespace must be made again as `Unknown`.
fn initialise(store: &mut dyn LeaseStore, secret: &Secret) -> Result<(), Box<dyn Error>> {
    let space = Namespace::new(NAMESPACE, &LAYOUT, Fingerprint::of(secret))?;
    let init = Init::new(History::New, SystemClock.unix_ms())
        .with_limits(StoreLimits::default().with_horizon(HORIZON));
    match store.init(&space, &init) {
        Ok(_) => eprintln!("made the namespace {NAMESPACE}"),
        Err(StoreError::AlreadyInitialised { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// What a service would hand to its metrics: how long IDs flow on without the
/// store, and what is wrong with it.
fn report(status: &LeaseStatus) {
    let ends = status.grants.iter().map(|held| held.grant.ticks.end);
    let end_unix_ms = ends.max().map_or(0, |end| LAYOUT.tick_start_unix_ms(end));
    let ride_through = Duration::from_millis(end_unix_ms.saturating_sub(SystemClock.unix_ms()));
    if let Some(error) = &status.health.last_error {
        eprintln!("{ride_through:.0?} left; {error}");
    }
}

fn host() -> String {
    env::var("HOSTNAME").unwrap_or_else(|_| "localhost".to_owned())
}

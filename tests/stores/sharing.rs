//! Generators of one process on one server.

use std::collections::HashSet;
use std::time::Duration;

use ringflake::lease::{Fingerprint, History, Init, Namespace, OpenOptions, open};
use ringflake::{Clock, DirectGenerator, Layout, Secret, Shutdown, SystemClock};

use ringflake_kit::eventually;
use ringflake_kit::proxy::Proxy;
use ringflake_kit::server::Reachable;

const PATIENCE: Duration = Duration::from_secs(60);

fn options() -> OpenOptions {
    OpenOptions::new().timeout(PATIENCE)
}

pub(crate) fn a_hundred_generators_are_one_connection(server: &dyn Reachable) {
    let proxy = Proxy::to(server.port());
    let url = server.url_through(proxy.port());
    let secret = Secret::from_bytes([6; 16]);
    let space = Namespace::new("hundred", &Layout::RANDFLAKE, Fingerprint::of(&secret)).unwrap();
    let init = Init::new(History::New, SystemClock.unix_ms());
    let mut store = open(&url, &options()).unwrap();
    store.init(&space, &init).unwrap();
    drop(store);
    let before = proxy.accepted();

    let build = || {
        DirectGenerator::builder(Layout::RANDFLAKE)
            .secret(&secret)
            .lease_store(open(&url, &options()).unwrap())
            .namespace("hundred")
            .widen_to(1)
            .first_lease_within(PATIENCE)
            .build()
            .unwrap()
    };
    let all: Vec<DirectGenerator> = (0..100).map(|_| build()).collect();
    let ids: HashSet<_> = all.iter().map(|ids| ids.take().unwrap()).collect();
    assert_eq!(ids.len(), 100);
    // On a slow machine one may be replaced after a second of idleness.
    assert!(proxy.connections() <= 1, "{}", proxy.connections());
    let opened = proxy.accepted() - before;
    assert!(opened < 10, "{opened} for 100 generators");
    for ids in all {
        assert_eq!(ids.shutdown(PATIENCE), Shutdown::Released);
    }
    eventually("the connection is closed", || proxy.connections() == 0);
}

/// For so long after its last use a connection stays open.
#[cfg(any(feature = "mysql", feature = "postgres"))]
const LINGERS: Duration = Duration::from_secs(2);

/// The same of what a server counts as one of its few hundred connections.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn a_connection_that_would_be_idle_for_long_is_closed(server: &dyn Reachable) {
    let proxy = Proxy::to(server.port());
    let mut store = open(&server.url_through(proxy.port()), &options()).unwrap();
    let space = Namespace::new("idle", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
    let init = Init::new(History::New, SystemClock.unix_ms());
    let record = store.init(&space, &init).unwrap();
    let opened = proxy.accepted();
    let used = std::time::Instant::now();
    store.rest(Duration::from_secs(20));
    assert!(used.elapsed() > LINGERS || proxy.connections() == 1);
    eventually("nobody has used it for long", || {
        store.rest(Duration::from_secs(19));
        used.elapsed() > LINGERS
    });
    assert_eq!(proxy.connections(), 1, "it is used too soon");
    eventually("it is closed", || {
        store.rest(Duration::from_secs(20));
        proxy.connections() == 0
    });
    assert_eq!(store.list(&space).unwrap().record, record);
    assert_eq!(proxy.accepted(), opened + 1);
}

//! A connection that something in between forgets while nobody uses it.

use std::time::{Duration, Instant};

use ringflake::lease::{Fingerprint, History, Init, Namespace, OpenOptions, open};
use ringflake::{Clock, Layout, SystemClock};

use ringflake_kit::eventually;
use ringflake_kit::proxy::Proxy;
use ringflake_kit::server::Reachable;

/// After this a store does not trust a connection unseen.
const IDLE: Duration = Duration::from_secs(1);

pub(crate) fn a_forgotten_connection_is_replaced(server: &dyn Reachable) {
    let proxy = Proxy::to(server.port());
    let options = OpenOptions::new().timeout(Duration::from_secs(16));
    let mut store = open(&server.url_through(proxy.port()), &options).unwrap();
    let space = Namespace::new("idle", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
    let init = Init::new(History::New, SystemClock.unix_ms());
    let record = store.init(&space, &init).unwrap();

    let used = Instant::now();
    proxy.forget();
    assert!(proxy.forgotten() > 0);
    eventually("nobody has used it for long", || used.elapsed() > IDLE);
    // Whoever waits for an answer until the time is up has none left to connect.
    assert_eq!(store.list(&space).unwrap().record, record);
    // Nor is the new one tried in vain.
    assert_eq!(store.list(&space).unwrap().record, record);
}

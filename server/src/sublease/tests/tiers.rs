//! Leases below tiers: servers with one, each on a data directory of its own, and servers
//! without, before one store.

use std::fs;

use ringflake::Clock;
use ringflake::lease::{self, OpenOptions};
use ringflake_kit::events::said;
use ringflake_kit::tls::allow;

use super::*;
use crate::config::StoreUrl;

/// A store of the namespace `orders`, and data directories beside it.
struct Cluster {
    directory: TempDir,
    namespace: Namespace,
    store: Box<dyn LeaseStore>,
}

impl Cluster {
    fn new() -> Self {
        let directory = private_directory();
        let secret = directory.path().join("secret");
        fs::write(&secret, &SECRET.expose()[..]).unwrap();
        allow(&secret, 0o600);
        let namespace = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::of(&SECRET));
        let mut cluster = Self {
            namespace: namespace.unwrap(),
            store: lease::open(
                &format!("sqlite:{}/leases.db", directory.path().display()),
                &OpenOptions::new().accept_best_effort(true),
            )
            .unwrap(),
            directory,
        };
        let limits = StoreLimits::default().with_horizon(Duration::from_secs(3600));
        let init = Init::new(History::New, SystemClock.unix_ms()).with_limits(limits);
        cluster.store.init(&cluster.namespace, &init).unwrap();
        cluster
    }

    /// A server on the data directory of this name.
    fn server(&self, name: &str, tier: bool) -> Subleases {
        let at = |name: &str| self.directory.path().join(name);
        let data_dir = at(name);
        if !data_dir.exists() {
            fs::create_dir(&data_dir).unwrap();
            allow(&data_dir, 0o700);
        }
        let url = format!("sqlite:{}", at("leases.db").display());
        let orders = NamespaceSettings {
            store: Some(StoreUrl::new(url)),
            secret_file: Some(at("secret")),
            tier: Some(tier),
            ..NamespaceSettings::default()
        };
        let (_, server) = configured(Settings {
            data_dir: Some(data_dir),
            namespaces: [("orders".to_owned(), orders)].into(),
            ..Settings::default()
        });
        server
    }

    fn floor(&mut self) -> u64 {
        self.store.list(&self.namespace).unwrap().record.floor
    }
}

#[test]
fn a_lease_of_another_tier_is_no_evidence_and_is_not_called_lost() {
    let mut cluster = Cluster::new();
    let floor = cluster.floor();
    let servers = [("a", true), ("b", true), ("c", false)];
    let servers = servers.map(|(name, tier)| cluster.server(name, tier));
    for (at, server) in servers.iter().enumerate() {
        let mut lease = one(acquire(server, 1, 60));
        for (_, other) in servers.iter().enumerate().filter(|(other, _)| *other != at) {
            for refused in [
                other.renew(&lease.text, seconds(90)),
                other.release(&lease.text),
            ] {
                refused!(refused, Refusal::Elsewhere);
            }
            let next = one(other.acquire("orders", &having(&lease.text)));
            assert!(next.nodes != lease.nodes || next.ticks.start >= lease.ticks.end);
            assert!(other.renew(&next.text, seconds(90)).is_ok());
        }
        lease = one(server.renew(&lease.text, seconds(90)));
        assert!(server.release(&lease.text).is_ok());
    }
    assert_eq!(cluster.floor(), floor);
    for server in &servers {
        one(acquire(server, 1, 60));
    }
}

#[test]
fn a_lease_below_a_tier_outlives_the_setting_and_comes_back_with_it() {
    let cluster = Cluster::new();
    let lease = one(acquire(&cluster.server("a", true), 1, 60));
    let without = cluster.server("a", false);
    refused!(without.renew(&lease.text, seconds(90)), Refusal::Elsewhere);
    one(without.acquire("orders", &having(&lease.text)));
    one(cluster.server("a", true).renew(&lease.text, seconds(90)));
}

/// S8 holds below a tier as well, and the log says so.
#[test]
fn what_a_tier_has_forgotten_is_found_out_by_its_own_leases() {
    let cluster = Cluster::new();
    let server = cluster.server("a", true);
    one(acquire(&server, 1, 60));
    let lease = one(acquire(&server, 1, 60));
    let service = server.service("orders").unwrap();
    // As if the machine had been put back to the moment before.
    let mut further = lease.grant.clone();
    further.ticks.end += 5;
    let record = service.record(&mut **lock(&service.store), SystemClock.unix_ms());
    let record = record.unwrap();
    assert!(record.is_some());
    let text = text::write(&service.key, "orders", record, &further);
    let wanted = having(&text);
    let said = said(|| {
        refused!(
            server.acquire("orders", &wanted),
            Refusal::Store(StoreError::HistoryLost { .. })
        );
    });
    let lost = |line: &&String| line.starts_with("ERROR ") && line.contains("lease history lost");
    assert_eq!(said.iter().filter(lost).count(), 1, "{said:?}");
}

/// A tier whose file is lost has nothing in common with the one before.
#[test]
fn a_tier_that_was_removed_leaves_its_leases_to_their_ends() {
    let cluster = Cluster::new();
    let lease = one(acquire(&cluster.server("a", true), 1, 60));
    let at = cluster.directory.path().join("a");
    // Its inode stays in use, so that the next one is another.
    fs::rename(at.join("orders.tier.db"), at.join("gone")).unwrap();
    let server = cluster.server("a", true);
    let next = one(server.acquire("orders", &having(&lease.text)));
    assert!(next.nodes != lease.nodes || next.ticks.start >= lease.ticks.end);
    refused!(server.renew(&lease.text, seconds(90)), Refusal::Elsewhere);
}

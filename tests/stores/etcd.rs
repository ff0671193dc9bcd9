//! etcd.

mod fake;
mod restore;

use std::thread;
use std::time::Duration;

use ringflake::lease::conformance::{Suite, TableSuite};
use ringflake::lease::table::{EtcdTable, Table};
use ringflake::lease::{Durability, LeaseStore as _, MAX_ACQUIRE, StoreError};
use serde_json::Value;

use crate::kit::{acquire, denied, made, now, renew, several, take, tests_on, unavailable};
use crate::served::{self, Served, hasty, store, tests_of_servers};
use ringflake_kit::server::{Etcd, TestServer as _};
use ringflake_kit::{assert_says, eventually, words};

impl Served for Etcd {
    fn table(&self) -> Box<dyn Table> {
        Box::new(EtcdTable::from_url(&self.url(), &served::patient()).unwrap())
    }

    fn lose(&self, name: &str) {
        self.ctl(0, &["del", &format!("ringflake/{name}/record")]);
    }
}

tests_of_servers!(Etcd);
tests_on! { Etcd; served: a_connection_that_was_closed_is_opened_again; }

/// A leader that stands still for seconds on a busy machine stays the leader.
const PATIENT: [&str; 4] = ["--heartbeat-interval", "500", "--election-timeout", "5000"];
/// The same for shorter, where a test waits for an election.
const ELECTING: [&str; 4] = ["--heartbeat-interval", "200", "--election-timeout", "2000"];

#[test]
fn it_conforms_on_three_members() {
    let etcd = started!(Etcd::start_with(3, &PATIENT));
    TableSuite::new(&|| etcd.table()).run();
    Suite::new(&|| etcd.store(), &now).run();
}

/// The most that a transaction takes, with a history that is written too.
#[test]
fn the_most_blocks_fit_a_transaction_after_an_election() {
    let mut etcd = started!(Etcd::start());
    let (mut store, space) = etcd.with("most", 5);
    let term = |etcd: &Etcd| {
        let history = etcd.ctl(0, &["get", "ringflake/.history", "--print-value-only"]);
        let history: Value = serde_json::from_str(&history).unwrap();
        history["raft_term"].as_u64().unwrap()
    };
    let before = term(&etcd);
    etcd.kill(0);
    etcd.restart(0);
    several(&mut store, &space, MAX_ACQUIRE, 10);
    assert!(term(&etcd) > before);
}

#[test]
fn a_restart_changes_nothing() {
    let mut etcd = started!(Etcd::start());
    let (mut store, space) = etcd.with("restart", 5);
    let mut grant = take(&mut store, &space, 60);
    for end in [Etcd::kill as fn(&mut Etcd, usize), Etcd::stop] {
        let before = store.list(&space).unwrap();
        end(&mut etcd, 0);
        unavailable(acquire(&mut store, &space));
        etcd.restart(0);
        let report = store.check(&space, now()).unwrap();
        assert!(!report.history_lost());
        assert_eq!(report.durability, Durability::Durable);
        assert_says(&report.store, &["1 members, leader m0"]);
        assert_eq!(store.list(&space).unwrap(), before);
        grant.ticks.end = renew(&mut store, &space, &grant).unwrap();
    }
}

#[test]
fn a_hanging_member_is_passed_over_a_minority_serves_nobody() {
    let mut etcd = started!(Etcd::start_with(3, &ELECTING));
    let space = made(&mut etcd.store(), "hang", 5);
    let leader = etcd.leader();
    let others: Vec<_> = (0..3).filter(|member| *member != leader).collect();
    etcd.process(others[0]).signal(libc::SIGSTOP);
    // Each begins with a member at random, and waits a share of its time for each.
    let take_a_block = || take(&mut hasty(&etcd.url(), Duration::from_secs(15)), &space, 60);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(take_a_block);
        }
    });
    etcd.kill(others[1]);
    let timeout = Duration::from_secs(2);
    let (answer, _) = served::within(timeout + served::SLACK, || {
        acquire(&mut hasty(&etcd.url(), timeout), &space)
    });
    use StoreError::{Ambiguous, Unavailable};
    let is_away = matches!(answer, Err(Unavailable { .. } | Ambiguous { .. }));
    assert!(is_away, "{answer:?}");
    etcd.process(others[0]).signal(libc::SIGCONT);
    let mut store = etcd.store();
    // The two may have to elect a leader.
    eventually("a majority serves", || match acquire(&mut store, &space) {
        Ok(_) => true,
        Err(Unavailable { .. } | Ambiguous { .. }) => false,
        Err(other) => panic!("{other}"),
    });
}

#[test]
fn credentials_log_in_and_are_never_shown() {
    // Passwords that take little time to check.
    let etcd = started!(Etcd::start_with(1, &["--bcrypt-cost", "4"]));
    for arguments in [
        &["user", "add", "root:hunter2root"][..],
        &["user", "add", "me:hunter2me"],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "leases"],
        &words("role grant-permission leases --prefix=true readwrite ringflake/"),
        &["user", "grant-role", "me", "leases"],
        &["auth", "enable"],
    ] {
        etcd.ctl(0, arguments);
    }
    let url = |login: &str| format!("etcd://{login}@127.0.0.1:{}", etcd.port());
    let good = url("me:hunter2me");
    Suite::new(&|| store(&good), &now).run();

    let mut kept = store(&good);
    let orders = made(&mut kept, "orders", 5);
    for login in ["me:hunter2wrong", "nobody:hunter2me"] {
        let mut wrong = store(&url(login));
        let answer = denied(wrong.list(&orders));
        answer.says("invalid user ID or password").hides("hunter2");
        assert!(!format!("{wrong:?}").contains("hunter2"), "{wrong:?}");
    }
    denied(etcd.store().list(&orders)).says("user name is empty");

    // All tokens end with this, and a new one is fetched.
    etcd.ctl(0, &["--user=root:hunter2root", "auth", "disable"]);
    etcd.ctl(0, &["auth", "enable"]);
    take(&mut kept, &orders, 60);
    assert!(!format!("{kept:?}").contains("hunter2"));

    // The history is written after an election only, and a test write finds out before.
    let root = "--user=root:hunter2root role";
    for change in [
        "revoke-permission leases --prefix=true ringflake/",
        "grant-permission leases --prefix=true readwrite ringflake/orders/",
        "grant-permission leases read ringflake/.history",
    ] {
        etcd.ctl(0, &words(&format!("{root} {change}")));
    }
    take(&mut kept, &orders, 60);
    unavailable(kept.write_test(&orders, now())).says("permission denied");
}

#[test]
fn it_conforms_over_tls_and_trusts_nobody_else() {
    let [ca, cert, key] = ["ca.pem", "server.pem", "server.key"].map(ringflake_kit::tls::file);
    let arguments = [
        "--cert-file",
        &cert,
        "--key-file",
        &key,
        "--trusted-ca-file",
        &ca,
        "--client-cert-auth",
    ];
    let etcd = started!(Etcd::start_with(1, &arguments));
    let url = format!("etcd://localhost:{}", etcd.port());
    served::conforms_over_tls_and_trusts_nobody_else(&url, &url);
}

#[test]
fn a_cluster_without_space_is_unavailable_and_says_so() {
    let etcd = started!(Etcd::start_with(1, &["--quota-backend-bytes", "200000"]));
    let (mut store, space) = etcd.with("full", 5);
    let page = "x".repeat(50_000);
    eventually("the space is used up", || {
        etcd.ctl(0, &["endpoint", "status"]);
        let full = std::panic::catch_unwind(|| etcd.ctl(0, &["put", "page", &page]));
        full.is_err()
    });
    unavailable(acquire(&mut store, &space)).says("space exceeded");
    unavailable(store.check(&space, now())).says("NOSPACE");
    assert!(store.list(&space).unwrap().blocks.is_empty());
}

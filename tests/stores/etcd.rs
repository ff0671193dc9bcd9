//! etcd.

mod fake;
mod restore;

use std::time::{Duration, Instant};

use ringflake::lease::conformance::{Given, Suite};
use ringflake::lease::{
    Acquire, Block, Durability, EtcdStore, Fence, Floor, Grant, History, Holder, Init, LeaseStore,
    MAX_ACQUIRE, Namespace, OpenOptions, Renew, StoreError, open,
};
use serde_json::Value;

use crate::kit::tests_on;
use crate::kit::{
    HORIZON, acquire, ambiguous, corrupt, denied, exhausted, fenced, init, now, space, unavailable,
};
use crate::upgrade::upgrades_from_format_1 as upgrades;
use ringflake_kit::proxy::{After, Fault, Proxy, Then};
use ringflake_kit::server::{Etcd, Lent};
use ringflake_kit::short_or_long;
use ringflake_kit::words;

fn options() -> OpenOptions {
    OpenOptions::new().timeout(Duration::from_secs(20))
}

fn store(url: &str) -> EtcdStore {
    EtcdStore::from_url(url, &options()).unwrap()
}

tests_on! { Etcd;
    idle: a_forgotten_connection_is_replaced;
    lost:
        a_grant_whose_reply_is_lost_is_ambiguous_and_nobodys
        many_at_once_are_given_disjoint_rectangles;
    sharing: a_hundred_generators_are_one_connection;
}

#[test]
fn it_conforms() {
    let etcd = started!(Etcd::start());
    let connect = || open(&etcd.url(), &options()).unwrap();
    // No value of a block, or one whose epoch no mark has.
    let damage = |space: &Namespace, block: Block| {
        let key = format!("ringflake/{}/block/{:020}", space.name(), block.index());
        let value = match block.index() % 2 {
            0 => "{",
            _ => r#"{"hwm_end":"00000000000000000005","epoch":6,"released":true}"#,
        };
        etcd.ctl(0, &["put", &key, value]);
    };
    Suite::new(&connect, &now).with_damage(&damage).run();
}

#[test]
fn upgrades_from_format_1() {
    let etcd = started!(Lent::<Etcd>::start());
    let connect = || open(&etcd.url(), &options()).unwrap();
    upgrades(&connect, &|name, format, former| {
        let key = format!("ringflake/{name}/record");
        let record = etcd.ctl(0, &["get", &key, "--print-value-only"]);
        let mut record: Value = serde_json::from_str(&record).unwrap();
        record["format"] = format.into();
        record["fingerprint"] = former.to_string().into();
        etcd.ctl(0, &["put", &key, &record.to_string()]);
        etcd.ctl(0, &["del", "--prefix", "ringflake/.secret/"]);
    });
}

#[test]
fn it_conforms_on_three_members() {
    let etcd = started!(Etcd::start_with(3, &[]));
    let connect = || open(&etcd.url(), &options()).unwrap();
    Suite::new(&connect, &now).run();
}

/// The most that a transaction takes, with a record that is written too.
#[test]
fn the_most_blocks_fit_a_transaction_after_an_election() {
    let mut etcd = started!(Etcd::start());
    let space = space("most");
    let mut store = store(&etcd.url());
    init(&mut store, &space);
    let term = |etcd: &Etcd| {
        let record = etcd.ctl(0, &["get", "ringflake/most/record", "--print-value-only"]);
        let (_, term) = record.split_once("\"raft_term\":").unwrap();
        term.trim_end_matches(['}', '\n']).parse::<u64>().unwrap()
    };
    let before = term(&etcd);
    etcd.kill(0);
    etcd.restart(0);
    let grants = store
        .acquire(&space, &Acquire::new(MAX_ACQUIRE, 10, now()))
        .unwrap();
    assert_eq!(grants.len(), MAX_ACQUIRE as usize);
    assert!(term(&etcd) > before);
}

/// More than are looked at in part: the last free blocks are found.
#[test]
fn the_last_free_blocks_are_found() {
    let etcd = started!(Lent::<Etcd>::start());
    // 1,024 blocks.
    let space = space("last").with_block_bits(7).unwrap();
    let mut store = store(&etcd.url());
    init(&mut store, &space);
    let mut given = Given::default();
    let mut held: Vec<Grant> = Vec::new();
    while held.len() < 1024 {
        let ask = Acquire::new(100.min(1024 - held.len() as u32), 600, now());
        held.extend(store.acquire(&space, &ask).unwrap());
    }
    held.iter().for_each(|grant| given.add(grant));
    exhausted(acquire(&mut store, &space));

    let released = &held[700];
    store
        .release(&space, released.block, released.epoch)
        .unwrap();
    let again = acquire(&mut store, &space).unwrap();
    assert_eq!(again.block, released.block);
    assert_eq!(again.ticks.start, released.ticks.end);
    given.add(&again);
    assert_eq!(store.list(&space).unwrap().blocks.len(), 1024);
}

/// A reply of many megabytes, on the way to the last block that is free.
#[test]
fn a_large_namespace_is_read_as_a_whole() {
    let etcd = started!(Lent::<Etcd>::start());
    // 16,384 blocks.
    let space = space("large").with_block_bits(3).unwrap();
    let mut store = store(&etcd.url());
    init(&mut store, &space);
    let holder = Holder::new("h".repeat(64), "i".repeat(64));
    let ask = Acquire::new(1, 800, now()).held_by(holder);
    let first = store.acquire(&space, &ask).unwrap().remove(0);
    let key = |index: u64| format!("ringflake/large/block/{index:020}");
    let get = ["get", &key(first.block.index()), "--print-value-only"];
    let value = etcd.ctl(0, &get);
    for page in (0..space.blocks()).collect::<Vec<_>>().chunks(128) {
        let keys: Vec<_> = page.iter().map(|index| key(*index)).collect();
        etcd.put_all(&keys, value.trim_end());
    }
    let last = Grant::new(Block::new(9_999), first.epoch, first.ticks);
    exhausted(acquire(&mut store, &space));
    store.release(&space, last.block, last.epoch).unwrap();
    assert_eq!(acquire(&mut store, &space).unwrap().block, last.block);
    let blocks = store.list(&space).unwrap().blocks;
    assert_eq!(blocks.len() as u64, space.blocks());
    assert!(blocks.is_sorted_by_key(|block| block.block));
}

// Replies that are lost

#[test]
fn every_operation_that_writes_can_be_ambiguous_and_no_other() {
    let etcd = started!(Lent::<Etcd>::start());
    let proxy = Proxy::to(etcd.port(0));
    let mut cut = store(&format!("etcd://127.0.0.1:{}", proxy.port()));
    let orders = space("orders");
    init(&mut cut, &orders);
    let grant = acquire(&mut cut, &orders).unwrap();
    let end = grant.ticks.end;
    let renew = Renew::new(&grant, end + 5, now());

    let lose = |requests| {
        proxy.set(Fault::LoseReplies {
            after: After::Requests(requests),
            then: Then::Close,
        });
    };
    let heal = |cut: &mut EtcdStore| {
        proxy.set(Fault::None);
        cut.list(&orders).unwrap();
    };
    let unborn = space("unborn");
    lose(1);
    ambiguous(cut.init(&unborn, &Init::new(History::New, now())));
    heal(&mut cut);
    lose(1);
    ambiguous(cut.renew(&orders, &renew));
    heal(&mut cut);
    assert_eq!(
        fenced(cut.renew(&orders, &renew)),
        Fence::End {
            known: end,
            recorded: end + 5
        }
    );
    lose(1);
    ambiguous(cut.release(&orders, grant.block, grant.epoch));
    heal(&mut cut);
    lose(1);
    ambiguous(cut.raise_floor(&orders, Floor::OverLostGrants, now()));
    heal(&mut cut);
    lose(0);
    unavailable(cut.list(&orders));
    lose(0);
    unavailable(cut.check(&orders, now()));
    lose(0);
    unavailable(acquire(&mut cut, &orders));
    heal(&mut cut);

    let listing = cut.list(&orders).unwrap();
    assert!(listing.blocks[0].released);
    assert!(listing.record.floor > end);
    assert!(cut.list(&unborn).is_ok());
}

#[test]
fn a_connection_that_was_closed_while_idle_is_opened_again() {
    let etcd = started!(Lent::<Etcd>::start());
    let proxy = Proxy::to(etcd.port(0));
    let mut cut = store(&format!("etcd://127.0.0.1:{}", proxy.port()));
    let space = space("idle");
    init(&mut cut, &space);
    proxy.set(Fault::Cut);
    unavailable(acquire(&mut cut, &space));
    proxy.set(Fault::None);
    acquire(&mut cut, &space).unwrap();
    proxy.set(Fault::Cut);
    proxy.set(Fault::None);
    acquire(&mut cut, &space).unwrap();
    assert_eq!(cut.list(&space).unwrap().blocks.len(), 2);
}

// Members that go and come

#[test]
fn a_restart_changes_nothing() {
    let mut etcd = started!(Etcd::start());
    let space = space("restart");
    let mut store = store(&etcd.url());
    init(&mut store, &space);
    let mut grant = acquire(&mut store, &space).unwrap();
    for end in [Etcd::kill as fn(&mut Etcd, usize), Etcd::stop] {
        let before = store.list(&space).unwrap();
        end(&mut etcd, 0);
        unavailable(acquire(&mut store, &space));
        etcd.restart(0);
        let report = store.check(&space, now()).unwrap();
        assert!(!report.history_lost());
        assert_eq!(report.durability, Durability::Durable);
        assert!(
            report.store.contains("1 members, leader m0"),
            "{}",
            report.store
        );
        assert_eq!(store.list(&space).unwrap(), before);
        let renew = Renew::new(&grant, grant.ticks.end + 5, now());
        grant.ticks.end = store.renew(&space, &renew).unwrap();
    }
}

#[test]
fn a_cluster_serves_on_when_its_leader_is_killed() {
    let mut etcd = started!(Etcd::start_with(3, &[]));
    let space = space("leader");
    let mut store = store(&etcd.url());
    init(&mut store, &space);
    let mut given = Given::default();
    let mut grant = acquire(&mut store, &space).unwrap();
    given.add(&grant);
    for _ in 0..short_or_long(1, 3) {
        let leader = etcd.leader();
        etcd.kill(leader);
        // What was sent to the one that died is ambiguous at worst.
        ringflake_kit::eventually("another leads", || match acquire(&mut store, &space) {
            Ok(grant) => {
                given.add(&grant);
                true
            }
            Err(StoreError::Ambiguous { .. } | StoreError::Unavailable { .. }) => false,
            Err(other) => panic!("{other}"),
        });
        let renew = Renew::new(&grant, grant.ticks.end + 1, now());
        let end = store.renew(&space, &renew).unwrap();
        given.extend(&grant, end);
        grant.ticks.end = end;
        assert!(!store.check(&space, now()).unwrap().history_lost());
        etcd.restart(leader);
    }
}

#[test]
fn a_hanging_member_is_passed_over_a_minority_serves_nobody() {
    let mut etcd = started!(Etcd::start_with(3, &[]));
    let space = space("hang");
    init(&mut store(&etcd.url()), &space);
    let leader = etcd.leader();
    let others: Vec<_> = (0..3).filter(|member| *member != leader).collect();
    // Of which a share is waited for each member.
    let brisk = || {
        let options = OpenOptions::new().timeout(Duration::from_secs(6));
        EtcdStore::from_url(&etcd.url(), &options).unwrap()
    };
    etcd.signal(others[0], libc::SIGSTOP);
    for _ in 0..3 {
        // Each begins with a member at random.
        acquire(&mut brisk(), &space).unwrap();
    }
    etcd.kill(others[1]);
    let patience = OpenOptions::new().timeout(Duration::from_secs(2));
    let mut hasty = EtcdStore::from_url(&etcd.url(), &patience).unwrap();
    let start = Instant::now();
    let error = acquire(&mut hasty, &space).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(
        matches!(
            error,
            StoreError::Unavailable { .. } | StoreError::Ambiguous { .. }
        ),
        "{error}"
    );
    etcd.signal(others[0], libc::SIGCONT);
    acquire(&mut store(&etcd.url()), &space).unwrap();
}

#[test]
fn a_cluster_without_space_is_unavailable_and_says_so() {
    let etcd = started!(Etcd::start_with(1, &["--quota-backend-bytes", "200000"]));
    let space = space("full");
    let mut store = store(&etcd.url());
    init(&mut store, &space);
    let page = "x".repeat(50_000);
    ringflake_kit::eventually("the space is used up", || {
        etcd.ctl(0, &["endpoint", "status"]);
        let full = std::panic::catch_unwind(|| etcd.ctl(0, &["put", "page", &page]));
        full.is_err()
    });
    let text = unavailable(acquire(&mut store, &space));
    assert!(text.contains("space exceeded"), "{text}");
    let text = unavailable(store.check(&space, now()));
    assert!(text.contains("NOSPACE"), "{text}");
    assert!(store.list(&space).unwrap().blocks.is_empty());
}

// Who may

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
    let url = |login: &str| format!("etcd://{login}@127.0.0.1:{}", etcd.port(0));
    let good = url("me:hunter2me");
    let connect = || open(&good, &options()).unwrap();
    Suite::new(&connect, &now).run();

    let orders = space("orders");
    for (login, told) in [
        ("me:hunter2wrong", "invalid user ID or password"),
        ("nobody:hunter2me", "invalid user ID or password"),
    ] {
        let mut wrong = store(&url(login));
        let text = denied(wrong.list(&orders)) + &format!("{wrong:?}");
        assert!(text.contains(told), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let text = denied(store(&etcd.url()).list(&orders));
    assert!(text.contains("user name is empty"), "{text}");

    // All tokens end with this, and a new one is fetched.
    let mut kept = store(&good);
    init(&mut kept, &orders);
    etcd.ctl(0, &["--user=root:hunter2root", "auth", "disable"]);
    etcd.ctl(0, &["auth", "enable"]);
    acquire(&mut kept, &orders).unwrap();
    assert!(!format!("{kept:?}").contains("hunter2"));
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
    let host = format!("localhost:{}", etcd.port(0));
    let identity = ringflake_kit::tls::Identity::new();
    let own = identity.parameters("cert", "key");
    let url = format!("etcds://{host}?ca={ca}&{own}");
    let connect = || open(&url, &options()).unwrap();
    Suite::new(&connect, &now).run();

    let orders = space("orders");
    init(&mut store(&url), &orders);
    for (what, url) in [
        ("another authority", format!("etcds://{host}?{own}")),
        ("another name", url.replace("localhost", "127.0.0.2")),
        ("no certificate", format!("etcds://{host}?ca={ca}")),
        ("no TLS", format!("etcd://{host}")),
    ] {
        let patience = OpenOptions::new().timeout(Duration::from_secs(3));
        let mut store = EtcdStore::from_url(&url, &patience).unwrap();
        let text = unavailable(store.list(&orders));
        assert!(!text.is_empty(), "{what}");
    }
}

// What is kept

#[test]
fn what_nobody_wrote_is_corrupt_and_left_alone() {
    let etcd = started!(Lent::<Etcd>::start());
    let mut store = store(&etcd.url());
    let replace = |key: &str, from: &str, to: &str| {
        let value = etcd.ctl(0, &["get", key, "--print-value-only"]);
        let damaged = value.trim_end().replace(from, to);
        assert_ne!(value.trim_end(), damaged);
        etcd.ctl(0, &["put", key, &damaged]);
    };
    for (index, (from, to)) in [
        ("\"floor\":", "\"floor\":-"),
        ("\"raft_term\"", "\"another\""),
        ("\"name\":\"d", "\"name\":\"e"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("d{index}");
        let space = space(&name).with_block_bits(17).unwrap();
        init(&mut store, &space);
        let grant = acquire(&mut store, &space).unwrap();
        replace(&format!("ringflake/{name}/record"), from, to);
        let prefix = format!("ringflake/{name}/");
        let before = etcd.ctl(0, &["get", "--prefix", &prefix]);
        corrupt(acquire(&mut store, &space));
        corrupt(store.list(&space));
        let renew = Renew::new(&grant, grant.ticks.end + 5, now());
        corrupt(store.renew(&space, &renew));
        corrupt(store.repair(&space, grant.block, now()));
        assert_eq!(etcd.ctl(0, &["get", "--prefix", &prefix]), before);
    }
}

#[test]
fn keys_that_nobody_wrote_cost_their_block_alone() {
    let etcd = started!(Lent::<Etcd>::start());
    let mut store = store(&etcd.url());
    let space = space("keys");
    init(&mut store, &space);
    let grants = store.acquire(&space, &Acquire::new(5, 60, now())).unwrap();
    let key = |block: Block| format!("ringflake/keys/block/{:020}", block.index());
    let values = [
        "",
        "\u{fffd}",
        r#"{"hwm_end":"5","epoch":1,"released":false}"#,
        r#"{"hwm_end":"99999999999999999999","epoch":1,"released":false}"#,
        r#"{"hwm_end":"00000000000000000005","epoch":"one","released":false}"#,
    ];
    for (grant, value) in grants.iter().zip(values) {
        etcd.ctl(0, &["put", &key(grant.block), value]);
    }
    // Of no block, at either end of those that are.
    for stray in ["", "7", "x", "00000000000000004096"] {
        let key = format!("ringflake/keys/block/{stray}");
        etcd.ctl(0, &["put", &key, "{}"]);
    }
    let ask = Acquire::new(MAX_ACQUIRE, 60, now());
    let more = store.acquire(&space, &ask).unwrap();
    assert_eq!(more.len(), MAX_ACQUIRE as usize);
    let damaged = |grant: &Grant| grants.iter().any(|known| known.block == grant.block);
    assert!(!more.iter().any(damaged), "{more:?}");

    let listing = store.list(&space).unwrap();
    assert_eq!(listing.blocks.len(), more.len());
    let of_blocks = listing.quarantined.iter().filter_map(|found| found.block);
    let mut expected: Vec<_> = grants.iter().map(|grant| grant.block).collect();
    expected.sort_unstable();
    assert_eq!(of_blocks.collect::<Vec<_>>(), expected);
    assert_eq!(listing.quarantined.len(), 5 + 4);
    for grant in &grants {
        let repaired = store.repair(&space, grant.block, now()).unwrap();
        assert!(repaired.hwm_end > grant.ticks.end + HORIZON / 2);
    }
    let listing = store.list(&space).unwrap();
    assert_eq!(listing.quarantined.len(), 4);
}

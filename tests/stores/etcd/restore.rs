//! Clusters that are restored: what is noticed, and what is not.

use ringflake::lease::conformance::Given;
use ringflake::lease::{Acquire, Fence, Floor, LeaseStore, Namespace, Renew};

use super::store;
use crate::kit::{acquire, fenced, floor_ahead, init, now, space};
use ringflake_kit::server::Etcd;

/// One block, so that it must be granted again.
fn one_block(name: &str) -> Namespace {
    space(name).with_block_bits(17).unwrap()
}

#[test]
fn a_restore_under_another_token_raises_the_floor() {
    let mut etcd = started!(Etcd::start());
    let space = one_block("token");
    init(&mut store(&etcd.url()), &space);
    let snapshot = etcd.snapshot("snapshot");
    let lost = acquire(&mut store(&etcd.url()), &space).unwrap();

    etcd.restore(&snapshot, "another");
    let mut fresh = store(&etcd.url());
    assert!(fresh.list(&space).unwrap().blocks.is_empty());
    assert!(fresh.check(&space, now()).unwrap().history_lost());
    let floor = floor_ahead(acquire(&mut fresh, &space));
    assert!(floor > lost.ticks.end);
    assert_eq!(floor_ahead(acquire(&mut fresh, &space)), floor);
    assert!(!fresh.check(&space, now()).unwrap().history_lost());
}

/// The cluster's ID is the same as before.
#[test]
fn a_restore_under_the_same_token_is_noticed_by_the_raft_term() {
    let mut etcd = started!(Etcd::start());
    // An election, as every restart is one.
    etcd.stop(0);
    etcd.restart(0);
    let space = one_block("term");
    let mut old = store(&etcd.url());
    init(&mut old, &space);
    let kept = acquire(&mut old, &space).unwrap();
    let snapshot = etcd.snapshot("snapshot");
    let renew = Renew::new(&kept, kept.ticks.end + 100, now());
    let end = old.renew(&space, &renew).unwrap();
    let before = old.check(&space, now()).unwrap().incarnation;
    let cluster = |name: &str| name.split_once('/').unwrap().0.to_owned();

    etcd.restore(&snapshot, "test");
    let mut fresh = store(&etcd.url());
    let report = fresh.check(&space, now()).unwrap();
    assert!(report.history_lost());
    assert_eq!(
        cluster(report.incarnation.as_str()),
        cluster(before.as_str()),
        "the cluster's ID is another: this test shows nothing"
    );
    let renew = Renew::new(&kept, end, now());
    assert_eq!(fenced(fresh.renew(&space, &renew)), Fence::Incarnation);
    let floor = floor_ahead(acquire(&mut fresh, &space));
    assert!(floor > end);
}

#[test]
fn a_restore_is_noticed_once_by_stores_that_live_through_it() {
    let mut etcd = started!(Etcd::start());
    // No election: its term is that of the restored one.
    let space = one_block("lived");
    let mut first = store(&etcd.url());
    let mut second = store(&etcd.url());
    init(&mut first, &space);
    let snapshot = etcd.snapshot("snapshot");
    let lost = acquire(&mut first, &space).unwrap();
    // Both have seen what is lost.
    first.list(&space).unwrap();
    second.list(&space).unwrap();

    etcd.restore(&snapshot, "test");
    let mut fresh = store(&etcd.url());
    assert!(
        !fresh.check(&space, now()).unwrap().history_lost(),
        "this test shows nothing"
    );
    assert!(first.check(&space, now()).unwrap().history_lost());
    let floor = floor_ahead(acquire(&mut first, &space));
    assert!(floor > lost.ticks.end);
    // Somebody has noticed; it is not noticed again.
    assert_eq!(floor_ahead(acquire(&mut second, &space)), floor);
    assert_eq!(floor_ahead(acquire(&mut fresh, &space)), floor);
    for store in [&mut first, &mut second, &mut fresh] {
        assert!(!store.check(&space, now()).unwrap().history_lost());
    }
}

/// What the docs say of files that are put back: nobody notices, and the floor
/// must be raised by hand.
#[test]
fn files_that_were_put_back_need_a_raised_floor() {
    let mut etcd = started!(Etcd::start());
    let space = one_block("files");
    let mut given = Given::default();
    init(&mut store(&etcd.url()), &space);
    let copy = etcd.copy_files("copy");
    let lost = acquire(&mut store(&etcd.url()), &space).unwrap();
    given.add(&lost);

    etcd.put_back(&copy);
    let mut fresh = store(&etcd.url());
    assert!(fresh.list(&space).unwrap().blocks.is_empty(), "it is lost");
    assert!(!fresh.check(&space, now()).unwrap().history_lost());
    let floor = fresh
        .raise_floor(&space, Floor::OverLostGrants, now())
        .unwrap();
    assert!(floor > lost.ticks.end);
    floor_ahead(fresh.acquire(&space, &Acquire::new(1, 10, now())));
}

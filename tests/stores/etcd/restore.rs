//! Clusters that are restored: what is noticed, and what is not.

use ringflake::lease::{Fence, Floor, LeaseStore as _, Renew};

use crate::kit::{acquire, fenced, floor_ahead, made, now, renew, take};
use crate::served::Served as _;
use ringflake_kit::server::Etcd;

#[test]
fn a_restore_under_another_token_raises_the_floor() {
    let mut etcd = started!(Etcd::start());
    // One block, here and below, so that it must be granted again.
    let space = made(&mut etcd.store(), "token", 17);
    let snapshot = etcd.snapshot("snapshot");
    let lost = take(&mut etcd.store(), &space, 60);

    etcd.restore(&snapshot, "another");
    let mut fresh = etcd.store();
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
    let (mut old, space) = etcd.with("term", 17);
    // A restart is an election, whose term the next write notes.
    etcd.stop(0);
    etcd.restart(0);
    let mut kept = take(&mut old, &space, 60);
    let snapshot = etcd.snapshot("snapshot");
    let by_100 = Renew::new(&kept, kept.ticks.end + 100, now());
    kept.ticks.end = old.renew(&space, &by_100).unwrap();
    let before = old.check(&space, now()).unwrap().incarnation;
    let cluster = |name: &str| name.split_once('/').unwrap().0.to_owned();

    etcd.restore(&snapshot, "test");
    let mut fresh = etcd.store();
    let report = fresh.check(&space, now()).unwrap();
    assert!(report.history_lost());
    assert_eq!(
        cluster(report.incarnation.as_str()),
        cluster(before.as_str()),
        "the cluster's ID is another: this test shows nothing"
    );
    let fence = fenced(renew(&mut fresh, &space, &kept));
    assert_eq!(fence, Fence::Incarnation);
    assert!(floor_ahead(acquire(&mut fresh, &space)) > kept.ticks.end);
}

#[test]
fn a_restore_is_noticed_once_by_stores_that_live_through_it() {
    let mut etcd = started!(Etcd::start());
    // No election: its term is that of the restored one.
    let [mut first, mut second] = [etcd.store(), etcd.store()];
    let space = made(&mut first, "lived", 17);
    let snapshot = etcd.snapshot("snapshot");
    let lost = take(&mut first, &space, 60);
    // Both have seen what is lost.
    first.list(&space).unwrap();
    second.list(&space).unwrap();

    etcd.restore(&snapshot, "test");
    let mut fresh = etcd.store();
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

/// Restored files go unnoticed, as documented: the floor must be raised by hand.
#[test]
fn files_that_were_put_back_need_a_raised_floor() {
    let mut etcd = started!(Etcd::start());
    let space = made(&mut etcd.store(), "files", 17);
    let copy = etcd.copy_files("copy");
    let lost = take(&mut etcd.store(), &space, 60);

    etcd.put_back(&copy);
    let mut fresh = etcd.store();
    assert!(fresh.list(&space).unwrap().blocks.is_empty(), "it is lost");
    assert!(!fresh.check(&space, now()).unwrap().history_lost());
    let floor = fresh
        .raise_floor(&space, Floor::OverLostGrants, now())
        .unwrap();
    assert!(floor > lost.ticks.end);
    floor_ahead(acquire(&mut fresh, &space));
}

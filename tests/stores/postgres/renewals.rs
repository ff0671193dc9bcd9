//! Renewals and changes of the record exclude each other, and leave no trace in the
//! record's row.

use std::thread;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Block, Confirmed, Epoch, Fence, Floor, Grant, LeaseStore, Namespace, OpenOptions,
    Renew, StoreError, open,
};

use crate::sql::unavailable;
use crate::sql::{Database, made, mark, now, take, tick};
use ringflake_kit::eventually;
use ringflake_kit::server::{Lent, Postgres, Reachable as _, Session};

/// How many sessions of the store wait for a lock of this kind: "advisory" for that of
/// the record.
fn waiting(admin: &Session, kind: &str) -> String {
    admin.value(&format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ringflake'
         AND wait_event_type = 'Lock' AND wait_event = '{kind}'"
    ))
}

/// What changes a record that holds this grant.
type Change = fn(&mut dyn LeaseStore, &Namespace, &Grant) -> Result<(), StoreError>;

fn raise_by_hand(
    store: &mut dyn LeaseStore,
    space: &Namespace,
    grant: &Grant,
) -> Result<(), StoreError> {
    // Above all that is renewed in the meantime.
    let floor = Floor::Tick(grant.ticks.end + 100);
    store.raise_floor(space, floor, now()).map(drop)
}

fn raise_over_lost_history(
    store: &mut dyn LeaseStore,
    space: &Namespace,
    _: &Grant,
) -> Result<(), StoreError> {
    let never_heard_of = Confirmed::new(Block::new(99), Epoch::FIRST, tick(space) + 5);
    let ask = Acquire::new(1, 10, now()).with_evidence(vec![never_heard_of]);
    match store.acquire(space, &ask) {
        Err(StoreError::HistoryLost { .. }) => Ok(()),
        other => panic!("{other:?}"),
    }
}

const CHANGES: [(&str, Change); 2] = [
    ("by hand", raise_by_hand),
    ("over lost history", raise_over_lost_history),
];

fn renew_by_one(
    store: &mut dyn LeaseStore,
    space: &Namespace,
    grant: &Grant,
) -> Result<u64, StoreError> {
    store.renew(space, &Renew::new(grant, grant.ticks.end + 1, now()))
}

/// A change that has begun, and waits for somebody who shares the record's row as an
/// acquisition does, and as renewals of older versions did.
#[test]
fn a_renewal_waits_for_a_floor_being_raised_and_obeys_it() {
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    for (name, (how, change)) in ["a", "b"].into_iter().zip(CHANGES) {
        let space = &made(&mut *server.store(), name, 5);
        let grant = &take(&mut *server.store(), space, 10);
        holding.execute("BEGIN; SELECT * FROM ringflake_namespace FOR SHARE");
        thread::scope(|scope| {
            let changing = scope.spawn(|| change(&mut *server.store(), space, grant));
            eventually("the change waits for the row", || {
                waiting(&admin, "transactionid") == "1"
            });
            let renewing = scope.spawn(|| renew_by_one(&mut *server.store(), space, grant));
            eventually("the renewal waits, or is through", || {
                waiting(&admin, "advisory") == "1" || renewing.is_finished()
            });
            let (passed, raised) = (renewing.is_finished(), changing.is_finished());
            holding.execute("COMMIT");
            assert!(!passed, "it passed a floor raised {how}");
            assert!(!raised, "it was raised {how} past a shared row");
            changing.join().unwrap().unwrap();
            match renewing.join().unwrap() {
                Err(StoreError::Fenced { fence, .. }) => {
                    assert!(matches!(fence, Fence::Floor { .. }), "{how}: {fence:?}");
                }
                other => panic!("{how}: {other:?}"),
            }
        });
        let kept = mark(&mut *server.store(), space, grant.block);
        assert_eq!(kept, Some(grant.ticks.end), "{how}");
    }
}

/// A renewal that has compared with the record, and waits for its block.
#[test]
fn a_floor_is_not_raised_while_a_renewal_is_under_way() {
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    for (name, (how, change)) in ["a", "b"].into_iter().zip(CHANGES) {
        let space = &made(&mut *server.store(), name, 5);
        let grant = &take(&mut *server.store(), space, 10);
        let epoch = grant.epoch.get();
        holding.execute("BEGIN");
        holding.execute(&format!(
            "SELECT * FROM ringflake_block WHERE namespace = '{name}' AND epoch = {epoch} FOR UPDATE"
        ));
        thread::scope(|scope| {
            let renewing = scope.spawn(|| renew_by_one(&mut *server.store(), space, grant));
            eventually("the renewal waits for its block", || {
                waiting(&admin, "transactionid") == "1"
            });
            let changing = scope.spawn(|| change(&mut *server.store(), space, grant));
            eventually("the change waits, or is through", || {
                waiting(&admin, "advisory") == "1" || changing.is_finished()
            });
            let raised = changing.is_finished();
            holding.execute("COMMIT");
            assert!(!raised, "raised {how} over a renewal");
            assert_eq!(renewing.join().unwrap().unwrap(), grant.ticks.end + 1);
            changing.join().unwrap().unwrap();
        });
        let mut grown = grant.clone();
        grown.ticks.end += 1;
        match renew_by_one(&mut *server.store(), space, &grown) {
            Err(StoreError::Fenced { fence, .. }) => {
                assert!(matches!(fence, Fence::Floor { .. }), "{how}: {fence:?}");
            }
            other => panic!("{how}: {other:?}"),
        }
    }
}

#[test]
fn another_namespace_is_not_waited_for() {
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    let space = &made(&mut *server.store(), "orders", 5);
    let other = made(&mut *server.store(), "other", 5);
    let grant = &take(&mut *server.store(), space, 10);
    let elsewhere = take(&mut *server.store(), &other, 10);
    holding.execute("BEGIN; SELECT * FROM ringflake_namespace WHERE name = 'orders' FOR SHARE");
    thread::scope(|scope| {
        let changing = scope.spawn(|| raise_by_hand(&mut *server.store(), space, grant));
        eventually("the change waits for the row", || {
            waiting(&admin, "transactionid") == "1"
        });
        let renewed = renew_by_one(&mut *hasty(&server), &other, &elsewhere);
        // Before anything can fail, so that nobody is left waiting.
        holding.execute("COMMIT");
        assert_eq!(renewed.unwrap(), elsewhere.ticks.end + 1);
        changing.join().unwrap().unwrap();
    });
}

/// A store that gives up before a test would.
fn hasty(server: &Postgres) -> Box<dyn LeaseStore> {
    let options = OpenOptions::new().timeout(Duration::from_secs(5));
    open(&server.url(), &options).unwrap()
}

/// Nothing was compared yet, so nothing is in doubt.
#[test]
fn a_renewal_cancelled_before_it_has_the_lock_is_not_done() {
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    let grant = take(&mut *store, &space, 10);
    // As the store has it, in a transaction that somebody left open.
    holding.execute("BEGIN; SELECT pg_advisory_xact_lock(1919315051, 471239387)");
    let outcome = thread::scope(|scope| {
        let renewing = scope.spawn(|| renew_by_one(&mut *store, &space, &grant));
        eventually("the renewal waits", || waiting(&admin, "advisory") == "1");
        admin.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'",
        );
        renewing.join().unwrap()
    });
    unavailable(outcome, "canceling statement due to user request");
    holding.execute("COMMIT");
    let end = renew_by_one(&mut *store, &space, &grant).unwrap();
    assert_eq!(end, grant.ticks.end + 1);
}

/// Lists of transactions that share a row, which only vacuum clears away.
#[test]
fn renewals_make_no_multixacts() {
    const THREADS: usize = 4;
    const ROUNDS: u64 = 25;
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    let space = &made(&mut *server.store(), "orders", 5);
    let all = Acquire::new(1 + THREADS as u32, 10, now());
    let mut grants = server.store().acquire(space, &all).unwrap();
    let slow = &grants.remove(0);
    let multixacts = || {
        admin.execute("CHECKPOINT");
        admin.value("SELECT next_multixact_id FROM pg_control_checkpoint()")
    };

    let before = multixacts();
    // One renewal is under way all the time, with which the others would share.
    let (block, epoch) = (slow.block.index(), slow.epoch.get());
    holding.execute("BEGIN");
    holding.execute(&format!(
        "SELECT * FROM ringflake_block WHERE block = {block} AND epoch = {epoch} FOR UPDATE"
    ));
    thread::scope(|scope| {
        let slowly = scope.spawn(|| renew_by_one(&mut *server.store(), space, slow));
        eventually("it waits for its block", || {
            waiting(&admin, "transactionid") == "1"
        });
        let workers: Vec<_> = grants
            .iter()
            .map(|grant| scope.spawn(|| renew_so_often(&server, space, grant, ROUNDS)))
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        holding.execute("COMMIT");
        slowly.join().unwrap().unwrap();
    });
    assert_eq!(multixacts(), before);
    for grant in &grants {
        let kept = mark(&mut *server.store(), space, grant.block);
        assert_eq!(kept, Some(grant.ticks.end + ROUNDS));
    }
}

fn renew_so_often(server: &Postgres, space: &Namespace, grant: &Grant, times: u64) {
    let mut store = server.store();
    let mut grant = grant.clone();
    for _ in 0..times {
        grant.ticks.end = renew_by_one(&mut *store, space, &grant).unwrap();
    }
    store.release(space, grant.block, grant.epoch).unwrap();
}

//! Renewals and changes of the record exclude each other, and leave no trace in the
//! record's row.

use std::thread;

use ringflake::lease::{Fence, Floor, Grant, LeaseStore as _, Namespace, StoreError};

use crate::kit::{fenced, made, mark, now, renew, several, take, unavailable};
use crate::served::Served as _;
use crate::sql::Database as _;
use ringflake_kit::eventually;
use ringflake_kit::server::{Lent, Postgres, Reachable as _, Session};

/// Whether one session of the store waits for a lock of this kind: "advisory" for that of
/// the record.
fn waits(admin: &Session, kind: &str) -> bool {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ringflake'
         AND wait_event_type = 'Lock' AND wait_event = ";
    admin.value(&format!("{waiting}'{kind}'")) == "1"
}

/// Runs `first`, which waits for the rows that `held` locks, and then `second`. Returns whether
/// `second` ended before the rows were free, and both results.
fn one_behind_the_other<A: Send, B: Send>(
    server: &Postgres,
    held: &str,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (bool, A, B) {
    let (holding, admin) = (server.admin(), server.admin());
    holding.execute("BEGIN");
    holding.execute(held);
    thread::scope(|scope| {
        let first = scope.spawn(first);
        eventually("the first waits for the rows", || {
            waits(&admin, "transactionid")
        });
        let second = scope.spawn(second);
        eventually("the second waits, or is through", || {
            waits(&admin, "advisory") || second.is_finished()
        });
        let [early, passed] = [first.is_finished(), second.is_finished()];
        // Before anything can fail, so that nobody is left waiting.
        holding.execute("COMMIT");
        assert!(!early, "it went past the rows that were held");
        (passed, first.join().unwrap(), second.join().unwrap())
    })
}

/// Above all that is renewed in the meantime.
fn raise_floor(server: &Postgres, space: &Namespace, grant: &Grant) -> Result<u64, StoreError> {
    let floor = Floor::Tick(grant.ticks.end + 100);
    server.store().raise_floor(space, floor, now())
}

#[test]
fn a_renewal_waits_for_a_floor_being_raised_and_obeys_it() {
    let server = &*started!(Lent::<Postgres>::start());
    let space = &made(&mut server.store(), "orders", 5);
    let grant = &take(&mut server.store(), space, 10);
    let (passed, raised, renewed) = one_behind_the_other(
        server,
        "SELECT * FROM ringflake WHERE key = 'orders/record' FOR SHARE",
        || raise_floor(server, space, grant),
        || renew(&mut server.store(), space, grant),
    );
    assert!(!passed, "it passed a floor that was being raised");
    let (known, floor) = (grant.ticks.end, raised.unwrap());
    assert_eq!(fenced(renewed), Fence::Floor { known, floor });
    assert_eq!(mark(&mut server.store(), space, grant.block), Some(known));
}

/// A renewal that has compared with the record, and waits for its block.
#[test]
fn a_floor_is_not_raised_while_a_renewal_is_under_way() {
    let server = &*started!(Lent::<Postgres>::start());
    let space = &made(&mut server.store(), "orders", 5);
    let grant = &take(&mut server.store(), space, 10);
    let row = server.row(space, grant.block);
    let (raised, renewed, floor) = one_behind_the_other(
        server,
        &format!("SELECT * FROM ringflake WHERE {row} FOR UPDATE"),
        || renew(&mut server.store(), space, grant),
        || raise_floor(server, space, grant),
    );
    assert!(!raised, "raised over a renewal");
    let mut grown = grant.clone();
    grown.ticks.end += 1;
    assert_eq!(renewed.unwrap(), grown.ticks.end);
    let (known, floor) = (grown.ticks.end, floor.unwrap());
    let fence = fenced(renew(&mut server.store(), space, &grown));
    assert_eq!(fence, Fence::Floor { known, floor });
}

/// Nothing was compared yet, so nothing is in doubt.
#[test]
fn a_renewal_cancelled_before_it_has_the_lock_is_not_done() {
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    let mut store = server.store();
    let space = made(&mut store, "orders", 5);
    let grant = take(&mut store, &space, 10);
    // As the store has it, in a transaction that somebody left open.
    holding.execute("BEGIN; SELECT pg_advisory_xact_lock(1919315051, 471239387)");
    let outcome = thread::scope(|scope| {
        let renewing = scope.spawn(|| renew(&mut store, &space, &grant));
        eventually("the renewal waits", || waits(&admin, "advisory"));
        admin.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'",
        );
        renewing.join().unwrap()
    });
    unavailable(outcome).says("canceling statement due to user request");
    holding.execute("COMMIT");
    let end = renew(&mut store, &space, &grant).unwrap();
    assert_eq!(end, grant.ticks.end + 1);
}

/// Lists of transactions that share a row, which only vacuum clears away.
#[test]
fn renewals_make_no_multixacts() {
    const THREADS: u32 = 4;
    const ROUNDS: u64 = 25;
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    let space = &made(&mut server.store(), "orders", 5);
    let mut grants = several(&mut server.store(), space, 1 + THREADS, 10);
    let slow = &grants.remove(0);
    let multixacts = || {
        admin.execute("CHECKPOINT");
        admin.value("SELECT next_multixact_id FROM pg_control_checkpoint()")
    };
    let renew_often = |grant: &Grant| {
        let mut store = server.store();
        let mut grant = grant.clone();
        for _ in 0..ROUNDS {
            grant.ticks.end = renew(&mut store, space, &grant).unwrap();
        }
        store.release(space, grant.block, grant.epoch).unwrap();
    };

    let before = multixacts();
    // One renewal is under way all the time, with which the others would share.
    let row = server.row(space, slow.block);
    holding.execute("BEGIN");
    holding.execute(&format!("SELECT * FROM ringflake WHERE {row} FOR UPDATE"));
    thread::scope(|scope| {
        let slowly = scope.spawn(|| renew(&mut server.store(), space, slow));
        eventually("it waits for its block", || waits(&admin, "transactionid"));
        thread::scope(|scope| {
            for grant in &grants {
                scope.spawn(|| renew_often(grant));
            }
        });
        holding.execute("COMMIT");
        slowly.join().unwrap().unwrap();
    });
    assert_eq!(multixacts(), before);
    for grant in &grants {
        let kept = mark(&mut server.store(), space, grant.block);
        assert_eq!(kept, Some(grant.ticks.end + ROUNDS));
    }
}

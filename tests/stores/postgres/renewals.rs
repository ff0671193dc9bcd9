//! Renewals and changes of the record exclude each other, and leave no trace in the
//! record's row.

use std::thread;
use std::time::Duration;

use ringflake::lease::{
    Block, Confirmed, Epoch, Fence, Floor, Grant, LeaseStore, Namespace, StoreError,
};

use crate::kit::{ask, fenced, made, mark, now, renew, several, take, tick, unavailable};
use crate::served::{Served as _, hasty};
use crate::sql::Database as _;
use crate::sql::batches::renew_all;
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

/// Locks the row of the record.
fn sharing(space: &Namespace) -> String {
    let name = space.name();
    format!("SELECT * FROM ringflake WHERE key = '{name}/record' FOR SHARE")
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
    let ask = ask(1, 10).with_evidence(vec![never_heard_of]);
    match store.acquire(space, &ask) {
        Err(StoreError::HistoryLost { .. }) => Ok(()),
        other => panic!("{other:?}"),
    }
}

const CHANGES: [(&str, Change); 2] = [
    ("by-hand", raise_by_hand),
    ("over-lost-history", raise_over_lost_history),
];

#[test]
fn a_renewal_waits_for_a_floor_being_raised_and_obeys_it() {
    let server = started!(Lent::<Postgres>::start());
    for (how, change) in CHANGES {
        let space = &made(&mut server.store(), how, 5);
        let grant = &take(&mut server.store(), space, 10);
        let (passed, raised, renewed) = one_behind_the_other(
            &server,
            &sharing(space),
            || change(&mut server.store(), space, grant),
            || renew(&mut server.store(), space, grant),
        );
        assert!(!passed, "it passed a floor raised {how}");
        raised.unwrap();
        let fence = fenced(renewed);
        assert!(matches!(fence, Fence::Floor { .. }), "{how}: {fence:?}");
        let kept = mark(&mut server.store(), space, grant.block);
        assert_eq!(kept, Some(grant.ticks.end), "{how}");
    }
}

#[test]
fn renewals_of_many_namespaces_wait_for_each_raised_floor() {
    let server = started!(Lent::<Postgres>::start());
    let spaces = &["a", "b", "c"].map(|name| made(&mut server.store(), name, 5));
    for (raised, space) in spaces.iter().enumerate() {
        let grants = &spaces
            .each_ref()
            .map(|space| take(&mut server.store(), space, 10));
        let floor = grants[raised].ticks.end + 100;
        let (passed, change, answers) = one_behind_the_other(
            &server,
            &sharing(space),
            || raise_by_hand(&mut server.store(), space, &grants[raised]),
            || {
                let asked: Vec<_> = spaces.iter().zip(grants).collect();
                renew_all(&mut server.store(), &asked)
            },
        );
        assert!(!passed, "they passed a floor that was being raised");
        change.unwrap();
        for (index, answer) in answers.into_iter().enumerate() {
            let known = grants[index].ticks.end;
            if index == raised {
                assert_eq!(fenced(answer), Fence::Floor { known, floor });
            } else {
                assert_eq!(answer.unwrap(), known + 1);
            }
        }
        // So that it grants again.
        let floor = format!("\"floor\":{floor}");
        server.change_record(space.name(), &floor, "\"floor\":0");
    }
}

/// A renewal that has compared with the record, and waits for its block.
#[test]
fn a_floor_is_not_raised_while_a_renewal_is_under_way() {
    let server = started!(Lent::<Postgres>::start());
    for (how, change) in CHANGES {
        let space = &made(&mut server.store(), how, 5);
        let grant = &take(&mut server.store(), space, 10);
        let row = server.row(space, grant.block);
        let (raised, renewed, change) = one_behind_the_other(
            &server,
            &format!("SELECT * FROM ringflake WHERE {row} FOR UPDATE"),
            || renew(&mut server.store(), space, grant),
            || change(&mut server.store(), space, grant),
        );
        assert!(!raised, "raised {how} over a renewal");
        change.unwrap();
        let mut grown = grant.clone();
        grown.ticks.end += 1;
        assert_eq!(renewed.unwrap(), grown.ticks.end);
        let fence = fenced(renew(&mut server.store(), space, &grown));
        assert!(matches!(fence, Fence::Floor { .. }), "{how}: {fence:?}");
    }
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

#[test]
fn another_namespace_is_not_waited_for() {
    let server = started!(Lent::<Postgres>::start());
    let space = &made(&mut server.store(), "orders", 5);
    let other = &made(&mut server.store(), "other", 5);
    let grant = &take(&mut server.store(), space, 10);
    let elsewhere = &take(&mut server.store(), other, 10);
    let (passed, raised, renewed) = one_behind_the_other(
        &server,
        &sharing(space),
        || raise_by_hand(&mut server.store(), space, grant),
        // Gives up before a test would.
        || {
            renew(
                &mut hasty(&server.url(), Duration::from_secs(20)),
                other,
                elsewhere,
            )
        },
    );
    raised.unwrap();
    assert!(passed, "it waited: {renewed:?}");
    assert_eq!(renewed.unwrap(), elsewhere.ticks.end + 1);
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

//! Several renewals in one transaction.

use std::thread;

use ringflake::lease::{Fence, Floor, LeaseStore, OpenOptions, StoreError, open};

use crate::sql::batches::{self as sql, all, moved, renew_all, several};
use crate::sql::{Database, all_of, made, mark, now, take};
use ringflake_kit::eventually;
use ringflake_kit::server::{Lent, Postgres, Reachable as _, Session, TestServer as _};

/// The number of the next transaction that writes.
fn next_transaction(admin: &Session) -> u64 {
    let next = admin.value("SELECT txid_snapshot_xmax(txid_current_snapshot())");
    next.parse().unwrap()
}

fn waiting(admin: &Session, kind: &str) -> bool {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ringflake'
         AND wait_event_type = 'Lock' AND wait_event = ";
    admin.value(&format!("{waiting}'{kind}'")) == "1"
}

#[test]
fn renewals_of_many_namespaces_are_one_transaction_everywhere() {
    let server = started!(Lent::<Postgres>::start());
    let admin = server.admin();
    let mut store = server.store();
    let spaces = ["a", "b", "c"].map(|name| made(&mut *store, name, 5));
    let grants: Vec<_> = spaces
        .iter()
        .flat_map(|space| {
            several(&mut *store, space, 40)
                .into_iter()
                .map(move |g| (space, g))
        })
        .collect();
    let mut grants: Vec<_> = grants
        .iter()
        .map(|(space, grant)| (*space, grant))
        .collect();
    grants.reverse();

    let before = next_transaction(&admin);
    let answers = renew_all(&mut *store, &grants);
    assert_eq!(next_transaction(&admin), before + 1);
    moved(answers, &grants);
    let disagree = "SELECT count(*) FROM ringflake_ledger AS l
        JOIN ringflake_namespace AS n USING (number)
        JOIN ringflake_block AS b ON b.namespace = n.name AND b.block = l.block
            AND b.epoch = l.epoch
        WHERE upper(l.ticks) <> b.hwm_end";
    assert_eq!(admin.value(disagree), "0");
    for (space, grant) in grants {
        let kept = mark(&mut *store, space, grant.block);
        assert_eq!(kept, Some(grant.ticks.end + 1));
    }
}

#[test]
fn a_renewal_that_would_overlap_costs_no_other() {
    let server = started!(Lent::<Postgres>::start());
    let mut store = server.store();
    let space = made(&mut *store, "orders", 5);
    let grants = several(&mut *store, &space, 3);
    let (block, end) = (grants[1].block, grants[1].ticks.end);
    server.owner().execute(&format!(
        "INSERT INTO ringflake_ledger VALUES (1, {block}, 7, '[{end}, {})')",
        end + 5
    ));
    let mut answers = renew_all(&mut *store, &all(&space, &grants));
    match answers.remove(1) {
        Err(error @ StoreError::Corrupt { .. }) => {
            let text = all_of(&error);
            assert!(text.contains("ringflake_ledger_disjoint"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    moved(answers, &[(&space, &grants[0]), (&space, &grants[2])]);
    assert_eq!(mark(&mut *store, &space, block), Some(end));
}

#[test]
fn renewals_of_many_namespaces_wait_for_each_raised_floor() {
    let server = started!(Lent::<Postgres>::start());
    let (holding, admin) = (server.admin(), server.admin());
    let spaces = &["a", "b", "c"].map(|name| made(&mut *server.store(), name, 5));
    for raised in 0..spaces.len() {
        let grants = &spaces
            .each_ref()
            .map(|space| take(&mut *server.store(), space, 10));
        let space = &spaces[raised];
        holding.execute(&format!(
            "BEGIN; SELECT * FROM ringflake_namespace WHERE name = '{}' FOR SHARE",
            space.name()
        ));
        let floor = grants[raised].ticks.end + 100;
        thread::scope(|scope| {
            let changing = scope.spawn(|| {
                let mut store = server.store();
                store.raise_floor(space, Floor::Tick(floor), now())
            });
            eventually("the change waits for the row", || {
                waiting(&admin, "transactionid")
            });
            let renewing = scope.spawn(|| {
                let asked: Vec<_> = spaces.iter().zip(grants).collect();
                renew_all(&mut *server.store(), &asked)
            });
            eventually("the renewals wait, or are through", || {
                waiting(&admin, "advisory") || renewing.is_finished()
            });
            let passed = renewing.is_finished();
            holding.execute("COMMIT");
            assert!(!passed, "they passed a floor that was being raised");
            assert_eq!(changing.join().unwrap().unwrap(), floor);
            let answers = renewing.join().unwrap();
            for (index, answer) in answers.into_iter().enumerate() {
                let known = grants[index].ticks.end;
                match answer {
                    Ok(end) => assert_eq!((end, index != raised), (known + 1, true)),
                    Err(StoreError::Fenced { fence, .. }) if index == raised => {
                        assert_eq!(fence, Fence::Floor { known, floor });
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
        // So that it grants again.
        server.execute(&format!(
            "UPDATE ringflake_namespace SET floor = 0 WHERE name = '{}'",
            space.name()
        ));
    }
}

#[test]
fn those_who_renew_the_same_blocks_never_wait_in_a_circle() {
    let server = started!(Lent::<Postgres>::start());
    sql::those_who_renew_the_same_blocks_share_what_is_added(&*server);
    let deadlocks = "SELECT sum(deadlocks) FROM pg_stat_database";
    assert_eq!(server.admin().value(deadlocks), "0");
}

/// A wait for a standby that somebody cancels.
#[test]
fn a_commit_in_doubt_leaves_all_in_doubt_and_is_not_repeated() {
    let server = started!(Postgres::start());
    let mut store = server.store();
    let space = &made(&mut *store, "orders", 5);
    let grants = &several(&mut *store, space, 3);
    server.configure("synchronous_standby_names = 'nobody'");
    server.reload("synchronous_standby_names", "nobody");
    let admin = server.admin();
    let before = next_transaction(&admin);
    let answers = thread::scope(|scope| {
        let mut store = server.store();
        let worker = scope.spawn(move || renew_all(&mut *store, &all(space, grants)));
        let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        eventually("the commit waits for the standby", || {
            admin.value(&format!("SELECT count(*) {waiting}")) == "1"
        });
        admin.execute(&format!("SELECT pg_cancel_backend(pid) {waiting}"));
        worker.join().unwrap()
    });
    assert_eq!(answers.len(), 3);
    for answer in answers {
        match answer {
            Err(error @ StoreError::Ambiguous { .. }) => {
                let text = all_of(&error);
                assert!(text.contains("synchronous replication"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(next_transaction(&admin), before + 1);
    server.configure("synchronous_standby_names = ''");
    server.reload("synchronous_standby_names", "");
}

/// More than a transaction holds, to a server that is not there.
#[test]
fn a_server_that_is_gone_is_tried_once() {
    let mut server = started!(Postgres::start());
    let space = made(&mut *server.store(), "orders", 5);
    let mut grants = several(&mut *server.store(), &space, 127);
    grants.extend(several(&mut *server.store(), &space, 10));
    server.stop();
    let options = OpenOptions::new();
    let mut store = open(&server.url(), &options).unwrap();
    let answers = renew_all(&mut *store, &all(&space, &grants));
    for (index, answer) in answers.into_iter().enumerate() {
        match answer {
            Err(error @ StoreError::Unavailable { .. }) => {
                let asked = !all_of(&error).contains("not asked");
                assert_eq!(asked, index < 128, "{index}: {}", all_of(&error));
            }
            other => panic!("{other:?}"),
        }
    }
}

//! Several renewals in one transaction.

use std::thread;

use ringflake::lease::{Fence, Grant, LeaseStore, Namespace, StoreError};

use crate::kit::{all_of, corrupt, longer, made, mark, several, take};
use crate::served::Served as _;
use ringflake_kit::server::{Lent, Postgres, TestServer as _};

type Answers = Vec<Result<u64, StoreError>>;

/// Asks for one tick more of each.
pub(super) fn renew_all(store: &mut dyn LeaseStore, grants: &[(&Namespace, &Grant)]) -> Answers {
    let wanted: Vec<_> = grants.iter().map(|(_, grant)| longer(grant)).collect();
    let spaces = grants.iter().map(|(space, _)| *space);
    store.renew_all(&spaces.zip(&wanted).collect::<Vec<_>>())
}

pub(super) fn all<'a>(
    space: &'a Namespace,
    grants: &'a [Grant],
) -> Vec<(&'a Namespace, &'a Grant)> {
    grants.iter().map(|grant| (space, grant)).collect()
}

#[track_caller]
fn moved(answers: Answers, grants: &[(&Namespace, &Grant)]) {
    assert_eq!(answers.len(), grants.len());
    for (answer, (_, grant)) in answers.into_iter().zip(grants) {
        assert_eq!(answer.unwrap(), grant.ticks.end + 1);
    }
}

/// The number of the next transaction that writes.
pub(super) fn next_transaction(server: &Postgres) -> u64 {
    let next = "SELECT txid_snapshot_xmax(txid_current_snapshot())";
    server.admin().value(next).parse().unwrap()
}

#[test]
fn renewals_of_many_namespaces_are_one_transaction_everywhere() {
    let server = started!(Lent::<Postgres>::start());
    let mut store = server.store();
    let spaces = ["a", "b", "c"].map(|name| made(&mut store, name, 5));
    let grants = spaces
        .each_ref()
        .map(|space| (space, several(&mut store, space, 20, 10)));
    let asked = grants.iter().flat_map(|(space, grants)| all(space, grants));
    let asked: Vec<_> = asked.rev().collect();

    let before = next_transaction(&server);
    let answers = renew_all(&mut store, &asked);
    assert_eq!(next_transaction(&server), before + 1);
    moved(answers, &asked);
    let agree = "SELECT count(*) FROM ringflake_ledger AS l
        JOIN ringflake_block AS b USING (namespace, block, epoch)
        WHERE upper(l.ticks) = b.hwm_end";
    assert_eq!(server.admin().value(agree), asked.len().to_string());
    for (space, grant) in asked {
        let kept = mark(&mut store, space, grant.block);
        assert_eq!(kept, Some(grant.ticks.end + 1));
    }
}

#[test]
fn a_renewal_that_would_overlap_costs_no_other() {
    let server = started!(Lent::<Postgres>::start());
    let mut store = server.store();
    let space = made(&mut store, "orders", 5);
    let grants = several(&mut store, &space, 3, 10);
    let (block, end) = (grants[1].block, grants[1].ticks.end);
    server.owner().execute(&format!(
        "INSERT INTO ringflake_ledger VALUES ('orders', {block}, 7, '[{end}, {})')",
        end + 5
    ));
    let mut answers = renew_all(&mut store, &all(&space, &grants));
    corrupt(answers.remove(1)).says("ringflake_ledger_disjoint");
    moved(answers, &[(&space, &grants[0]), (&space, &grants[2])]);
    assert_eq!(mark(&mut store, &space, block), Some(end));
}

/// Renewals of the same blocks in opposite orders, by connections of which one alone can
/// move each, and acquisitions between.
#[test]
fn those_who_renew_the_same_blocks_never_wait_in_a_circle() {
    let server = started!(Lent::<Postgres>::start());
    const ROUNDS: usize = 30;
    let spaces = ["a", "b"].map(|name| made(&mut server.store(), name, 5));
    let grants: Vec<(usize, Grant)> = (0..2)
        .flat_map(|which| {
            // So long that no acquisition takes them over, on however slow a machine.
            let grants = several(&mut server.store(), &spaces[which], 10, 600);
            grants.into_iter().map(move |grant| (which, grant))
        })
        .collect();
    let work = |worker: usize| {
        let mut store = server.store();
        let mut grants = grants.clone();
        let mut won = 0;
        for round in 0..ROUNDS {
            if worker.is_multiple_of(2) {
                grants.reverse();
            }
            if worker == 3 {
                take(&mut store, &spaces[round % 2], 10);
            }
            let asked = grants.iter().map(|(which, grant)| (&spaces[*which], grant));
            let answers = renew_all(&mut store, &asked.collect::<Vec<_>>());
            for ((_, grant), answer) in grants.iter_mut().zip(answers) {
                grant.ticks.end = match answer {
                    Ok(end) => {
                        won += 1;
                        end
                    }
                    Err(StoreError::Fenced {
                        fence: Fence::End { recorded, .. },
                        ..
                    }) => recorded,
                    Err(other) => panic!("{}", all_of(&other)),
                };
            }
        }
        won
    };
    let won: u64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|w| scope.spawn(move || work(w))).collect();
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    // Each tick was given to one of them.
    let mut added = 0;
    for (which, grant) in &grants {
        let kept = mark(&mut server.store(), &spaces[*which], grant.block).unwrap();
        added += kept - grant.ticks.end;
    }
    assert_eq!(won, added);
    let deadlocks = "SELECT sum(deadlocks) FROM pg_stat_database";
    assert_eq!(server.admin().value(deadlocks), "0");
}

/// More than a transaction holds, to a server that is not there.
#[test]
fn a_server_that_is_gone_is_tried_once() {
    let mut server = started!(Postgres::start());
    let space = made(&mut server.store(), "orders", 5);
    let mut grants = several(&mut server.store(), &space, 100, 10);
    grants.extend(several(&mut server.store(), &space, 10, 10));
    server.stop();
    let mut store = server.store();
    let answers = renew_all(&mut store, &all(&space, &grants));
    for (index, answer) in answers.into_iter().enumerate() {
        match answer {
            Err(error @ StoreError::Unavailable { .. }) => {
                let asked = !all_of(&error).contains("not asked");
                assert_eq!(asked, index < 60, "{index}: {}", all_of(&error));
            }
            other => panic!("{other:?}"),
        }
    }
}

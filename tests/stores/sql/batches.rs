//! Several renewals in one call.

use std::thread;

use ringflake::lease::{Fence, Grant, LeaseStore, Namespace, StoreError};

use super::Database;
use crate::kit::{all_of, longer, made, mark, several, take};

pub(crate) type Answers = Vec<Result<u64, StoreError>>;

pub(crate) fn renew_all(store: &mut dyn LeaseStore, grants: &[(&Namespace, &Grant)]) -> Answers {
    let wanted: Vec<_> = grants.iter().map(|(_, grant)| longer(grant)).collect();
    let spaces = grants.iter().map(|(space, _)| *space);
    store.renew_all(&spaces.zip(&wanted).collect::<Vec<_>>())
}

pub(crate) fn all<'a>(
    space: &'a Namespace,
    grants: &'a [Grant],
) -> Vec<(&'a Namespace, &'a Grant)> {
    grants.iter().map(|grant| (space, grant)).collect()
}

#[track_caller]
pub(crate) fn moved(answers: Answers, grants: &[(&Namespace, &Grant)]) {
    assert_eq!(answers.len(), grants.len());
    for (answer, (_, grant)) in answers.into_iter().zip(grants) {
        assert_eq!(answer.unwrap(), grant.ticks.end + 1);
    }
}

/// Sixty renewals, which raise each of the server's `counts` by one.
pub(crate) fn renewals_of_many_namespaces_are_one_transaction(
    server: &dyn Database,
    counts: impl Fn() -> Vec<u64>,
) {
    let mut store = server.store();
    let spaces = ["a", "b", "c"].map(|name| made(&mut store, name, 5));
    let grants = spaces
        .each_ref()
        .map(|space| (space, several(&mut store, space, 20, 10)));
    let asked = grants.iter().flat_map(|(space, grants)| all(space, grants));
    let asked: Vec<_> = asked.rev().collect();
    let before = counts();
    let answers = renew_all(&mut store, &asked);
    let after: Vec<_> = before.iter().map(|count| count + 1).collect();
    assert_eq!(counts(), after);
    moved(answers, &asked);
    for (space, grant) in asked {
        let kept = mark(&mut store, space, grant.block);
        assert_eq!(kept, Some(grant.ticks.end + 1));
    }
}

/// Renewals of the same blocks in opposite orders, by connections of which one alone can
/// move each, and acquisitions between.
pub(crate) fn renewals_of_the_same_blocks_share_what_is_added(server: &dyn Database) {
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
}

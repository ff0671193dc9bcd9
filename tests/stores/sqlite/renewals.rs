//! Several renewals in one call.

use std::fs;

use ringflake::lease::table::Key;
use ringflake::lease::{Grant, LeaseStore, Renew, StoreError};

use super::{Place, ask, now, space};
use crate::kit;

fn longer(grant: &Grant) -> Renew {
    Renew::new(grant, grant.ticks.end + 1, now())
}

#[test]
fn renewals_are_one_change() {
    let place = Place::initialised();
    let mut store = place.store();
    let [left, right] = ["test", "right"].map(kit::space);
    kit::init(&mut store, &right);
    // SQLite's own count of changes, in the file's header.
    let writes = || {
        let bytes = fs::read(&place.path).unwrap();
        u32::from_be_bytes(bytes[24..28].try_into().unwrap())
    };
    let mut wanted = Vec::new();
    for space in [&left, &right] {
        let grants = store.acquire(space, &ask(20)).unwrap();
        wanted.extend(grants.iter().map(|grant| (space, longer(grant))));
    }
    // Of both in turns.
    wanted.sort_by_key(|(_, renew)| renew.block);
    wanted[7].1.epoch = wanted[7].1.epoch.next();
    let asked: Vec<_> = wanted
        .iter()
        .map(|(space, renew)| (*space, renew))
        .collect();
    let before = writes();
    let answers = store.renew_all(&asked);
    let refused: Vec<_> = (0..40).filter(|&index| answers[index].is_err()).collect();
    assert_eq!(refused, [7]);
    assert_eq!(writes(), before + 1);

    // Nothing is written where nothing is done.
    let answers = store.renew_all(&asked);
    assert!(answers.iter().all(Result::is_err), "{answers:?}");
    assert_eq!(writes(), before + 1);
}

/// As a rule of the tables would, were a record wrong.
#[test]
fn a_row_that_the_tables_protect_costs_no_other() {
    let place = Place::initialised();
    let mut store = place.store();
    let grants = store.acquire(&space(), &ask(3)).unwrap();
    place.run(&format!(
        "CREATE TRIGGER protected BEFORE UPDATE ON ringflake WHEN old.key = '{}'
         BEGIN SELECT RAISE(ABORT, 'protected'); END",
        Key::block("test", grants[1].block)
    ));
    let (space, wanted) = (space(), grants.iter().map(longer).collect::<Vec<_>>());
    let asked: Vec<_> = wanted.iter().map(|renew| (&space, renew)).collect();
    let answers = store.renew_all(&asked);
    assert!(
        matches!(answers[..], [Ok(_), Err(StoreError::Corrupt { .. }), Ok(_)]),
        "{answers:?}"
    );
}

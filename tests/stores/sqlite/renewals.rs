//! Several renewals in one call.

use ringflake::Layout;
use ringflake::lease::StoreError;
use ringflake::lease::{Fence, Fingerprint, Grant, History, Init, LeaseStore, Namespace, Renew};

use super::{Place, ask, now, space};

/// How often the file has noted a change of this namespace.
fn writes(place: &Place, space: &Namespace) -> i64 {
    let sql = "SELECT writes FROM ringflake_namespace WHERE name = ?1";
    let raw = place.raw();
    raw.query_row(sql, [space.name()], |row| row.get(0))
        .unwrap()
}

fn longer(grant: &Grant) -> Renew {
    Renew::new(grant, grant.ticks.end + 1, now())
}

#[test]
fn renewals_of_a_namespace_are_one_change() {
    let place = Place::initialised();
    let mut store = place.store();
    let left = space();
    let right = Namespace::new("right", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
    store.init(&right, &Init::new(History::New, now())).unwrap();
    let mut wanted = Vec::new();
    for space in [&left, &right] {
        let grants = store.acquire(space, &ask(20, 10)).unwrap();
        wanted.extend(grants.iter().map(|grant| (space, longer(grant))));
    }
    // Of both in turns.
    wanted.sort_by_key(|(_, renew)| renew.block);
    wanted[7].1.epoch = wanted[7].1.epoch.next();
    let before = [&left, &right].map(|space| writes(&place, space));
    let asked: Vec<_> = wanted
        .iter()
        .map(|(space, renew)| (*space, renew))
        .collect();
    let answers = store.renew_all(&asked);
    assert_eq!(answers.len(), 40);
    for (index, (answer, (_, renew))) in answers.into_iter().zip(&wanted).enumerate() {
        match answer {
            Ok(end) => assert_eq!(end, renew.new_end),
            Err(StoreError::Fenced { fence, .. }) => {
                assert!(matches!(fence, Fence::Epoch { .. }), "{fence:?}");
                assert_eq!(index, 7);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        [&left, &right].map(|space| writes(&place, space)),
        before.map(|n| n + 1)
    );

    // Nothing is written where nothing is done.
    let before = writes(&place, &left);
    let asked: Vec<_> = asked
        .into_iter()
        .filter(|(space, _)| *space == &left)
        .collect();
    for answer in store.renew_all(&asked) {
        assert!(
            matches!(answer, Err(StoreError::Fenced { .. })),
            "{answer:?}"
        );
    }
    assert_eq!(writes(&place, &left), before);
}

/// As a rule of the tables would, were a record wrong.
#[test]
fn a_row_that_the_tables_protect_costs_no_other() {
    let place = Place::initialised();
    let mut store = place.store();
    let grants = store.acquire(&space(), &ask(3, 10)).unwrap();
    let block = grants[1].block;
    place
        .raw()
        .execute_batch(&format!(
            "CREATE TRIGGER protected BEFORE UPDATE ON ringflake_block WHEN old.block = {block}
             BEGIN SELECT RAISE(ABORT, 'protected'); END"
        ))
        .unwrap();
    let (space, wanted) = (space(), grants.iter().map(longer).collect::<Vec<_>>());
    let asked: Vec<_> = wanted.iter().map(|renew| (&space, renew)).collect();
    for (index, answer) in store.renew_all(&asked).into_iter().enumerate() {
        match (index, answer) {
            (1, Err(StoreError::Corrupt { .. })) => {}
            (0 | 2, Ok(end)) => assert_eq!(end, wanted[index].new_end),
            other => panic!("{other:?}"),
        }
    }
}

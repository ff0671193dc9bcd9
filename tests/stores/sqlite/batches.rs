//! Many releases or renewals at once.

use std::fs;

use ringflake::lease::{Block, Epoch, LeaseStore};

use super::Place;
use crate::kit::{self, not_initialised};

#[test]
fn many_releases_are_one_step_that_passes_over_what_is_not_ours() {
    let place = Place::in_memory();
    let mut store = place.store();
    let space = kit::made(&mut store, "a", 13);
    let mut grants = kit::several(&mut store, &space, 4, 600);
    grants.sort_by_key(|grant| grant.block);
    let mut expected = store.list(&space).unwrap().blocks;
    for index in [0, 2, 3] {
        expected[index].released = true;
    }
    grants[1].epoch = Epoch::new(7);
    let mut ours: Vec<_> = grants.iter().map(|it| (it.block, it.epoch)).collect();
    let mut free = (0..).map(Block::new);
    let is_free = |block: &Block| grants.iter().all(|grant| grant.block != *block);
    ours.extend(free.find(is_free).map(|block| (block, Epoch::FIRST)));
    store.release_all(&space, &ours).unwrap();
    assert_eq!(store.list(&space).unwrap().blocks, expected);
    store.release_all(&space, &[]).unwrap();

    not_initialised(store.release_all(&kit::space("b"), &ours));
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
        let grants = kit::several(&mut store, space, 20, 600);
        wanted.extend(grants.iter().map(|grant| (space, kit::longer(grant))));
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

//! Room that consumers reserve, and what they put back.

use std::sync::mpsc;
use std::thread;

use ringflake_kit::eventually;
use ringflake_kit::waking::Counting;

use super::*;
use crate::fill::RecallMark;
use crate::fill::filler::insert::Reservation;

/// R4: whatever becomes of the room, since a producer may have found none meanwhile.
#[test]
fn r4_room_that_a_consumer_is_done_with_is_looked_at() {
    let made = SETUP.make();
    let filler = &made.filler;
    let mark = filler.recall_mark();
    let ways: [fn(Reservation<'_>, RecallMark); 3] = [
        |room, _| drop(room),
        |room, mark| _ = room.stock(&[], mark),
        |room, mark| _ = room.stock(&[Id::default()], mark),
    ];
    for (way, done) in ways.into_iter().enumerate() {
        let room = filler.reserve(made.stripe(), 200).unwrap();
        assert_eq!(room.len(), 200);
        assert_eq!(made.wanted(), None);
        let notified = || filler.waiters.sequence.load(Relaxed);
        let woken = filler.wait(Duration::ZERO, || {
            let before = notified();
            let room = filler.reserve(made.stripe(), 1).unwrap();
            done(room, mark);
            Some(notified() - before)
        });
        assert_eq!(woken, Some(1), "{way}: who waits");
        done(room, mark);
        assert_eq!(made.wanted(), Some(FillCause::Threshold), "{way}");
        filler.requests.settle(filler.requests.wanted());
        made.stripe().request.close();
    }
    let room = filler.reserve(made.stripe(), 300).unwrap();
    assert_eq!(room.len(), 254, "what was not used is free again");
}

/// A consumer that is woken then may wait for the last, and would find room that is held.
#[test]
fn r4_room_is_given_back_before_those_who_wait_look_again() {
    let made = SETUP.make();
    let (looks, found) = mpsc::channel();
    let filler = Arc::downgrade(&made.filler);
    let waker = Counting::and(move || {
        let filler = filler.upgrade().unwrap();
        looks.send(filler.waits_for_the_last()).unwrap();
    });
    let mut waiting = made.filler.waiting();
    assert!(waiting.poll(&waker.waker(), || None::<()>).is_pending());
    drop(made.filler.reserve(made.stripe(), 1));
    assert_eq!(found.try_recv(), Ok(false));
}

#[test]
fn who_waits_for_the_last_waits_for_those_who_hold_room() {
    let made = with(|setup| setup.stripes = 2);
    assert!(!made.filler.waits_for_the_last());
    let room = made.filler.reserve(&made.filler.stripes[1], 1).unwrap();
    assert!(made.filler.waits_for_the_last());
    drop(room);
    assert!(!made.filler.waits_for_the_last());
}

/// Waits go on for what another thread is about to put into a stripe, also where nothing more
/// can be made. It is less than one for each of them, and nothing else comes.
#[test]
fn waits_for_the_last_end_also_for_those_who_get_none() {
    const WAITING: usize = 5;
    let made = SETUP.make();
    let room = made.filler.reserve(made.stripe(), 2).unwrap();
    let mark = made.filler.recall_mark();
    let (ended, ends) = mpsc::channel();
    for _ in 0..WAITING {
        let (filler, ended) = (Arc::clone(&made.filler), ended.clone());
        // Not joined: it may never come to its end.
        thread::spawn(move || {
            let attempt = || match filler.take_batch(&mut [Id::default()]) {
                0 if filler.waits_for_the_last() => None,
                count => Some(count),
            };
            ended.send(filler.wait(Duration::MAX, attempt).unwrap())
        });
    }
    // The time that they need to fall asleep. An awake one finds the rest by itself, so too
    // short a sleep can only hide a missing wake-up.
    thread::sleep(Duration::from_millis(50));
    assert_eq!(ends.try_recv(), Err(mpsc::TryRecvError::Empty));
    assert_eq!(room.stock(&[Id::default(); 2], mark), 2);
    let mut counts = Vec::new();
    eventually("all have ended", || {
        counts.extend(ends.try_iter());
        counts.len() == WAITING
    });
    assert_eq!(counts.iter().sum::<usize>(), 2);
}

#[test]
fn what_is_put_back_goes_to_where_there_is_room() {
    let made = with(|setup| setup.stripes = 4);
    let held: Vec<_> = [0, 1, 3]
        .into_iter()
        .map(|stripe| made.filler.stripes[stripe].ring.reserve(255 + stripe / 3))
        .collect();
    let ids: Vec<Id> = first_raws(300).map(Id::from_u64).collect();
    let mark = made.filler.recall_mark();
    assert_eq!(made.filler.put_back(&ids, mark), 1 + 1 + 256);
    assert_eq!(made.filler.level(), 258);
    drop(held);
}

/// IDs of a batch can come from several stripes: the first need not be the oldest.
#[test]
fn nothing_is_put_back_among_which_one_is_too_old() {
    let period = Duration::from_secs(2);
    let schedule = ScheduledFill::every(period).max_age(period);
    let made = with(|setup| setup.schedule = Some(schedule));
    made.clock.later_ms.store(5_000, Relaxed);
    let of_tick = |tick| Id::from_u64(layout().pack(tick, 0, 0).unwrap());
    let mark = made.filler.recall_mark();
    let put_back = |ticks: &[u64]| {
        let ids: Vec<Id> = ticks.iter().map(|&tick| of_tick(tick)).collect();
        made.filler.put_back(&ids, mark)
    };
    assert_eq!(put_back(&[5, 3, 4]), 3, "none older than a period");
    assert_eq!(put_back(&[2, 5]), 0);
    assert_eq!(put_back(&[5, 2]), 0);
}

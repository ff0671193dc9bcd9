//! The requests and wake-ups of a filler.

use super::*;
use ringflake_kit::waking::Counting;

const BOTH: u64 = 0b11;

fn idle(made: &Made) -> u64 {
    made.filler.requests.idle.load(Relaxed)
}

/// How often waiting consumers were notified.
fn notified(made: &Made) -> u64 {
    made.filler.waiters.sequence.load(Relaxed)
}

#[test]
fn a_level_at_the_threshold_asks_for_nothing() {
    let made = with(|setup| setup.threshold = 2);
    for (left, wanted) in [(2, None), (1, Some(FillCause::Threshold))] {
        made.filler.note_level(made.stripe(), left);
        assert_eq!(made.wanted(), wanted, "{left} left");
    }
}

#[test]
fn only_a_take_that_empties_the_ring_asks_a_second_producer() {
    let made = SETUP.make();
    made.fill_leaving(253);
    made.filler.requests.idle.store(BOTH, Relaxed);
    for (left, still_idle) in [(2, 0b10), (1, 0b10), (0, 0)] {
        assert!(made.take().is_some());
        assert_eq!(idle(&made), still_idle, "{left} left");
    }
}

#[test]
fn a_fill_of_more_than_a_block_wakes_one_other_producer() {
    // Blocks of 16, so that several follow.
    let made = SETUP.make_with(8);
    made.filler.requests.idle.store(BOTH, Relaxed);
    made.filler.fill(FillCause::Padding).unwrap();
    assert_eq!(made.ring().len(), 256);
    assert_eq!(idle(&made), 0b10);
    // Not for one block alone.
    assert_eq!(made.ring().take_batch(&mut [Id::default(); 16]), 16);
    made.filler.fill(FillCause::Padding).unwrap();
    assert_eq!(made.ring().len(), 256);
    assert_eq!(idle(&made), 0b10);
}

#[test]
fn a_refusal_notifies_those_who_wait_and_a_nudge_does_not() {
    let made = SETUP.make();
    let mut attempts = 0;
    let outcome = made.filler.wait(Duration::ZERO, || {
        attempts += 1;
        let before = notified(&made);
        match attempts {
            // It is called under a lock, where no waker may be.
            1 => made.filler.nudge(),
            _ => made.filler.wake_waiters(),
        }
        assert_eq!(notified(&made) - before, attempts - 1);
        (attempts == 2).then_some(())
    });
    assert_eq!(outcome, Some(()));
}

#[test]
#[cfg(unix)]
fn a_forked_child_leaves_those_who_wait_alone() {
    let made = SETUP.make();
    let notified_in_child = made.filler.wait(Duration::ZERO, || {
        Some(ringflake_kit::child::in_a_fork(|| {
            let before = notified(&made);
            made.filler.wake_waiters();
            u8::from(notified(&made) != before)
        }))
    });
    assert_eq!(notified_in_child, Some(Ok(0)));
}

#[test]
fn a_consumer_that_leaves_wakes_the_next_for_the_rest() {
    let made = SETUP.make();
    let leave = || {
        // Inside another wait, so that somebody can be woken.
        made.filler.wait(Duration::ZERO, || {
            let before = notified(&made);
            made.filler.wait(Duration::ZERO, || Some(()));
            Some(notified(&made) - before)
        })
    };
    assert_eq!(leave(), Some(0), "the ring is empty");
    made.filler.fill(FillCause::Padding).unwrap();
    assert_eq!(leave(), Some(1));
}

#[test]
fn a_recall_is_over_where_nobody_holds_anything() {
    let made = SETUP.make();
    made.filler.fill(FillCause::Padding).unwrap();
    let mark = made.filler.recall_mark();
    assert!(made.filler.is_unrecalled(mark));
    assert!(!made.filler.recall());
    assert!(made.ring().is_empty());
    assert!(!made.filler.is_unrecalled(mark));
    // One whose clock is stuck, say.
    let held = made.ring().reserve(1);
    assert!(!made.filler.recall(), "a permit alone inserts nothing");
    drop(held);
}

#[test]
fn s4_ids_from_before_a_recall_are_not_inserted_after_it() {
    let made = SETUP.make();
    let insert = |mark| {
        let permit = made.ring().reserve(2).unwrap();
        made.filler
            .insert(made.stripe(), permit, &[Id::default(); 2], mark)
    };
    let before = made.filler.recall_mark();
    assert_eq!(insert(before), 2);
    made.filler.recall();
    assert_eq!(insert(before), 0);
    assert!(made.ring().is_empty());
    assert_eq!(insert(made.filler.recall_mark()), 2);
    assert!(!made.filler.recall(), "nobody is counted any more");
}

#[test]
fn r4_room_that_nothing_is_put_back_into_is_asked_for() {
    let made = SETUP.make();
    let before = made.filler.recall_mark();
    made.filler.recall();
    let woken = made.filler.wait(Duration::ZERO, || {
        let notified_before = notified(&made);
        assert_eq!(made.filler.put_back(&[Id::default(); 2], before), 0);
        Some(notified(&made) - notified_before)
    });
    // Both may have gone to sleep while the room was promised.
    assert_eq!(woken, Some(1), "who waits");
    assert_eq!(made.wanted(), Some(FillCause::Threshold), "a producer");
}

#[test]
fn an_insertion_of_nothing_wakes_nobody() {
    let made = SETUP.make();
    let insert = |ids: &[Id]| {
        let permit = made.ring().reserve(2).unwrap();
        let before = notified(&made);
        made.filler
            .insert(made.stripe(), permit, ids, made.filler.recall_mark());
        notified(&made) - before
    };
    let woken = made.filler.wait(Duration::ZERO, || {
        Some([insert(&[]), insert(&[Id::default()])])
    });
    assert_eq!(woken, Some([0, 1]));
}

/// It may not be polled again before the lease comes.
#[test]
fn a_wait_for_a_lease_passes_the_wake_ups_for_ids_on() {
    let made = SETUP.make();
    let [counting, other] = [Counting::new(), Counting::new()];
    let mut ready = FilledWait::new(&made.filler);
    assert!(ready.poll(Some(true), &counting.waker()).is_pending());
    assert!(!made.filler.nobody_waits());
    let mut waiting = made.filler.waiting();
    assert!(waiting.poll(&other.waker(), || None::<()>).is_pending());
    assert!(ready.poll(None, &counting.waker()).is_pending());
    assert_eq!(counting.held(), 0);
    made.filler.fill(FillCause::Padding).unwrap();
    assert_eq!((counting.woken(), other.woken()), (0, 1));
}

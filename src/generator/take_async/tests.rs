//! Takes that are polled by hand. The clock stands still at a tick with eight IDs, all of
//! which a handle has taken: what it gives back, in the thread of the test, is the one
//! publication there is.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::*;
use crate::clock::ManualClock;
use crate::generator::builder::CachedGeneratorBuilder;
use crate::generator::empty::OnEmpty;
use crate::generator::handle::Handle;
use crate::layout::Layout;
use crate::lease::StaticLease;
use crate::timeline::Refused;
use ringflake_kit::eventually;
use ringflake_kit::waking::Counting;

/// Eight IDs to a tick and node; eight slots.
fn builder(node: u64, ticks_left: u64) -> CachedGeneratorBuilder {
    let layout = Layout::builder()
        .bits(30, 11, 3)
        .tick(Duration::from_secs(1))
        .build()
        .unwrap();
    let tick = layout.ticks() - 1 - ticks_left;
    CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, node..node + 1))
        .clock(ManualClock::new(layout.tick_start_unix_ms(tick)))
        .borrow_limit(Duration::ZERO)
        .capacity(8)
        // It does not end the wait of a future.
        .on_empty(OnEmpty::Wait(Duration::ZERO))
}

/// A dry ring, and a handle that gives so many IDs back when it is dropped: seven at most.
fn dry(builder: CachedGeneratorBuilder, left: usize) -> (CachedGenerator, Handle) {
    let ids = builder.build().unwrap();
    // A producer that is refused wakes those who wait, whenever that is.
    ids.filler.requests().stop();
    let ended = || ids.shared.producers.are_finished();
    eventually("the producer ends", ended);
    let mut handle = ids.handle().unwrap();
    for _ in left..8 {
        handle.take().unwrap();
    }
    assert_eq!(ids.stats().level, 0);
    (ids, handle)
}

fn nobody_waits(ids: &CachedGenerator) -> bool {
    ids.filler.nobody_waits()
}

#[test]
fn what_there_is_is_taken_by_the_first_poll() {
    let ids = builder(1000, 5).build().unwrap();
    let counting = Counting::new();
    let mut take = ids.take_async();
    // Ready, it can be polled again.
    let taken = [(); 8].map(|()| match counting.poll(&mut take) {
        Poll::Ready(Ok(id)) => id,
        other => panic!("{other:?}"),
    });
    assert!(taken.is_sorted_by(|a, b| a < b), "{taken:?}");
    assert_eq!(counting.held(), 0);
    assert!(nobody_waits(&ids));
    assert_eq!(ids.stats().issued, 8);
}

#[test]
fn a_take_that_waits_is_woken_once_and_served() {
    let (ids, handle) = dry(builder(1001, 5), 7);
    let counting = Counting::new();
    let mut take = ids.take_async();
    assert!(counting.poll(&mut take).is_pending());
    assert!(!nobody_waits(&ids));
    drop(handle);
    assert_eq!(counting.woken(), 1);
    assert!(matches!(counting.poll(&mut take), Poll::Ready(Ok(_))));
    assert_eq!(counting.held(), 0);
    assert!(nobody_waits(&ids));
    let stats = ids.stats();
    assert_eq!((stats.issued, stats.level, stats.empties), (2, 6, 1));
}

#[test]
fn a_wake_up_of_a_dropped_take_goes_on_to_the_next() {
    for polls in 1..4 {
        let (ids, handle) = dry(builder(1020 + polls, 5), 1);
        let [first, second, third] = [(); 3].map(|()| Counting::new());
        let mut dropped = ids.take_async();
        let [mut served, mut other] = [ids.take_async(), ids.take_async()];
        for _ in 0..polls {
            assert!(first.poll(&mut dropped).is_pending());
        }
        assert!(second.poll(&mut served).is_pending());
        assert!(third.poll(&mut other).is_pending());
        drop(handle);
        // The one that has waited longest.
        assert_eq!((first.woken(), second.woken()), (1, 0));
        drop(dropped);
        assert_eq!((second.woken(), third.woken()), (1, 0));
        assert!(matches!(second.poll(&mut served), Poll::Ready(Ok(_))));
        // None is left for it.
        assert_eq!(third.woken(), 0);
        drop(other);
        assert!(nobody_waits(&ids));
        assert_eq!((first.held(), third.held()), (0, 0));
        assert_eq!((ids.stats().issued, ids.stats().level), (8, 0));
    }
}

#[test]
fn a_take_that_is_served_wakes_the_next_for_the_rest() {
    let (ids, handle) = dry(builder(1003, 5), 2);
    let [first, second] = [(); 2].map(|()| Counting::new());
    let [mut one, mut other] = [ids.take_async(), ids.take_async()];
    assert!(first.poll(&mut one).is_pending());
    assert!(second.poll(&mut other).is_pending());
    drop(handle);
    assert_eq!((first.woken(), second.woken()), (1, 0));
    // Also if it is polled before that of the other has come to it.
    assert!(matches!(first.poll(&mut one), Poll::Ready(Ok(_))));
    assert_eq!(second.woken(), 1);
    assert!(matches!(second.poll(&mut other), Poll::Ready(Ok(_))));
    assert!(nobody_waits(&ids));
}

#[test]
fn a_take_is_dropped_at_any_moment_and_loses_none() {
    for polls in 0..4 {
        let (ids, mut handle) = dry(builder(1030 + polls, 5), 7);
        let stocked: Vec<Id> = (0..3).map(|_| handle.take().unwrap()).collect();
        let counting = Counting::new();
        let mut batch = [Id::default(); 3];
        let mut takes = [(); 4].map(|()| ids.take_async());
        let mut of_several = ids.take_batch_async(&mut batch);
        for _ in 0..polls {
            for take in &mut takes {
                assert!(counting.poll(take).is_pending());
            }
            assert!(counting.poll(&mut of_several).is_pending());
        }
        let [a, b, c, d] = takes;
        drop((a, b));
        drop(handle);
        drop((of_several, c, d));
        assert!(nobody_waits(&ids));
        assert_eq!(counting.held(), 0);
        assert_eq!(batch, [Id::default(); 3], "IDs of a take that was dropped");
        let mut all = stocked;
        all.extend((0..4).map(|_| ids.take().unwrap()));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 7);
    }
}

#[test]
fn a_take_has_one_waker_however_often_it_is_polled() {
    let (ids, _handle) = dry(builder(1005, 5), 7);
    let [old, new] = [(); 2].map(|()| Counting::new());
    let mut take = ids.take_async();
    for counting in [&old, &new, &new] {
        for _ in 0..100 {
            assert!(counting.poll(&mut take).is_pending());
        }
    }
    assert_eq!((old.held(), new.held()), (0, 1));
    // The ring was found empty once.
    assert_eq!(ids.stats().empties, 1);
    drop(take);
    assert_eq!(new.held(), 0);
}

#[test]
fn the_hook_is_called_once_for_a_take_that_waits() {
    let calls = Arc::new(AtomicUsize::new(0));
    let called = Arc::clone(&calls);
    let hook = move |_| {
        called.fetch_add(1, Relaxed);
    };
    let (ids, _handle) = dry(builder(1006, 5).on_empty_hook(hook), 7);
    let counting = Counting::new();
    let mut take = ids.take_async();
    for _ in 0..5 {
        assert!(counting.poll(&mut take).is_pending());
    }
    assert_eq!(calls.load(Relaxed), 1);
}

#[test]
fn a_batch_takes_what_comes_and_does_not_wait_for_the_rest() {
    let (ids, handle) = dry(builder(1007, 5), 3);
    let counting = Counting::new();
    let mut out = [Id::default(); 5];
    let mut take = ids.take_batch_async(&mut out);
    assert!(counting.poll(&mut take).is_pending());
    drop(handle);
    assert_eq!(counting.woken(), 1);
    assert_eq!(counting.poll(&mut take), Poll::Ready(Ok(3)));
    drop(take);
    assert!(out[..3].is_sorted_by(|a, b| a < b), "{out:?}");
    assert_eq!(out[3..], [Id::default(); 2]);
    let none = counting.poll(&mut ids.take_batch_async(&mut []));
    assert_eq!(none, Poll::Ready(Ok(0)));
}

#[test]
fn without_wait_a_take_does_at_once_what_take_does() {
    let refused = builder(1008, 0).on_empty(OnEmpty::Error);
    let (ids, handle) = dry(refused, 7);
    let counting = Counting::new();
    let answer = counting.poll(&mut ids.take_async());
    assert_eq!(answer, Poll::Ready(ids.take()));
    assert!(matches!(answer, Poll::Ready(Err(TakeError::Refused(_)))));
    drop(handle);
    let made = builder(1009, 5).borrow_limit(Duration::from_secs(60));
    let (ids, _handle) = dry(made.on_empty(OnEmpty::Generate).threshold_fill(None), 7);
    let made = counting.poll(&mut ids.take_async());
    assert!(matches!(made, Poll::Ready(Ok(_))), "{made:?}");
    assert_eq!((counting.woken(), counting.held()), (0, 0));
}

#[test]
fn a_take_for_which_nothing_can_come_is_refused_at_once() {
    let (ids, handle) = dry(builder(1010, 0), 7);
    let counting = Counting::new();
    // The generator can't see the IDs in the handle.
    let answer = counting.poll(&mut ids.take_async());
    let Poll::Ready(Err(TakeError::Refused(refused))) = answer else {
        panic!("{answer:?}");
    };
    assert!(!matches!(refused, Refused::BorrowLimit { .. }));
    assert!(nobody_waits(&ids));
    drop(handle);
}

#[test]
fn an_invalidation_wakes_all_who_wait_and_refuses_them() {
    let (ids, _handle) = dry(builder(1011, 5), 7);
    let both = [(); 2].map(|()| Counting::new());
    let mut takes = [(); 2].map(|()| ids.take_async());
    for (counting, take) in both.iter().zip(&mut takes) {
        assert!(counting.poll(take).is_pending());
    }
    ids.invalidate();
    for (counting, take) in both.iter().zip(&mut takes) {
        assert!(counting.woken() > 0);
        let refused = TakeError::Refused(Refused::Invalidated);
        assert_eq!(counting.poll(take), Poll::Ready(Err(refused)));
    }
    assert!(nobody_waits(&ids));
}

#[test]
fn a_waker_that_panics_harms_nobody_else() {
    let (ids, handle) = dry(builder(1012, 5), 7);
    let breaks = Counting::and(|| panic!("a runtime breaks"));
    let counting = Counting::new();
    let [mut broken, mut take] = [ids.take_async(), ids.take_async()];
    assert!(breaks.poll(&mut broken).is_pending());
    assert!(counting.poll(&mut take).is_pending());
    drop(handle);
    assert_eq!(breaks.woken(), 1);
    assert!(matches!(breaks.poll(&mut broken), Poll::Ready(Ok(_))));
    assert_eq!(counting.woken(), 1);
    assert!(matches!(counting.poll(&mut take), Poll::Ready(Ok(_))));
}

#[test]
fn a_waker_may_take_from_the_generator() {
    let (ids, handle) = dry(builder(1013, 5), 7);
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    let clone = ids.clone();
    let takes = Counting::and(move || {
        let polled = Counting::new().poll(&mut clone.take_async());
        count.fetch_add(usize::from(polled.is_ready()), Relaxed);
    });
    let mut take = ids.take_async();
    assert!(takes.poll(&mut take).is_pending());
    drop(handle);
    assert_eq!(taken.load(Relaxed), 1);
}

#[test]
fn the_futures_go_to_any_thread() {
    fn assert_sendable<T: Send + Sync + Unpin>(_: T) {}
    let (ids, _handle) = dry(builder(1014, 5), 7);
    assert_sendable(ids.take_async());
    assert_sendable(ids.take_batch_async(&mut []));
}

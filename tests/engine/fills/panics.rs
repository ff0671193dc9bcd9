//! Hooks and clocks that panic: what was made stays, and producers go on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, Layout, OnEmpty, PaddingFill, ScheduledFill,
    ThresholdFill,
};

use super::{HOUR, OFTEN, builder, level, take_some, tricky_builder};
use ringflake_kit::eventually;
use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{Watched, cached, clock_at, layout, shared_layout};
use ringflake_kit::tricky_clock::in_producer;

#[test]
fn r3_a_hook_on_a_full_ring_that_panics_stops_no_fill() {
    let clock = Arc::new(clock_at(shared_layout(40, 8, 10), 0));
    let ids = builder()
        .clock(Arc::clone(&clock))
        .capacity(64)
        .scheduled_fill(OFTEN)
        .on_full_hook(|_| resume_unwind(Box::new("the hook fails")))
        .build()
        .unwrap();
    for panics in 1..=3 {
        eventually("the panic is counted", || ids.stats().panics >= panics);
        take_some(&ids, 64);
        eventually("the ring is full", || level(&ids) == 64);
    }
    drop(ids);
    assert_eq!(Arc::strong_count(&clock), 1, "the producer has ended");
}

#[test]
fn r3_a_hook_on_an_empty_ring_that_panics_spoils_nothing() {
    let calls = AtomicU64::new(0);
    let ids = builder()
        .capacity(8)
        .threshold_fill(None)
        .on_empty(OnEmpty::Generate)
        .on_empty_hook(move |_| {
            if calls.fetch_add(1, Relaxed).is_multiple_of(2) {
                resume_unwind(Box::new("the hook fails"));
            }
        })
        .build()
        .unwrap();
    let oracle = Oracle::new(shared_layout(40, 8, 10), 0..16, 0..100);
    let mut handle = ids.handle().unwrap();
    let mut died = 0;
    for take in 0..300 {
        let taken = catch_unwind(AssertUnwindSafe(|| match take % 2 {
            0 => handle.take(),
            _ => ids.take(),
        }));
        match taken {
            Ok(id) => oracle.mark(ids.inspect(id.unwrap()).unwrap()).unwrap(),
            Err(_) => died += 1,
        }
    }
    assert!(died > 10);
    assert_eq!(oracle.marked(), 300 - died);
}

#[test]
fn r1_a_hook_on_an_empty_ring_that_panics_loses_nothing() {
    let ids = builder()
        .capacity(4)
        .threshold_fill(None)
        .on_empty_hook(|_| resume_unwind(Box::new("the hook fails")))
        .build()
        .unwrap();
    let mut batch = [Id::default(); 7];
    let died = catch_unwind(AssertUnwindSafe(|| ids.take_batch(&mut batch)));
    assert!(died.is_err());
    assert_eq!(level(&ids), 4, "what the batch had got is back");
    assert_eq!(ids.take_batch(&mut batch[..4]), Ok(4));
    assert_eq!(ids.stats().issued, 4);
}

/// Panics with something that panics again when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

/// A ring of four, filled once, and what breaks its clock.
fn breaking_builder() -> (CachedGeneratorBuilder, Arc<AtomicBool>) {
    let layout = layout(40, 8, 10);
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = Arc::clone(&broken);
    let look = move || {
        if is_broken.load(Relaxed) {
            resume_unwind(Box::new("the clock breaks"));
        }
    };
    let builder = cached(layout, 0..1, 0..100)
        .clock(Watched(clock_at(layout, 0), look))
        .capacity(4)
        .threshold_fill(None)
        .on_empty(OnEmpty::Generate);
    (builder, broken)
}

#[test]
fn r1_a_clock_that_goes_on_panicking_drops_what_may_be_too_old() {
    let build = || {
        let (builder, broken) = breaking_builder();
        let aging = ScheduledFill::every(HOUR).max_age(2 * HOUR);
        (builder.scheduled_fill(aging).build().unwrap(), broken)
    };
    // The rest of a batch is to be made, and what it has goes back: the clock is
    // asked again while the first panic unwinds.
    let (ids, broken) = build();
    broken.store(true, Relaxed);
    let mut batch = [Id::default(); 8];
    let died = catch_unwind(AssertUnwindSafe(|| ids.take_batch(&mut batch)));
    assert!(died.is_err());
    broken.store(false, Relaxed);
    // And so does what a handle has left.
    let (others, broken) = build();
    let mut handle = others.handle().unwrap();
    handle.take().unwrap();
    broken.store(true, Relaxed);
    drop(handle);
    broken.store(false, Relaxed);
    for (ids, dropped) in [(ids, 4), (others, 3)] {
        let stats = ids.stats();
        assert_eq!((stats.level, stats.retired), (0, dropped));
    }
}

/// A generator that makes IDs only where they are taken, and calls `look` at each look at its
/// clock.
fn without_fills(
    layout: Layout,
    capacity: usize,
    look: impl Fn() + Send + Sync + 'static,
) -> CachedGenerator {
    let builder = cached(layout, 0..1, 0..100)
        .clock(Watched(clock_at(layout, 0), look))
        .borrow_limit(HOUR)
        .capacity(capacity)
        .stripes(1)
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .on_empty(OnEmpty::Generate);
    builder.build().unwrap()
}

#[test]
fn r1_a_clock_that_panics_while_a_handle_restocks_loses_nothing() {
    // 64 IDs of a tick: a stock of 128 takes two claims.
    let layout = layout(40, 8, 6);
    let mut most = 0;
    for at in 1.. {
        let (left, look) = panics_at(|| !in_producer());
        let ids = without_fills(layout, 256, look);
        let mut handle = ids.handle().unwrap();
        left.store(at, Relaxed);
        if catch_unwind(AssertUnwindSafe(|| handle.take())).is_ok() {
            // There are fewer looks than that.
            break;
        }
        assert_eq!(ids.stats().issued, 0, "at look {at}");
        most = most.max(level(&ids));
        let places = (0..200).map(|_| place(&ids, handle.take().unwrap()));
        assert!(places.eq(0..200), "at look {at}");
    }
    assert_eq!(most, 64, "what the first claim gave is back");
}

#[test]
fn r3_a_producer_outlives_whatever_a_clock_panics_with() {
    let looks = AtomicU64::new(0);
    let throw = move || {
        if in_producer() && looks.fetch_add(1, Relaxed) < 2 {
            resume_unwind(Box::new(Grenade));
        }
    };
    let clock = Watched(clock_at(shared_layout(40, 8, 10), 0), throw);
    let ids = builder().clock(clock).capacity(64).build().unwrap();
    take_some(&ids, 64);
    eventually("the level comes back", || level(&ids) == 64);
    assert_eq!(ids.stats().panics, 2);
}

#[test]
fn r3_a_clock_that_panics_in_mid_fill_costs_no_room() {
    let (builder, clock) = tricky_builder();
    let ids = builder
        .capacity(4096)
        .producers(2)
        // Every missing ID is requested, even if one producer settles the request that the other's
        // panic has put back.
        .threshold_fill(ThresholdFill::percent(100))
        .build()
        .unwrap();
    let mut batch = vec![Id::default(); 4096];
    for round in 1..=3 {
        // In the first block of a fill, in the second, in the third.
        clock.panic_after(round - 1, 2);
        assert_eq!(ids.take_batch(&mut batch), Ok(4096));
        eventually("the clock has failed twice", || {
            ids.stats().panics == 2 * round
        });
        eventually("the ring is full", || level(&ids) == 4096);
    }
    drop(ids);
}

/// The place of an ID among all of its node.
fn place(ids: &CachedGenerator, id: Id) -> u64 {
    let parts = ids.inspect(id).unwrap();
    parts.tick * ids.layout().sequences() + parts.sequence
}

/// A clock that panics at its `n`th look from now on, in threads for which `counts`.
fn panics_at(counts: fn() -> bool) -> (Arc<AtomicU64>, impl Fn() + Send + Sync + 'static) {
    let left = Arc::new(AtomicU64::new(0));
    let looks = Arc::clone(&left);
    let look = move || {
        if counts() && looks.load(Relaxed) > 0 && looks.fetch_sub(1, Relaxed) == 1 {
            resume_unwind(Box::new("the clock breaks"));
        }
    };
    (left, look)
}

#[test]
fn r1_a_clock_that_panics_between_two_runs_loses_nothing() {
    let layout = layout(40, 8, 10);
    let mut most = 0;
    for (at, takes_vec) in (1..=4).flat_map(|at| [(at, false), (at, true)]) {
        let (left, look) = panics_at(|| !in_producer());
        let ids = without_fills(layout, 65_536, look);
        left.store(at, Relaxed);
        let mut batch = vec![Id::default(); 40_960];
        let died = catch_unwind(AssertUnwindSafe(|| match takes_vec {
            true => ids.take_vec(40_960).map(|it| it.len()),
            false => ids.take_batch(&mut batch),
        }));
        assert!(died.is_err(), "at look {at}");
        let back = level(&ids);
        assert_eq!(ids.stats().issued, 0, "at look {at}");
        most = most.max(back);
        let places = (0..back + 1000).map(|_| place(&ids, ids.take().unwrap()));
        assert!(places.eq(0..back as u64 + 1000), "at look {at}");
    }
    assert!(most > 1_000, "{most}");
}

#[test]
fn r1_ids_of_a_block_that_a_clock_breaks_off_are_counted() {
    let layout = layout(40, 8, 6);
    let mut most = 0;
    for at in 1..=8 {
        let (left, look) = panics_at(in_producer);
        let ids = cached(layout, 0..1, 0..1_000)
            .clock(Watched(clock_at(layout, 0), look))
            .borrow_limit(HOUR)
            .capacity(4096)
            .stripes(1)
            .threshold_fill(ThresholdFill::percent(100))
            .build()
            .unwrap();
        left.store(at, Relaxed);
        let mut last = 0;
        for _ in 0..2 {
            eventually("the ring is full", || level(&ids) == 4096);
            let mut taken = [Id::default(); 4096];
            assert_eq!(ids.take_batch(&mut taken), Ok(4096));
            let places = taken.into_iter().map(|id| place(&ids, id));
            last = places.fold(last, u64::max);
        }
        assert_eq!(ids.stats().panics, 1, "at look {at}");
        let missing = last + 1 - 2 * 4096;
        assert_eq!(ids.stats().retired, missing, "at look {at}");
        most = most.max(missing);
    }
    assert!(most > 0);
}

//! The ring with its producers: requests, sleeping, stopping.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Clock, Id, OnEmpty, PaddingFill, RingBuffer,
    ThresholdFill, WaitingRoom,
};
use ringflake_loom_tests::{NOW, Role, assert_distinct, explore, plain, race, thread};

/// A plain generator, so that IDs are raws, with `capacity` slots and a
/// threshold at the capacity: every take asks for a fill, and none assists.
fn builder(capacity: usize) -> CachedGeneratorBuilder {
    plain()
        .capacity(capacity)
        .threshold_fill(ThresholdFill::slots(capacity))
        .assist_fill(None)
}

fn taking(ids: &CachedGenerator, times: usize) -> Role<Vec<Id>> {
    let ids = ids.clone();
    Box::new(move || (0..times).filter_map(|_| ids.take().ok()).collect())
}

/// A role that does nothing, so that the other one is a spawned thread.
fn idling() -> Role<Vec<Id>> {
    Box::new(Vec::new)
}

/// R4: a take that crosses the threshold while the producer settles, looks at
/// the level or parks still leads to a fill. A wake-up that is lost leaves the
/// next take asleep, and loom sees that nobody can run.
#[test]
fn threshold_crossing_against_a_producer_about_to_sleep() {
    explore(2, Some(1), |first| {
        let ids = builder(1)
            .on_empty(OnEmpty::Wait(Duration::MAX))
            .build()
            .unwrap();
        let taken = race(first, [taking(&ids, 3), idling()]).concat();
        assert_eq!(taken.len(), 3);
        assert_distinct(taken);
        assert_eq!(ids.stats().panics, 0);
    });
}

/// R4: the crossing itself asks; no later take has to do it. loom gives up on
/// a loop that waits for what never comes.
#[test]
fn a_crossing_is_enough() {
    explore(2, Some(2), |first| {
        let ids = builder(2).build().unwrap();
        let taken = race(first, [taking(&ids, 2), idling()]);
        while ids.stats().level < 2 {
            thread::yield_now();
        }
        assert_distinct(taken.concat());
    });
}

/// R4: the same with two consumers, where only the first to cross asks.
#[test]
fn two_consumers_cross() {
    explore(2, Some(1), |first| {
        let ids = builder(2)
            .on_empty(OnEmpty::Wait(Duration::MAX))
            .build()
            .unwrap();
        let taken = race(first, [taking(&ids, 2), taking(&ids, 1)]).concat();
        assert_eq!(taken.len(), 3);
        assert_distinct(taken);
        assert_eq!(ids.stats().panics, 0);
    });
}

/// R3, R4: with two producers, whichever settles last, the ring fills up.
#[test]
fn two_producers_settle() {
    explore(1, Some(1), |_| {
        let ids = builder(1)
            .producers(2)
            .on_empty(OnEmpty::Wait(Duration::MAX))
            .build()
            .unwrap();
        let taken: Vec<_> = (0..2).map(|_| ids.take().unwrap()).collect();
        assert_distinct(taken);
        assert_eq!(ids.stats().panics, 0);
    });
}

/// A consumer that waits at an empty ring is woken by a publication.
#[test]
fn waiting_take_against_fill() {
    explore(1, Some(2), |_| {
        let ids = builder(1)
            .padding_fill(PaddingFill::Off)
            .on_empty(OnEmpty::Wait(Duration::MAX))
            .build()
            .unwrap();
        let taken = vec![ids.take().unwrap(), ids.take().unwrap()];
        assert_distinct(taken);
        assert_eq!(ids.stats().panics, 0);
    });
}

/// Dropping the last generator stops and joins the producers, wherever they are.
#[test]
fn drop_against_fill() {
    explore(1, Some(3), |_| {
        let ids = builder(2)
            .padding_fill(PaddingFill::InBackground)
            .build()
            .unwrap();
        let taken = ids.take().into_iter().chain(ids.take()).collect();
        drop(ids);
        assert_distinct(taken);
    });
}

/// The same while another clone still takes.
#[test]
fn drop_against_take() {
    explore(2, Some(2), |first| {
        let ids = builder(1).build().unwrap();
        let dropping = {
            let ids = ids.clone();
            Box::new(move || {
                drop(ids);
                Vec::new()
            })
        };
        let taking = taking(&ids, 1);
        drop(ids);
        let [_, taken] = race(first, [dropping, taking]);
        assert_eq!(taken.len(), 1);
    });
}

/// R1: a handle's stock and single takes never share an ID.
#[test]
fn handle_against_take() {
    explore(2, Some(3), |first| {
        let ids = builder(2).threshold_fill(None).build().unwrap();
        let stocking = {
            let ids = ids.clone();
            Box::new(move || {
                let mut handle = ids.handle().unwrap();
                // The rest goes back to the ring when the handle is dropped.
                handle.take().into_iter().collect()
            })
        };
        let [mut taken, stocked] = race(first, [taking(&ids, 1), stocking]);
        taken.extend(stocked);
        taken.extend(std::iter::from_fn(|| ids.take().ok()));
        assert_eq!(taken.len(), 2);
        assert_distinct(taken);
    });
}

/// A consumer that waits is woken by the IDs that a dropped handle gives back.
#[test]
fn waiting_take_against_give_back() {
    explore(2, Some(1), |first| {
        let ids = builder(2)
            .threshold_fill(ThresholdFill::slots(1))
            .on_empty(OnEmpty::Wait(Duration::MAX))
            .build()
            .unwrap();
        let mut handle = ids.handle().unwrap();
        let stocked = handle.take().unwrap();
        let giving = Box::new(move || {
            drop(handle);
            vec![stocked]
        });
        let taken = race(first, [giving, taking(&ids, 2)]).concat();
        assert_eq!(taken.len(), 3);
        assert_distinct(taken);
    });
}

/// Of two consumers that wait, one publication of two IDs wakes one, and that one
/// the other.
#[test]
fn two_that_wait_against_one_publication() {
    explore(3, Some(3), |first| {
        let room = Arc::new(WaitingRoom::new());
        let ring = Arc::new(RingBuffer::with_capacity(2).unwrap());
        let publishing: Role<Vec<Id>> = {
            let (room, ring) = (Arc::clone(&room), Arc::clone(&ring));
            Box::new(move || {
                let ids = [1, 2].map(Id::from_u64);
                assert_eq!(ring.push_batch(&ids), 2);
                room.notify();
                Vec::new()
            })
        };
        let waiting = || -> Role<Vec<Id>> {
            let (room, ring) = (Arc::clone(&room), Arc::clone(&ring));
            Box::new(move || vec![room.wait(|| ring.take(), || !ring.is_empty())])
        };
        let taken = race(first, [waiting(), waiting(), publishing]).concat();
        assert_eq!(taken.len(), 2);
        assert_distinct(taken);
    });
}

/// U1: IDs that a consumer makes in place differ from those that a producer makes.
#[test]
fn in_place_against_fill() {
    explore(1, Some(2), |_| {
        let ids = builder(1)
            .padding_fill(PaddingFill::Off)
            .on_empty(OnEmpty::Generate)
            .build()
            .unwrap();
        let taken = (0..3).map(|_| ids.take().unwrap()).collect();
        assert_distinct(taken);
        assert_eq!(ids.stats().panics, 0);
    });
}

/// A clock that counts its readings and panics at one of them.
#[derive(Clone, Debug, Default)]
struct Breaking {
    readings: Arc<AtomicUsize>,
    breaks_at: Arc<AtomicUsize>,
}

impl Clock for Breaking {
    fn unix_ms(&self) -> u64 {
        let reading = self.readings.fetch_add(1, Ordering::Relaxed) + 1;
        if reading == self.breaks_at.load(Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new("the clock breaks"));
        }
        NOW
    }
}

/// R3, R4: a producer that dies in the middle of a fill, while it holds a permit,
/// blocks nothing: the request stays open, no take needs to ask again,
/// and the ring fills up.
#[test]
fn a_producer_that_dies_half_way_leaves_its_request_open() {
    explore(1, Some(2), |_| {
        let clock = Breaking::default();
        let ids = builder(1).clock(clock.clone()).build().unwrap();
        let last = clock.readings.load(Ordering::Relaxed);
        clock.breaks_at.store(last + 1, Ordering::Relaxed);
        let there = ids.take().unwrap();
        // Only the producer reads the clock here. No waiting take either: loom
        // can switch threads while one unwinds, and a mutex that is unlocked
        // meanwhile takes itself for poisoned.
        while clock.readings.load(Ordering::Relaxed) < last + 2 {
            thread::yield_now();
        }
        let filled = loop {
            match ids.take() {
                Ok(id) => break id,
                Err(_) => thread::yield_now(),
            }
        };
        assert_distinct(vec![there, filled]);
        assert_eq!(ids.stats().panics, 1);
    });
}

/// A clock that, once `sticks` is set, holds the first producer that reads it until
/// `let_go` is set.
#[derive(Clone, Debug)]
struct Sticky {
    consumer: thread::ThreadId,
    sticks: Arc<AtomicBool>,
    let_go: Arc<AtomicBool>,
}

impl Sticky {
    /// For generators whose consumer is this thread.
    fn new() -> Self {
        Self {
            consumer: thread::current().id(),
            sticks: Arc::default(),
            let_go: Arc::default(),
        }
    }
}

impl Clock for Sticky {
    fn unix_ms(&self) -> u64 {
        let is_producer = thread::current().id() != self.consumer;
        if is_producer && self.sticks.swap(false, Ordering::Relaxed) {
            while !self.let_go.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        }
        NOW
    }
}

/// R3: a producer that is stuck while it holds a permit for all the room, and has taken
/// on the request, does not keep the other producer asleep.
#[test]
fn a_dry_take_against_a_stuck_producer() {
    explore(1, Some(0), |_| {
        let clock = Sticky::new();
        let ids = builder(2)
            .producers(2)
            .clock(clock.clone())
            .on_empty(OnEmpty::Wait(Duration::MAX))
            .build()
            .unwrap();
        // Both producers come to rest.
        thread::yield_now();
        clock.sticks.store(true, Ordering::Relaxed);
        let taken = (0..3).map(|_| ids.take().unwrap()).collect();
        clock.let_go.store(true, Ordering::Relaxed);
        assert_distinct(taken);
        assert_eq!(ids.stats().panics, 0);
    });
}

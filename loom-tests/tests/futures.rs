//! Futures that wait for the ring, beside threads that do.
//!
//! A role that plays a runtime polls its futures, and parks until a waker unparks it. If a
//! wake-up is lost it parks for ever, and loom sees that nobody can run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use ringflake::{Id, RingBuffer, WaitingFuture, WaitingRoom};
use ringflake_loom_tests::{Role, explore, race, thread, waker};

/// The consumers of a ring with two slots.
#[derive(Clone)]
struct Ring {
    room: Arc<WaitingRoom>,
    ring: Arc<RingBuffer>,
    /// Nothing more comes.
    over: Arc<AtomicBool>,
}

impl Ring {
    fn new() -> Self {
        Self {
            room: Arc::new(WaitingRoom::new()),
            ring: Arc::new(RingBuffer::with_capacity(2).unwrap()),
            over: Arc::default(),
        }
    }

    /// Publishes these at once.
    fn publish(&self, ids: &[u64]) {
        let ids: Vec<Id> = ids.iter().copied().map(Id::from_u64).collect();
        assert_eq!(self.ring.push_batch(&ids), ids.len());
        self.room.notify();
    }

    fn publishing(&self, ids: &'static [u64]) -> Role<Vec<Id>> {
        let this = self.clone();
        Box::new(move || {
            this.publish(ids);
            Vec::new()
        })
    }

    /// An ID, or none if there will be none.
    fn attempt(&self) -> Option<Vec<Id>> {
        match self.ring.take() {
            Some(id) => Some(vec![id]),
            None => self.over.load(Ordering::SeqCst).then(Vec::new),
        }
    }

    fn future(&self) -> WaitingFuture<'_> {
        WaitingFuture::new(&self.room, &self.ring)
    }

    /// Polls until the future is ready.
    fn block_on(&self, future: &mut WaitingFuture<'_>) -> Vec<Id> {
        loop {
            match future.poll(&waker(), || self.attempt()) {
                Poll::Ready(taken) => return taken,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// A future that waits for one.
    fn waiting(&self) -> Role<Vec<Id>> {
        let this = self.clone();
        Box::new(move || this.block_on(&mut this.future()))
    }

    /// A thread that waits for one.
    fn sleeping(&self) -> Role<Vec<Id>> {
        let this = self.clone();
        Box::new(move || this.room.wait(|| this.attempt(), || !this.ring.is_empty()))
    }

    /// A future that is polled once, and dropped if it is not ready.
    fn cancelled(&self) -> Role<Vec<Id>> {
        let this = self.clone();
        Box::new(
            move || match this.future().poll(Waker::noop(), || this.attempt()) {
                Poll::Ready(taken) => taken,
                Poll::Pending => Vec::new(),
            },
        )
    }

    /// Each of these was taken or is still there, once, and nobody is left.
    fn assert_accounted(&self, mut taken: Vec<Id>, ids: &[u64]) {
        taken.extend(std::iter::from_fn(|| self.ring.take()));
        taken.sort_unstable();
        let taken: Vec<u64> = taken.into_iter().map(Id::to_u64).collect();
        assert_eq!(taken, ids, "R1: an ID is lost, or there twice");
        assert!(self.room.is_empty(), "a waiter is left");
    }
}

/// A future that waits is woken by a publication.
#[test]
fn a_future_against_a_publication() {
    explore(2, None, |first| {
        let ring = Ring::new();
        let taken = race(first, [ring.waiting(), ring.publishing(&[1])]).concat();
        assert_eq!(taken.len(), 1);
        ring.assert_accounted(taken, &[1]);
    });
}

/// Of two futures one is dropped after its first poll. If the publication has woken that
/// one, the other still gets an ID.
#[test]
fn a_future_that_is_dropped_passes_the_wake_up_on() {
    explore(3, Some(3), |first| {
        let ring = Ring::new();
        let roles = [ring.cancelled(), ring.waiting(), ring.publishing(&[1, 2])];
        let taken = race(first, roles).concat();
        ring.assert_accounted(taken, &[1, 2]);
    });
}

/// The same where the other one is a thread.
#[test]
fn a_future_that_is_dropped_and_a_thread() {
    explore(3, Some(2), |first| {
        let ring = Ring::new();
        let roles = [ring.cancelled(), ring.sleeping(), ring.publishing(&[1, 2])];
        let taken = race(first, roles).concat();
        ring.assert_accounted(taken, &[1, 2]);
    });
}

/// One publication of two IDs wakes one future, and that one the other.
#[test]
fn two_futures_against_one_publication() {
    explore(3, Some(2), |first| {
        let ring = Ring::new();
        let roles = [ring.waiting(), ring.waiting(), ring.publishing(&[1, 2])];
        let taken = race(first, roles).concat();
        assert_eq!(taken.len(), 2);
        ring.assert_accounted(taken, &[1, 2]);
    });
}

/// One publication of two IDs serves a future and a thread.
#[test]
fn a_future_and_a_thread_against_one_publication() {
    explore(3, Some(2), |first| {
        let ring = Ring::new();
        let roles = [ring.waiting(), ring.sleeping(), ring.publishing(&[1, 2])];
        let taken = race(first, roles).concat();
        assert_eq!(taken.len(), 2);
        ring.assert_accounted(taken, &[1, 2]);
    });
}

/// A future is polled a second time, by another task: the waker of that one is woken.
#[test]
fn the_waker_of_the_last_poll_is_woken() {
    explore(2, None, |first| {
        let ring = Ring::new();
        let moved: Role<Vec<Id>> = {
            let ring = ring.clone();
            Box::new(move || {
                let mut future = ring.future();
                match future.poll(Waker::noop(), || ring.attempt()) {
                    Poll::Ready(taken) => taken,
                    Poll::Pending => ring.block_on(&mut future),
                }
            })
        };
        let taken = race(first, [moved, ring.publishing(&[1])]).concat();
        assert_eq!(taken.len(), 1);
        ring.assert_accounted(taken, &[1]);
    });
}

/// Two publications, one after the other, and two futures, one of which is polled without
/// having been woken. If it takes an ID and its waker was taken out meanwhile, the other one
/// is woken for the other ID.
#[test]
fn a_future_that_is_ready_before_it_is_woken() {
    explore(3, Some(2), |first| {
        let ring = Ring::new();
        let eager: Role<Vec<Id>> = {
            let ring = ring.clone();
            Box::new(move || {
                let mut future = ring.future();
                let mut poll = || future.poll(Waker::noop(), || ring.attempt());
                match poll() {
                    Poll::Pending => match poll() {
                        Poll::Ready(taken) => taken,
                        Poll::Pending => Vec::new(),
                    },
                    Poll::Ready(taken) => taken,
                }
            })
        };
        let publishing: Role<Vec<Id>> = {
            let ring = ring.clone();
            Box::new(move || {
                ring.publish(&[1]);
                ring.publish(&[2]);
                Vec::new()
            })
        };
        let taken = race(first, [eager, ring.waiting(), publishing]).concat();
        ring.assert_accounted(taken, &[1, 2]);
    });
}

/// Where there may be nothing to wait for, every future is woken, and every thread.
#[test]
fn all_are_woken_at_the_end() {
    explore(3, Some(2), |first| {
        let ring = Ring::new();
        let ending: Role<Vec<Id>> = {
            let ring = ring.clone();
            Box::new(move || {
                ring.over.store(true, Ordering::SeqCst);
                ring.room.notify_all();
                Vec::new()
            })
        };
        let taken = race(first, [ring.waiting(), ring.waiting(), ending]).concat();
        ring.assert_accounted(taken, &[]);
    });
}

//! Shared by the models.
//!
//! With `--cfg loom`, which the configuration of this package sets, a model
//! runs once for every interleaving that loom finds. Without it, a model runs many
//! times on real threads, which is weaker, and shows that it is not tied to loom.
//!
//! # Who goes first
//!
//! loom 0.7 remembers only the last access to each object when it looks for
//! races to reorder. A thread that loads a word and then exchanges it thereby
//! hides an earlier load by another thread, and orders are missed. So every
//! model runs once for each of its roles: that role starts, in the main
//! thread, and the others are spawned. An order that is missed from one start
//! is found from another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

#[cfg(loom)]
pub use loom::thread;
#[cfg(not(loom))]
pub use std::thread;

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Layout, ManualClock, OnEmpty, StaticLease,
};

/// What one thread of a model does.
pub type Role<T> = Box<dyn FnOnce() -> T + Send>;

/// Runs `body` for every interleaving with at most `preemptions` involuntary
/// switches (`None`: for every one), once for each of its `roles` going
/// first, and prints how many interleavings there were of the test that calls it.
pub fn explore(
    roles: usize,
    preemptions: Option<usize>,
    body: impl Fn(usize) + Clone + Send + Sync + 'static,
) {
    let runs = Arc::new(AtomicUsize::new(0));
    for first in 0..roles {
        let (runs, body) = (Arc::clone(&runs), body.clone());
        run(preemptions, move || {
            runs.fetch_add(1, Ordering::Relaxed);
            body(first);
        });
    }
    let test = std::thread::current();
    let test = test.name().unwrap_or("a model");
    println!("{test}: {} interleavings", runs.load(Ordering::Relaxed));
}

/// Runs the roles at once, role `first` in this thread, and gives their
/// results in the order of the roles.
pub fn race<T: Send + 'static, const N: usize>(first: usize, roles: [Role<T>; N]) -> [T; N] {
    let mut mine = None;
    let others: Vec<_> = roles
        .into_iter()
        .enumerate()
        .filter_map(|(index, role)| {
            if index == first {
                mine = Some(role);
                None
            } else {
                Some((index, thread::spawn(role)))
            }
        })
        .collect();
    let mine = mine.expect("`first` is one of the roles")();
    let mut results: Vec<_> = others
        .into_iter()
        .map(|(index, thread)| (index, thread.join().expect("a role panicked")))
        .collect();
    results.insert(first, (first, mine));
    let results: Vec<T> = results.into_iter().map(|(_, result)| result).collect();
    results.try_into().ok().expect("one result a role")
}

#[cfg(loom)]
fn run(preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    // Where nothing else can go on for so long, something spins.
    builder.max_branches = 10_000;
    builder.check(body);
}

#[cfg(not(loom))]
fn run(_preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    for _ in 0..200 {
        body();
    }
}

/// `unix_ms`, and without loom a second later at each call. There the runs of a
/// model are one process, which makes each ID once: each needs a layout of its own.
pub fn epoch_from(unix_ms: u64) -> u64 {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    if cfg!(loom) {
        return unix_ms;
    }
    unix_ms + 1000 * CALLS.fetch_add(1, Ordering::Relaxed) as u64
}

/// The time of the clock of [`plain`].
pub const NOW: u64 = 1_763_000_000_000;

/// A plain generator, so that IDs are raws: Randflake's bits, from an epoch of its own on.
pub fn plain() -> CachedGeneratorBuilder {
    let layout = Layout::builder()
        .epoch_unix_ms(epoch_from(Layout::RANDFLAKE.epoch_unix_ms()))
        .build()
        .unwrap();
    CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, 0..1))
        .clock(ManualClock::new(NOW))
        .on_empty(OnEmpty::Error)
}

/// U1, R1: none of these came twice.
pub fn assert_distinct<T: Ord>(mut taken: Vec<T>) {
    let count = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), count, "U1: none twice");
}

/// Unparks this thread.
pub fn waker() -> Waker {
    struct Unparks(thread::Thread);

    impl Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    Arc::new(Unparks(thread::current())).into()
}

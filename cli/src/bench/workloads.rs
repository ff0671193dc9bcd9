//! The things that are measured.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Result, bail, ensure};
use crossbeam_utils::CachePadded;
use ringflake::{CachedGenerator, Handle, Id, RingBuffer};

use super::race::{Contest, Plan, put};
use super::stock;
use super::takers::Takers;

/// Every name, in the order in which they are shown.
pub(super) const NAMES: [&str; 14] = [
    "fetch_add",
    "array_queue_pop",
    "ring_take",
    "ring_take_batch_64",
    "take",
    "take_batch_64",
    "handle_take",
    "live_take",
    "live_batch_64",
    "sustained_take",
    "sustained_handle",
    "in_place",
    "encrypt_scalar",
    "encrypt_batch",
];

/// IDs in the race of a ring or queue that is filled before and emptied in it.
const PREFILLED: usize = if SHORT { 1 << 14 } else { 1 << 20 };

/// IDs in a race that has no such natural end. Several times the capacity of
/// a live ring, which is full at the start.
const ENDLESS: usize = if SHORT { 1 << 18 } else { 1 << 22 };

/// Slots for each core in a generator that is filled before, and in all of it at most: half
/// a gigabyte. Enough for a millisecond of work even of a handle.
const PART: usize = if SHORT { 1 << 13 } else { 1 << 22 };
const LARGEST_CACHE: usize = 1 << 26;

/// IDs in a race that is ten times slower than the others.
const SLOW: usize = if SHORT { 1 << 14 } else { 1 << 20 };

/// The figures of a build that is not optimised say nothing.
const SHORT: bool = cfg!(debug_assertions);

const BATCH: usize = 64;

/// A contest whose types have been erased: runs a race, and keeps all of its numbers or only
/// the last ones.
pub(super) struct Workload(Box<dyn Fn(bool) -> Result<Race>>);

struct Race {
    ids_per_second: f64,
    kept: Vec<u64>,
}

impl Workload {
    /// IDs a second, in one race.
    pub(super) fn time(&self) -> Result<f64> {
        Ok((self.0)(false)?.ids_per_second)
    }

    /// Whether no two of the IDs handed out in one race are the same.
    pub(super) fn is_unique(&self) -> Result<bool> {
        let mut ids = (self.0)(true)?.kept;
        ids.sort_unstable();
        Ok(ids.is_sorted_by(|one, other| one < other))
    }

    fn new<Stock, Seat, Take, S, T, V, const N: usize>(
        takers: Takers,
        ids: usize,
        contest: Contest<Stock, Seat, Take>,
        number: impl Fn(V) -> u64 + 'static,
    ) -> Self
    where
        Stock: Fn() -> S + Sync + 'static,
        Seat: Fn(&S) -> T + Sync + 'static,
        Take: Fn(&S, &mut T, &mut [V; N]) -> bool + Sync + 'static,
        S: Send + Sync + 'static,
        T: 'static,
        V: Copy + Default + Send + 'static,
    {
        let threads = takers.threads;
        // Each thread has the same share, in whole batches: a handle keeps the rest of one.
        let share = (ids / threads / BATCH).max(1) * BATCH;
        let calls = (share / N) as u64;
        let plan = Plan {
            prepare: takers.prepare,
            ..Plan::calls(threads, calls).patient()
        };
        Self(Box::new(move |keeps| {
            let outcome = contest.race(if keeps { plan.keeping() } else { plan });
            let expected = calls * (threads * N) as u64;
            ensure!(
                outcome.given == expected,
                "{} IDs were handed out instead of {expected}",
                outcome.given
            );
            Ok(Race {
                ids_per_second: 1e9 / outcome.nanos_each(),
                kept: outcome.kept().map(&number).collect(),
            })
        }))
    }
}

/// The workload of this name, for the threads that take.
pub(super) fn by_name(name: &str, takers: Takers) -> Result<Workload> {
    let cipher = stock::cipher();
    // A thread takes less than there is for one core. So one alone need not go to the
    // stripes of other cores, which would make it slower than each of several threads; and
    // several need not wait for the last IDs, which one of them moves.
    let part = PART.min(LARGEST_CACHE / stock::places(takers.threads));
    let shares = part / 8 * 7 * takers.threads;
    let cache = move || stock::full(part, takers.threads);
    let live = || stock::live(|ids| ids);
    let ring = || stock::ring(PREFILLED);
    let handle = |ids: &CachedGenerator| ids.handle().expect("a page of memory");
    macro_rules! ids {
        ($count:expr, $stock:expr, $seat:expr, $take:expr) => {
            Workload::new(
                takers,
                $count,
                Contest::new($stock, $seat, $take),
                Id::to_u64,
            )
        };
    }
    Ok(match name {
        "fetch_add" => {
            let counter = || CachePadded::new(AtomicU64::new(0));
            let take = |counter: &CachePadded<AtomicU64>, (): &mut (), [number]: &mut [u64; 1]| {
                *number = counter.fetch_add(1, Relaxed);
                true
            };
            let contest = Contest::new(counter, |_| (), take);
            Workload::new(takers, ENDLESS, contest, |number| number)
        }
        "array_queue_pop" => {
            let contest = Contest::new(
                || stock::queue(PREFILLED),
                |_| (),
                |queue, (), [number]: &mut [u64; 1]| put(number, queue.pop()),
            );
            Workload::new(takers, PREFILLED, contest, |number| number)
        }
        "ring_take" => {
            let take = |ring: &RingBuffer, (): &mut (), [id]: &mut [Id; 1]| put(id, ring.take());
            ids!(PREFILLED, ring, |_| (), take)
        }
        "ring_take_batch_64" => {
            let take = |ring: &RingBuffer, (): &mut (), ids: &mut [Id; BATCH]| {
                ring.take_batch(ids) == BATCH
            };
            ids!(PREFILLED, ring, |_| (), take)
        }
        "take" => ids!(shares, cache, |_| (), take),
        "take_batch_64" => ids!(shares, cache, |_| (), take_batch),
        "handle_take" => ids!(shares, cache, handle, take_from_handle),
        "live_take" => ids!(ENDLESS, live, |_| (), take),
        "live_batch_64" => ids!(ENDLESS, live, |_| (), take_batch),
        "sustained_take" => ids!(shares, live, |_| (), take),
        "sustained_handle" => ids!(shares, live, handle, take_from_handle),
        "in_place" => ids!(ENDLESS, stock::without_a_ring, |_| (), take_batch),
        "encrypt_scalar" => {
            let take = move |(): &(), raw: &mut u64, [number]: &mut [u64; 1]| {
                *number = cipher.encrypt(*raw);
                *raw += 1;
                true
            };
            let contest = Contest::new(|| (), |()| 0, take);
            Workload::new(takers, SLOW, contest, |number| number)
        }
        "encrypt_batch" => {
            let take = move |(): &(), first: &mut u64, numbers: &mut [u64; BATCH]| {
                cipher.encrypt_run(*first, numbers);
                *first += BATCH as u64;
                true
            };
            let contest = Contest::new(|| (), |()| 0, take);
            Workload::new(takers, ENDLESS, contest, |number| number)
        }
        _ => bail!("there is no workload {name}"),
    })
}

fn take(source: &CachedGenerator, (): &mut (), [id]: &mut [Id; 1]) -> bool {
    put(id, source.take().ok())
}

fn take_from_handle(_: &CachedGenerator, handle: &mut Handle, [id]: &mut [Id; 1]) -> bool {
    put(id, handle.take().ok())
}

fn take_batch(source: &CachedGenerator, (): &mut (), ids: &mut [Id; BATCH]) -> bool {
    stock::take_batch_patiently(source, ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_two_threads_are_given_is_noticed() {
        let counting = |threads| {
            let take = |(): &(), next: &mut u64, [number]: &mut [u64; 1]| {
                *number = *next;
                *next += 1;
                true
            };
            let contest = Contest::new(|| (), |()| 0, take);
            Workload::new(Takers::free(threads), 64, contest, |number| number)
        };
        assert!(counting(1).is_unique().unwrap());
        assert!(!counting(2).is_unique().unwrap());
        assert!(counting(2).time().unwrap() > 0.0);
    }

    #[test]
    fn a_workload_that_runs_dry_is_an_error() {
        let take = |queue: &crossbeam_queue::ArrayQueue<u64>,
                    (): &mut (),
                    [number]: &mut [u64; 1]| { put(number, queue.pop()) };
        let contest = Contest::new(|| stock::queue(10), |_| (), take);
        let dry = Workload::new(Takers::free(1), 64, contest, |number| number);
        let error = dry.time().unwrap_err().to_string();
        let said = "10 IDs were handed out instead of 64";
        assert!(error.contains(said), "{error}");
    }
}

//! How a workload is run: by threads that start together, into sinks that
//! either check what they are given or cost next to nothing.

use std::hint::black_box;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crossbeam_utils::Backoff;
use ringflake::Id;

use crate::threads::in_threads;

/// Something that hands out IDs, and whose speed is in question.
pub(super) trait Workload: Send + Sync {
    /// Makes everything ready for one race. Not timed.
    fn prepare(&mut self) -> Result<()>;

    /// Makes one thread ready; what is returned is timed.
    fn runner<S: Sink>(&self) -> Result<impl FnMut(&mut S)>;

    /// What all runners together hand out.
    fn expected(&self) -> Expected;
}

/// What is known beforehand about a race.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// How many IDs are handed out.
    pub(super) ids: u64,
    /// Their wrapping sum, where it can be known.
    pub(super) sum: Option<u64>,
}

/// Takes what a runner hands out.
pub(super) trait Sink: Default + Send {
    fn put(&mut self, id: Id);

    fn put_all(&mut self, ids: &[Id]) {
        for &id in ids {
            self.put(id);
        }
    }
}

/// Counts and adds up: little enough to be timed, and enough for a lost or a
/// doubled ID to show where the sum is known.
#[derive(Clone, Copy, Debug, Default)]
struct Checksum {
    ids: u64,
    sum: u64,
}

impl Sink for Checksum {
    #[inline]
    fn put(&mut self, id: Id) {
        self.ids += 1;
        self.sum = self.sum.wrapping_add(id.to_u64());
    }
}

/// Keeps everything.
impl Sink for Vec<u64> {
    fn put(&mut self, id: Id) {
        self.push(id.to_u64());
    }
}

/// A workload of any kind.
pub(super) trait Race: Send {
    /// IDs a second, with `threads` runners.
    fn time(&mut self, threads: usize) -> Result<f64>;

    /// Whether no two of the IDs handed out are the same. Not timed.
    fn is_unique(&mut self, threads: usize) -> Result<bool>;
}

impl<W: Workload> Race for W {
    fn time(&mut self, threads: usize) -> Result<f64> {
        self.prepare()?;
        let (took, sinks) = start::<W, Checksum>(self, threads)?;
        let total = sinks
            .iter()
            .fold(Checksum::default(), |total, sink| Checksum {
                ids: total.ids + sink.ids,
                sum: total.sum.wrapping_add(sink.sum),
            });
        let expected = self.expected();
        ensure!(
            total.ids == expected.ids,
            "{} IDs were handed out instead of {}",
            total.ids,
            expected.ids
        );
        ensure!(
            expected.sum.is_none_or(|sum| sum == total.sum),
            "IDs were lost or handed out twice"
        );
        Ok(total.ids as f64 / took.as_secs_f64())
    }

    fn is_unique(&mut self, threads: usize) -> Result<bool> {
        self.prepare()?;
        let (_, sinks) = start::<W, Vec<u64>>(self, threads)?;
        let mut ids = sinks.concat();
        ids.sort_unstable();
        Ok(ids.is_sorted_by(|a, b| a < b))
    }
}

/// Lets `threads` runners start together, and takes the time from the first
/// start to the last end.
fn start<W: Workload, S: Sink>(workload: &W, threads: usize) -> Result<(Duration, Vec<S>)> {
    let gate = Gate(AtomicUsize::new(threads));
    let finishes = in_threads(threads, || {
        let runner = workload.runner::<S>();
        // Also without a runner: the others wait here.
        gate.pass();
        let mut runner = runner?;
        let mut sink = S::default();
        let start = Instant::now();
        runner(&mut sink);
        let end = Instant::now();
        Ok((start, end, black_box(sink)))
    })?;
    let first = finishes.iter().map(|(start, ..)| *start).min();
    let last = finishes.iter().map(|(_, end, _)| *end).max();
    let took = last
        .zip(first)
        .map_or(Duration::ZERO, |(last, first)| last - first);
    Ok((took, finishes.into_iter().map(|(.., sink)| sink).collect()))
}

/// Opens when everybody has come. Those who wait spin at first, so that all
/// leave at the same moment.
struct Gate(AtomicUsize);

impl Gate {
    fn pass(&self) {
        // AcqRel and Acquire, as in any barrier: what was made ready before it
        // is seen after it.
        self.0.fetch_sub(1, AcqRel);
        let backoff = Backoff::new();
        while self.0.load(Acquire) > 0 {
            backoff.snooze();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out 0, 1, 2, ... in each thread.
    struct Counting {
        ids: u64,
        sum: Option<u64>,
    }

    impl Workload for Counting {
        fn prepare(&mut self) -> Result<()> {
            Ok(())
        }

        fn runner<S: Sink>(&self) -> Result<impl FnMut(&mut S)> {
            Ok(|sink: &mut S| (0..10).for_each(|id| sink.put(Id::from_u64(id))))
        }

        fn expected(&self) -> Expected {
            Expected {
                ids: self.ids,
                sum: self.sum,
            }
        }
    }

    #[test]
    fn an_id_that_two_threads_are_given_is_noticed() {
        let mut counting = Counting { ids: 20, sum: None };
        assert!(counting.is_unique(1).unwrap());
        assert!(!counting.is_unique(2).unwrap());
        assert!(counting.time(2).unwrap() > 0.0);
    }

    #[test]
    fn a_wrong_number_or_sum_of_ids_is_an_error() {
        assert!(
            Counting {
                ids: 10,
                sum: Some(45)
            }
            .time(1)
            .is_ok()
        );
        assert!(Counting { ids: 11, sum: None }.time(1).is_err());
        assert!(
            Counting {
                ids: 10,
                sum: Some(46)
            }
            .time(1)
            .is_err()
        );
    }
}

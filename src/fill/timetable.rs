//! When the next scheduled fill is due.
//!
//! All producers share one timetable, and the first that finds a fill due takes
//! it on by an exchange. So a producer that is stuck does not hold up the next fill.
//! Periods that were missed are not made up for.

use std::time::{Duration, Instant};

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;

/// The times of a scheduled fill.
#[derive(Debug)]
pub(super) struct Timetable {
    started: Instant,
    /// In nanoseconds, at least 1; saturates after 584 years.
    period: u64,
    /// When the next fill is due, in nanoseconds since `started`.
    next: AtomicU64,
}

impl Timetable {
    /// The first fill is due a period from now.
    pub(super) fn new(period: Duration) -> Self {
        let period = nanos(period).max(1);
        Self {
            started: Instant::now(),
            period,
            next: AtomicU64::new(period),
        }
    }

    /// Whether a fill is due that nobody has taken on. If so, the caller has taken it on,
    /// and the next one is due a period from now.
    pub(super) fn take_due(&self) -> bool {
        self.take_due_at(nanos(self.started.elapsed()))
    }

    fn take_due_at(&self, now: u64) -> bool {
        // Relaxed, here and below: a time orders nothing else.
        let next = self.next.load(Relaxed);
        let later = now.saturating_add(self.period);
        now >= next
            && self
                .next
                .compare_exchange(next, later, Relaxed, Relaxed)
                .is_ok()
    }

    /// How long until the next fill is due.
    pub(super) fn time_left(&self) -> Duration {
        self.time_left_at(nanos(self.started.elapsed()))
    }

    fn time_left_at(&self, now: u64) -> Duration {
        Duration::from_nanos(self.next.load(Relaxed).saturating_sub(now))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use super::*;

    #[test]
    fn a_fill_is_due_once_a_period() {
        let table = Timetable::new(Duration::from_nanos(100));
        let due: Vec<u64> = (0..1000).filter(|&now| table.take_due_at(now)).collect();
        assert_eq!(due, [100, 200, 300, 400, 500, 600, 700, 800, 900]);
    }

    #[test]
    fn a_period_that_was_missed_is_not_made_up_for() {
        let table = Timetable::new(Duration::from_nanos(100));
        assert!(table.take_due_at(730));
        assert_eq!(table.time_left_at(730), Duration::from_nanos(100));
        assert!(!table.take_due_at(829));
        assert!(table.take_due_at(830));
    }

    #[test]
    fn the_time_left_is_until_the_next() {
        let table = Timetable::new(Duration::from_nanos(100));
        assert_eq!(table.time_left_at(0), Duration::from_nanos(100));
        assert_eq!(table.time_left_at(99), Duration::from_nanos(1));
        assert_eq!(table.time_left_at(100), Duration::ZERO);
        assert_eq!(table.time_left_at(250), Duration::ZERO);
    }

    #[test]
    fn the_longest_period_never_comes() {
        let table = Timetable::new(Duration::MAX);
        assert!(!table.take_due_at(u64::MAX - 1));
        assert!(!table.take_due());
        assert!(table.time_left() > Duration::from_secs(500 * 365 * 86_400));
    }

    #[test]
    fn a_fill_that_is_due_is_taken_on_by_one_thread() {
        let table = Timetable::new(Duration::from_nanos(1));
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (1..5000).filter(|&now| table.take_due_at(now)).count()))
                .collect();
            let counts = threads.into_iter().map(|thread| thread.join().unwrap());
            counts.sum::<usize>()
        });
        // At most once for each moment, whichever thread comes first.
        assert!((1..5000).contains(&taken), "{taken}");
    }
}

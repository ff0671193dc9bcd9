//! The times of requests: jitter, top-ups and retries.

use std::time::Duration;

use crate::lease::store::random::SplitMix64;

/// Pseudo-random times, to spread the requests of many processes.
#[derive(Clone, Debug)]
pub(super) struct Jitter(SplitMix64);

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Anything from nothing to `max`.
    pub(super) fn up_to(&mut self, max: Duration) -> Duration {
        // 32 bits divide the longest lease duration, a year, into steps of 7 ms.
        let share = u32::try_from(self.0.next() >> 32).unwrap_or(u32::MAX);
        max.mul_f64(f64::from(share) / f64::from(u32::MAX))
    }

    /// Anything from `min` to `max`.
    pub(super) fn between(&mut self, min: Duration, max: Duration) -> Duration {
        min + self.up_to(max.saturating_sub(min))
    }
}

/// The times that follow from a plan's lease duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenewTiming {
    pub(super) lease_duration: Duration,
    /// The longest step of the backoff when nothing is left, and the period of
    /// retries after an error that will not mend by itself.
    pub(super) slow: Duration,
    /// The shortest time between two top-ups of a grant.
    pub(super) period: Duration,
}

impl RenewTiming {
    /// The first step of the backoff.
    pub(super) const FIRST: Duration = Duration::from_millis(100);

    pub(super) fn new(lease_duration: Duration) -> Self {
        Self {
            lease_duration,
            slow: (lease_duration / 20).min(Duration::from_secs(5)),
            period: lease_duration / 10,
        }
    }

    /// The time from a reply that carried `reach` ahead to the next renewal.
    ///
    /// A tenth to three twentieths: six more attempts fit in before the end. A
    /// reply that carried nowhere, because this clock is ahead of all that the
    /// store will give, is no reason to hurry.
    pub(super) fn until_top_up(&self, reach: Duration, jitter: &mut Jitter) -> Duration {
        if reach.is_zero() {
            jitter.between(self.slow / 2, self.slow)
        } else {
            jitter.between(reach / 10, reach / 20 * 3).max(Self::FIRST)
        }
    }

    /// The longest step of the backoff when the leases last for `left`. While `left` is long,
    /// nothing is urgent, and a store that comes back is not overloaded.
    pub(super) fn longest_step(&self, left: Duration) -> Duration {
        (left.min(self.lease_duration) / 20).max(self.slow)
    }

    /// The wait before a retry after an error that does not go away by itself.
    pub(super) fn slowly(&self, jitter: &mut Jitter) -> Duration {
        jitter.between(self.slow / 2, self.slow)
    }
}

/// Holds back every request of a process after one that failed.
///
/// Source: "full jitter", Brooker, "Exponential backoff and jitter", AWS
/// Architecture Blog, 2015.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    failures: u32,
    pub(super) until: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self {
            failures: 0,
            until: Duration::ZERO,
        }
    }

    /// Waits for anything up to 100 ms, doubled with each failure up to the
    /// longest step.
    pub(super) fn fail(&mut self, now: Duration, longest: Duration, jitter: &mut Jitter) {
        let step = RenewTiming::FIRST.saturating_mul(1 << self.failures.min(16));
        let wait = jitter.up_to(step.min(longest));
        self.failures = self.failures.saturating_add(1);
        self.until = now.saturating_add(wait);
    }

    pub(super) fn slow_down(&mut self, now: Duration, timing: &RenewTiming, jitter: &mut Jitter) {
        self.until = now.saturating_add(timing.slowly(jitter));
    }

    pub(super) fn succeed(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_DURATION: Duration = Duration::from_secs(600);

    #[test]
    fn jitter_fills_its_range() {
        let mut jitter = Jitter::new(1);
        let (min, max) = (Duration::from_secs(60), Duration::from_secs(90));
        let draws: Vec<_> = (0..1000).map(|_| jitter.between(min, max)).collect();
        assert!(draws.iter().all(|draw| (min..=max).contains(draw)));
        assert!(draws.iter().any(|draw| *draw < Duration::from_secs(62)));
        assert!(draws.iter().any(|draw| *draw > Duration::from_secs(88)));
        assert_eq!(jitter.between(max, min), max);
    }

    #[test]
    fn retries_slow_down_to_a_twentieth_of_the_rest_or_five_seconds() {
        let (timing, mut jitter) = (RenewTiming::new(LEASE_DURATION), Jitter::new(3));
        for (left, longest) in [(0, 5), (100, 5), (200, 10), (600, 30), (9_999, 30)] {
            let longest = Duration::from_secs(longest);
            let step = timing.longest_step(Duration::from_secs(left));
            assert_eq!(step, longest);
            let mut waits = [(Duration::MAX, Duration::ZERO); 12];
            for _ in 0..2000 {
                let mut backoff = Backoff::new();
                for (least, most) in &mut waits {
                    backoff.fail(Duration::ZERO, step, &mut jitter);
                    *least = backoff.until.min(*least);
                    *most = backoff.until.max(*most);
                }
            }
            // Spread over the whole step, so that a fleet does not retry at once.
            for (failures, (least, most)) in waits.iter().enumerate() {
                let max = Duration::from_millis(100 << failures).min(longest);
                assert!(*least < max / 10, "{least:?}");
                assert!((max * 9 / 10..=max).contains(most), "{most:?}");
            }
        }
    }
}

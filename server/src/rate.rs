//! Rate limits: how much of something a client may use in a time.

use std::time::{Duration, Instant};

/// A token bucket. Starts full.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    capacity: f64,
    /// Negative after a request that was larger than the capacity.
    level: f64,
    as_of: Instant,
}

impl Bucket {
    /// Refills at `per_second`, up to `capacity`.
    pub(crate) fn new(per_second: f64, capacity: f64, now: Instant) -> Self {
        Self {
            per_second,
            capacity,
            level: capacity,
            as_of: now,
        }
    }

    /// Takes `amount` out, up to `times` times. An amount larger than the capacity needs a full
    /// bucket, and later requests wait until it is paid off.
    ///
    /// Returns how often it was taken, and how long to wait before it can be taken again.
    pub(crate) fn take_each(
        &mut self,
        times: usize,
        amount: u64,
        now: Instant,
    ) -> (usize, Result<(), Duration>) {
        let passed = now.saturating_duration_since(self.as_of);
        self.level = (self.level + passed.as_secs_f64() * self.per_second).min(self.capacity);
        self.as_of = now;
        let amount = amount as f64;
        let needed = amount.min(self.capacity);
        for taken in 0..times {
            if self.level < needed {
                let wait = Duration::from_secs_f64((needed - self.level) / self.per_second);
                return (taken, Err(wait));
            }
            self.level -= amount;
        }
        (times, Ok(()))
    }

    /// Takes over the level of another one, if the rate is the same.
    pub(crate) fn continue_from(&mut self, before: &Self) {
        if (self.per_second, self.capacity) == (before.per_second, before.capacity) {
            (self.level, self.as_of) = (before.level, before.as_of);
        }
    }

    #[cfg(test)]
    fn take(&mut self, amount: u64, now: Instant) -> Result<(), Duration> {
        self.take_each(1, amount, now).1
    }

    #[cfg(test)]
    pub(crate) fn spent(&self) -> u64 {
        (self.capacity - self.level).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_holds_over_time() {
        let start = Instant::now();
        let mut bucket = Bucket::new(2.0, 120.0, start);
        assert_eq!(bucket.take(90, start), Ok(()));
        assert_eq!(bucket.take(32, start), Err(Duration::from_secs(1)));
        assert_eq!(bucket.take(30, start), Ok(()));
        let later = start + Duration::from_secs(10);
        assert_eq!(bucket.take(20, later), Ok(()));
        assert_eq!(bucket.take(2, later), Err(Duration::from_secs(1)));
    }

    #[test]
    fn an_idle_client_saves_up_one_capacity() {
        let start = Instant::now();
        let mut bucket = Bucket::new(0.1, 6.0, start);
        let later = start + Duration::from_secs(3600);
        assert_eq!(bucket.take(6, later), Ok(()));
        assert_eq!(bucket.take(1, later), Err(Duration::from_secs(10)));
    }

    #[test]
    fn a_request_larger_than_the_capacity_is_paid_off_afterwards() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10.0, 10.0, start);
        assert_eq!(bucket.take(1, start), Ok(()));
        let wait = Duration::from_millis(100);
        assert_eq!(bucket.take(30, start), Err(wait));
        assert_eq!(bucket.take(30, start + wait), Ok(()));
        assert_eq!(
            bucket.take(1, start + wait),
            Err(Duration::from_millis(2_100))
        );
    }
}

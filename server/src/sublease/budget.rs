//! How many blocks a namespace may give away in a minute.

use std::time::{Duration, Instant};

/// A bucket that fills evenly, and holds a minute's worth.
#[derive(Debug)]
pub(super) struct Budget {
    per_minute: u32,
    /// In blocks.
    left: f64,
    as_of: Instant,
}

impl Budget {
    pub(super) fn new(per_minute: u32, now: Instant) -> Self {
        Self {
            per_minute,
            left: f64::from(per_minute),
            as_of: now,
        }
    }

    /// Takes so many blocks out of it.
    ///
    /// # Errors
    /// How long to wait until they are there. Nothing is taken then.
    pub(super) fn take(&mut self, blocks: u32, now: Instant) -> Result<(), Duration> {
        let most = f64::from(self.per_minute);
        let a_second = most / 60.0;
        let passed = now.saturating_duration_since(self.as_of);
        self.left = (self.left + passed.as_secs_f64() * a_second).min(most);
        self.as_of = now;
        let wanted = f64::from(blocks);
        if self.left >= wanted {
            self.left -= wanted;
            return Ok(());
        }
        Err(Duration::from_secs_f64((wanted - self.left) / a_second))
    }

    /// Puts back what was not given away.
    pub(super) fn put_back(&mut self, blocks: u32) {
        self.left = (self.left + f64::from(blocks)).min(f64::from(self.per_minute));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_gives_a_minutes_worth() {
        let start = Instant::now();
        // Two a second.
        let mut budget = Budget::new(120, start);
        assert_eq!(budget.take(90, start), Ok(()));
        assert_eq!(budget.take(32, start), Err(Duration::from_secs(1)));
        assert_eq!(budget.take(30, start), Ok(()));
        let later = start + Duration::from_secs(10);
        assert_eq!(budget.take(20, later), Ok(()));
        assert_eq!(budget.take(2, later), Err(Duration::from_secs(1)));
        budget.put_back(1);
        assert_eq!(budget.take(1, later), Ok(()));
    }

    #[test]
    fn silence_saves_up_a_minute_at_most() {
        let start = Instant::now();
        let mut budget = Budget::new(6, start);
        let later = start + Duration::from_secs(3600);
        assert_eq!(budget.take(6, later), Ok(()));
        assert_eq!(budget.take(1, later), Err(Duration::from_secs(10)));
    }
}

//! Waiting for others, in moderation.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

use crate::report::say;

/// How long to wait before saying so: most waits are shorter.
const SILENCE: Duration = Duration::from_secs(1);

/// A wait with an end.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    started: Instant,
    told: bool,
}

impl Patience {
    /// Lasts from now on for at most `limit`.
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            started: Instant::now(),
            told: false,
        }
    }

    /// What is left of it.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.started.elapsed())
    }

    /// Waits for a moment, and says after a while what for, once. False, at once,
    /// when it is over.
    pub(crate) fn wait(&mut self, moment: Duration, what_for: impl Display) -> bool {
        let left = self.left();
        if left.is_zero() {
            return false;
        }
        self.tell(what_for);
        thread::sleep(moment.min(left));
        true
    }

    /// Says after a while what is waited for, once.
    pub(crate) fn tell(&mut self, what_for: impl Display) {
        if !self.told && self.started.elapsed() >= SILENCE {
            self.told = true;
            say(format_args!("waiting: {what_for}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends() {
        let mut patience = Patience::new(Duration::from_millis(5));
        let mut rounds = 0;
        while patience.wait(Duration::from_millis(1), "a test") {
            rounds += 1;
        }
        assert!((1..=5).contains(&rounds), "{rounds}");
        assert_eq!(patience.left(), Duration::ZERO);
        assert!(!Patience::new(Duration::ZERO).wait(SILENCE, "nothing"));
    }
}

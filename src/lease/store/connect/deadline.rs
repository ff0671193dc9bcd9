//! How long an operation may still take.

use std::io;
use std::time::{Duration, Instant};

/// How long it may take to try a connection that an operation with this time-out has
/// found. What lies in between may have forgotten it, and then nobody answers: most of
/// the time has to be left for a new one.
pub(crate) fn of_a_try(timeout: Duration) -> Duration {
    timeout / 8
}

/// The moment at which an operation must have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    start: Instant,
    timeout: Duration,
}

impl Deadline {
    /// An operation that begins now.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self {
            start: Instant::now(),
            timeout,
        }
    }

    /// The remaining time.
    ///
    /// # Errors
    /// When it has passed: at least a millisecond must be left, since sockets
    /// take no shorter time-out.
    pub(crate) fn left(&self) -> io::Result<Duration> {
        self.timeout
            .checked_sub(self.start.elapsed())
            .filter(|left| *left >= Duration::from_millis(1))
            .ok_or_else(|| self.missed())
    }

    /// The error for an operation that has not ended in time.
    pub(crate) fn missed(&self) -> io::Error {
        let text = format!("the operation did not end within {:?}", self.timeout);
        io::Error::new(io::ErrorKind::TimedOut, text)
    }

    /// The moment itself.
    pub(crate) fn end(&self) -> Instant {
        self.start + self.timeout
    }

    /// The time that one of `count` attempts has, all of which are still to come.
    pub(crate) fn share(&self, count: usize) -> io::Result<Self> {
        let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        Ok(Self::after(self.left()? / count))
    }

    /// When the operation began.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// How long the operation has taken so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_leaves_most_of_the_time_for_a_new_connection() {
        let timeout = Duration::from_secs(8);
        assert_eq!(of_a_try(timeout), Duration::from_secs(1));
        assert_eq!(of_a_try(Duration::ZERO), Duration::ZERO);
    }
}

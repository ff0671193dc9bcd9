//! A source that fails when a test says so.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::generator::{IdSource, TakeError};
use crate::id::Id;

/// Returns what another source gives, or an error for as long as a test sets one.
///
/// Switched by reference, so a test keeps it in an [`Arc`](std::sync::Arc) and gives a clone
/// of that to the service. Usable from any thread; a take locks a mutex.
///
/// # Examples
///
/// ```
/// use ringflake::testing::{FailOnDemand, Sequence};
/// use ringflake::{IdSource, Refused, TakeError};
///
/// let ids = FailOnDemand::new(Sequence::new());
/// ids.fail(Refused::Forked.into());
/// assert_eq!(ids.take(), Err(TakeError::Refused(Refused::Forked)));
/// ids.recover();
/// assert!(ids.take().is_ok());
/// ```
#[derive(Debug)]
pub struct FailOnDemand<S> {
    source: S,
    failure: Mutex<Option<Failure>>,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    error: TakeError,
    /// How many more takes fail; `None` for all.
    takes: Option<u64>,
}

impl<S> FailOnDemand<S> {
    /// Passes on what `source` gives, until it is to fail.
    pub const fn new(source: S) -> Self {
        Self {
            source,
            failure: Mutex::new(None),
        }
    }

    /// Fails every take from now on, with `error`, until [`recover`](Self::recover).
    pub fn fail(&self, error: TakeError) {
        *self.failure() = Some(Failure { error, takes: None });
    }

    /// Fails the next `takes` takes, with `error`, and those after them no more. A batch
    /// counts as one.
    pub fn fail_next(&self, takes: u64, error: TakeError) {
        let takes = Some(takes);
        *self.failure() = Some(Failure { error, takes });
    }

    /// Fails no longer.
    pub fn recover(&self) {
        *self.failure() = None;
    }

    /// The source.
    pub const fn source(&self) -> &S {
        &self.source
    }

    /// Ignores poisoning: the failure is set by one assignment, so a panic elsewhere spoils
    /// nothing.
    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of this take, if it is to fail.
    fn count_down(&self) -> Result<(), TakeError> {
        match &mut *self.failure() {
            None | Some(Failure { takes: Some(0), .. }) => Ok(()),
            Some(Failure { error, takes: None }) => Err(*error),
            Some(Failure {
                error,
                takes: Some(left),
            }) => {
                *left -= 1;
                Err(*error)
            }
        }
    }
}

impl<S: IdSource> IdSource for FailOnDemand<S> {
    fn take(&self) -> Result<Id, TakeError> {
        self.count_down()?;
        self.source.take()
    }

    fn take_batch(&self, out: &mut [Id]) -> Result<usize, TakeError> {
        if !out.is_empty() {
            self.count_down()?;
        }
        self.source.take_batch(out)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::Sequence;

    const ERROR: TakeError = TakeError::TimedOut {
        waited: Duration::from_millis(5),
    };

    #[test]
    fn it_fails_as_often_as_was_said_and_skips_no_id() {
        let ids = FailOnDemand::new(Sequence::new());
        ids.fail_next(2, ERROR);
        assert_eq!(ids.take(), Err(ERROR));
        let mut batch = [Id::default(); 2];
        assert_eq!(ids.take_batch(&mut []), Ok(0), "asks for nothing");
        assert_eq!(ids.take_batch(&mut batch), Err(ERROR));
        assert_eq!(ids.take_batch(&mut batch), Ok(2));
        assert_eq!(batch.map(Id::to_u64), [1, 2]);
        ids.fail_next(0, ERROR);
        assert_eq!(ids.take(), Ok(Id::from_u64(3)));
    }

    #[test]
    fn it_fails_until_it_recovers() {
        let ids = FailOnDemand::new(Sequence::new());
        ids.fail(ERROR);
        for _ in 0..5 {
            assert_eq!(ids.take(), Err(ERROR));
        }
        ids.fail(TakeError::Empty);
        assert_eq!(ids.take(), Err(TakeError::Empty));
        ids.recover();
        assert_eq!(ids.take(), Ok(Id::from_u64(1)));
        assert_eq!(ids.source().take(), Ok(Id::from_u64(2)));
    }
}

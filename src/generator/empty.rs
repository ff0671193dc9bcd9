//! The policy and the errors of takes that find the ring dry.

use std::io::ErrorKind;
use std::time::Duration;

use crate::describe::describe;
use crate::layout::span;
use crate::timeline::Refused;

/// The reaction of a take that has found every [stripe](crate::CachedGeneratorBuilder::stripes)
/// empty, each at its own moment during the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnEmpty {
    /// Make a run of IDs right there, in the consumer's thread: as many as about a
    /// microsecond allows, 64 to 512 by the backend of the cipher. The take gives one, and
    /// the rest goes into its stripe, where the next takes find it. So also without any
    /// producer an ID costs little on average, and one take in a run about a microsecond.
    /// A take then fails only when the lease or the borrow limit does.
    #[default]
    Generate,
    /// Fail with [`TakeError::Empty`], or with the reason if no ID can be made
    /// at the moment. Without a threshold or a scheduled fill nothing fills the
    /// ring again, and every later take fails.
    ///
    /// The failing take makes no ID, but one that leaves very few does, and reads the
    /// clock for it: turn that off with
    /// [`assist_fill(None)`](crate::CachedGeneratorBuilder::assist_fill) where takes must
    /// not.
    Error,
    /// Wait for a producer, at most this long, then fail with [`TakeError::TimedOut`], or with the
    /// reason if none can be made. If the reason is the end of a given lease, fail at once. A store
    /// that grants none at the moment is waited for, too. The waiting thread sleeps, or the task
    /// with [`take_async`](crate::CachedGenerator::take_async). Later takes can be served before
    /// it. Needs a [`ThresholdFill`](crate::ThresholdFill) to wake a producer.
    Wait(Duration),
}

/// The event for the hook on an empty ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingEmpty {
    /// Takes that found all stripes empty so far, this one included.
    pub empties: u64,
    /// The policy that the take follows.
    pub answer: OnEmpty,
}

/// Called with the event when a take finds the ring dry.
pub(super) type EmptyHook = Box<dyn Fn(RingEmpty) + Send + Sync>;

/// Why a take gave no ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakeError {
    /// The ring is empty, and the policy is to fail ([`OnEmpty::Error`]).
    Empty,
    /// The ring stayed empty for as long as [`OnEmpty::Wait`] allows.
    TimedOut {
        /// The duration of the wait.
        waited: Duration,
    },
    /// The ring is empty, or there is none, and no ID can be made at the moment.
    Refused(Refused),
    /// The system gave no page of memory for a [`Handle`](crate::Handle).
    NoPage {
        /// The kind of the system's error.
        kind: ErrorKind,
    },
    /// [`ringflake::id`](crate::id()) was called before [`ringflake::init`](crate::init()).
    NotInitialised,
}

impl TakeError {
    /// About how long to wait before another take may succeed: zero where the take has
    /// waited already. `None` if no take of this generator will succeed any more, or, for
    /// [`NotInitialised`](Self::NotInitialised), not by waiting.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Refused, TakeError};
    ///
    /// assert!(TakeError::Empty.retry_after().is_some());
    /// assert_eq!(TakeError::Refused(Refused::Forked).retry_after(), None);
    /// ```
    #[doc(alias = "is_retryable")]
    #[doc(alias = "is_transient")]
    pub const fn retry_after(&self) -> Option<Duration> {
        /// Most producers wake up within this time.
        const WAKE_UP: Duration = Duration::from_millis(1);
        /// Memory may be there again by then.
        const MEMORY: Duration = Duration::from_secs(1);

        match self {
            Self::Empty => Some(WAKE_UP),
            Self::TimedOut { .. } => Some(Duration::ZERO),
            Self::NoPage { .. } => Some(MEMORY),
            Self::Refused(refused) => refused.retry_after(),
            Self::NotInitialised => None,
        }
    }
}

impl From<Refused> for TakeError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

describe! {
    TakeError;

    Self::Empty =>
        "the ring is empty: try again, raise the threshold or the capacity, or let takes generate \
         IDs in place";
    Self::TimedOut { waited } => (
        "the ring stayed empty for {}: raise the threshold, the capacity or the number of \
         producers, or let takes generate IDs in place", span(*waited));
    Self::Refused(refused) => via refused;
    Self::NoPage { kind } =>
        "the system refused a page of memory for a handle ({kind}): raise the limits of the \
         process, or take from the generator, which needs none";
    Self::NotInitialised =>
        "this process has no default source of IDs yet: call ringflake::init with a generator, \
         early in main";
}

impl std::error::Error for TakeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_when_to_try_again() {
        let (limit, retry_after) = (Duration::from_secs(60), Duration::from_millis(7));
        let (end_unix_ms, now_unix_ms) = (5, 6);
        for (error, again) in [
            (TakeError::Empty, Some(Duration::from_millis(1))),
            (TakeError::TimedOut { waited: limit }, Some(Duration::ZERO)),
            (TakeError::NotInitialised, None),
            (
                TakeError::NoPage {
                    kind: ErrorKind::OutOfMemory,
                },
                Some(Duration::from_secs(1)),
            ),
            (
                Refused::BorrowLimit { retry_after, limit }.into(),
                Some(retry_after),
            ),
            (
                Refused::NoLease {
                    end_unix_ms,
                    now_unix_ms,
                    failure: None,
                }
                .into(),
                Some(Duration::from_secs(1)),
            ),
            (
                Refused::LeaseEnded {
                    end_unix_ms,
                    now_unix_ms,
                }
                .into(),
                None,
            ),
            (Refused::Invalidated.into(), None),
            (Refused::Forked.into(), None),
        ] {
            assert_eq!(error.retry_after(), again, "{error:?}");
        }
    }
}

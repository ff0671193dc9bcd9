//! Why no ID can be made.

use std::fmt;
use std::time::Duration;

use crate::layout::{Utc, span};
use crate::lease::StoreFailure;

/// Why no ID can be made at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The next raw lies further in the future than may be borrowed, because
    /// IDs were taken faster than the lease is wide, or because the clock was
    /// set back.
    BorrowLimit {
        /// How long until the clock lets the next ID through.
        retry_after: Duration,
        /// The limit that was hit.
        limit: Duration,
    },
    /// Every ID of the lease is used up, or the clock has passed its end. IDs that a
    /// producer is putting into the ring at this moment can still be taken afterwards.
    LeaseEnded {
        /// When the lease ends, in Unix milliseconds.
        end_unix_ms: u64,
        /// What the clock says, in Unix milliseconds.
        now_unix_ms: u64,
    },
    /// The leases that were held are used up or have ended, and their store has
    /// granted no other yet. It is asked again and again; IDs can be made once it grants
    /// one.
    NoLease {
        /// When the last lease ended or will end, in Unix milliseconds; 0 if
        /// none was held since the generator was built or invalidated.
        end_unix_ms: u64,
        /// What the clock says, in Unix milliseconds.
        now_unix_ms: u64,
        /// What keeps the store from granting one, and since when; `None` if
        /// nothing does, and the store will be asked in a moment.
        failure: Option<StoreFailure>,
    },
    /// `invalidate` was called, because a copy of this process may use the same lease,
    /// and the generator has no store to get another from.
    Invalidated,
    /// This process is a forked child; the IDs belong to its parent.
    Forked,
}

impl Refused {
    /// About how long to wait before an ID can be made; `None` if this generator will make
    /// none any more. A store that grants no lease is asked again every second or two.
    pub const fn retry_after(&self) -> Option<Duration> {
        /// How often the store is asked, roughly.
        const STORE_IS_ASKED: Duration = Duration::from_secs(1);

        match *self {
            Self::BorrowLimit { retry_after, .. } => Some(retry_after),
            Self::NoLease { .. } => Some(STORE_IS_ASKED),
            Self::LeaseEnded { .. } | Self::Invalidated | Self::Forked => None,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BorrowLimit { retry_after, limit } => write!(
                f,
                "the next ID is more than {} ahead of the clock: retry in {}, widen the lease or \
                 raise the borrow limit",
                span(*limit),
                span(*retry_after)
            ),
            Self::LeaseEnded {
                end_unix_ms,
                now_unix_ms,
            } => {
                write_end(f, "the lease", *end_unix_ms, *now_unix_ms)?;
                f.write_str(": build a generator with a new lease")
            }
            Self::NoLease {
                end_unix_ms,
                now_unix_ms,
                failure,
            } => {
                f.write_str("no lease is in force")?;
                if *end_unix_ms > 0 {
                    f.write_str(": ")?;
                    write_end(f, "the last one", *end_unix_ms, *now_unix_ms)?;
                }
                match failure {
                    Some(failure) => write!(f, "; {failure}"),
                    None => f.write_str("; a new one is requested"),
                }
            }
            Self::Invalidated => f.write_str(
                "the generator was invalidated and gave up its lease: \
                 build a generator with a new lease",
            ),
            Self::Forked => f.write_str(
                "this process was forked and its IDs belong to the parent: \
                 build a generator with a lease of its own in the child",
            ),
        }
    }
}

/// How a lease ended: by the clock, or because all of its IDs are issued.
fn write_end(
    f: &mut fmt::Formatter<'_>,
    lease: &str,
    end_unix_ms: u64,
    now_unix_ms: u64,
) -> fmt::Result {
    let (end, now) = (Utc(end_unix_ms), Utc(now_unix_ms));
    if now_unix_ms >= end_unix_ms {
        write!(f, "{lease} ended at {end} (the clock shows {now})")
    } else {
        write!(
            f,
            "all IDs of {lease}, which ends at {end}, are issued (the clock shows {now})"
        )
    }
}

impl std::error::Error for Refused {}

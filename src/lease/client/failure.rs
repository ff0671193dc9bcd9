//! The reason why a store gives no lease.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::layout::Utc;
use crate::lease::error::StoreError;

/// The kind of a [`StoreError`], and since when the store has answered with
/// errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreFailure {
    /// The kind of the store's last error.
    pub kind: StoreFailureKind,
    /// When the first error after the last success came, by this machine's
    /// clock, in milliseconds since 1970.
    pub since_unix_ms: u64,
}

impl StoreFailure {
    pub(crate) fn new(kind: StoreFailureKind, since_unix_ms: u64) -> Self {
        Self {
            kind,
            since_unix_ms,
        }
    }
}

impl fmt::Display for StoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            since_unix_ms,
        } = self;
        write!(f, "since {} the store {kind}", Utc(*since_unix_ms))
    }
}

/// Each kind with the errors that are of it, and the predicate that follows "the store".
macro_rules! kinds {
    ($($kind:ident: $error:ident $(| $other:ident)* => $text:literal,)*) => {
        /// The kind of a [`StoreError`], without its particulars.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum StoreFailureKind {
            $(
                #[doc = concat!(
                    "[`StoreError::", stringify!($error), "`]",
                    $(" or [`StoreError::", stringify!($other), "`]",)* ".",
                )]
                $kind,
            )*
            /// Everything else.
            Other,
        }

        impl StoreFailureKind {
            const ALL: &[Self] = &[$(Self::$kind,)* Self::Other];

            /// The kind of `error`.
            pub fn of(error: &StoreError) -> Self {
                match error {
                    $(StoreError::$error { .. } $(| StoreError::$other { .. })* => Self::$kind,)*
                    _ => Self::Other,
                }
            }
        }

        impl fmt::Display for StoreFailureKind {
            /// A predicate that follows "the store".
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$kind => $text,)*
                    Self::Other => "returns an error",
                })
            }
        }
    };
}

kinds! {
    NotInitialised: NotInitialised | HistoryUnknown => "has no such namespace",
    Mismatch: FingerprintMismatch | LayoutMismatch =>
        "records another secret, layout or block size for the namespace",
    Format: Format => "records the namespace in another version's format",
    Fenced: Fenced => "has fenced the blocks that were held",
    Exhausted: Exhausted => "has no free block",
    FloorAhead: FloorAhead =>
        "grants nothing before its floor, which was raised over lost grants",
    HistoryLost: HistoryLost => "has lost a grant that it confirmed",
    LayoutEnded: LayoutEnded => "has reached the end of the layout's ticks",
    Copied: Copied => "is a copy; the original may still grant the same leases",
    Clock: ClockSkew | BeforeEpoch =>
        "rejects requests: its clock and this machine's differ too much, or show a time before the \
         epoch",
    NotDurable: NotDurable => "can lose grants that it confirmed",
    Unavailable: Unavailable => "is unavailable",
    Denied: Denied => "rejects the login",
    Ambiguous: Ambiguous => "does not reply",
}

/// The health of a store, written by the thread that keeps leases, and read by
/// takes that find none.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    end_unix_ms: AtomicU64,
    since_unix_ms: AtomicU64,
    /// The kind's place in the list, plus one; 0 while all is well.
    kind: AtomicU64,
}

impl StoreHealth {
    /// Records the present state.
    pub(crate) fn note(&self, end_unix_ms: u64, failure: Option<StoreFailure>) {
        // Relaxed: figures for people, which may be of different moments.
        self.end_unix_ms.store(end_unix_ms, Relaxed);
        let kind = failure.and_then(|failure| {
            let at = StoreFailureKind::ALL
                .iter()
                .position(|&kind| kind == failure.kind)?;
            self.since_unix_ms.store(failure.since_unix_ms, Relaxed);
            Some(at as u64 + 1)
        });
        // Release: pairs with the Acquire in `failure`, which then finds a time.
        self.kind.store(kind.unwrap_or(0), Release);
    }

    /// When the last lease ended or will end, in milliseconds since 1970; 0 if
    /// none was held, or all were given up since.
    pub(crate) fn end_unix_ms(&self) -> u64 {
        self.end_unix_ms.load(Relaxed)
    }

    pub(crate) fn failure(&self) -> Option<StoreFailure> {
        // Acquire: pairs with the Release in `note`.
        let at = self.kind.load(Acquire).checked_sub(1)?;
        let kind = *StoreFailureKind::ALL.get(at as usize)?;
        Some(StoreFailure::new(kind, self.since_unix_ms.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noted_failure_is_read_back() {
        let health = StoreHealth::default();
        assert_eq!((health.end_unix_ms(), health.failure()), (0, None));
        for &kind in StoreFailureKind::ALL {
            let failure = StoreFailure::new(kind, 17);
            health.note(99, Some(failure));
            assert_eq!(
                (health.end_unix_ms(), health.failure()),
                (99, Some(failure))
            );
        }
        health.note(99, None);
        assert_eq!(health.failure(), None);
    }
}

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

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $text:literal,)*) => {
        /// The kind of a [`StoreError`], without its particulars.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum StoreFailureKind {
            $($(#[$doc])* $kind,)*
        }

        impl StoreFailureKind {
            const ALL: &[Self] = &[$(Self::$kind,)*];
        }

        impl fmt::Display for StoreFailureKind {
            /// A predicate that follows "the store".
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$kind => $text,)*
                })
            }
        }
    };
}

kinds! {
    /// [`StoreError::NotInitialised`].
    NotInitialised "has no such namespace",
    /// [`StoreError::FingerprintMismatch`] or [`StoreError::LayoutMismatch`].
    Mismatch "records another secret, layout or block size for the namespace",
    /// [`StoreError::Format`].
    Format "records the namespace in another version's format",
    /// [`StoreError::Fenced`].
    Fenced "has fenced the blocks that were held",
    /// [`StoreError::Exhausted`].
    Exhausted "has no free block",
    /// [`StoreError::FloorAhead`].
    FloorAhead "grants nothing before its floor, which was raised over lost grants",
    /// [`StoreError::HistoryLost`].
    HistoryLost "has lost a grant that it confirmed",
    /// [`StoreError::LayoutEnded`].
    LayoutEnded "has reached the end of the layout's ticks",
    /// [`StoreError::Copied`].
    Copied "is a copy; the original may still grant the same leases",
    /// [`StoreError::ClockSkew`] or [`StoreError::BeforeEpoch`].
    Clock "rejects requests: its clock and this machine's differ too much, or show a time before the epoch",
    /// [`StoreError::NotDurable`].
    NotDurable "can lose grants that it confirmed",
    /// [`StoreError::Unavailable`].
    Unavailable "is unavailable",
    /// [`StoreError::Denied`].
    Denied "rejects the login",
    /// [`StoreError::Ambiguous`].
    Ambiguous "does not reply",
    /// Everything else.
    Other "returns an error",
}

impl StoreFailureKind {
    /// The kind of `error`.
    pub fn of(error: &StoreError) -> Self {
        match error {
            StoreError::NotInitialised { .. } | StoreError::HistoryUnknown { .. } => {
                Self::NotInitialised
            }
            StoreError::FingerprintMismatch { .. } | StoreError::LayoutMismatch { .. } => {
                Self::Mismatch
            }
            StoreError::Format { .. } => Self::Format,
            StoreError::Fenced { .. } => Self::Fenced,
            StoreError::Exhausted { .. } => Self::Exhausted,
            StoreError::FloorAhead { .. } => Self::FloorAhead,
            StoreError::HistoryLost { .. } => Self::HistoryLost,
            StoreError::LayoutEnded { .. } => Self::LayoutEnded,
            StoreError::Copied { .. } => Self::Copied,
            StoreError::ClockSkew { .. } | StoreError::BeforeEpoch { .. } => Self::Clock,
            StoreError::NotDurable { .. } => Self::NotDurable,
            StoreError::Unavailable { .. } => Self::Unavailable,
            StoreError::Denied { .. } => Self::Denied,
            StoreError::Ambiguous { .. } => Self::Ambiguous,
            _ => Self::Other,
        }
    }
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

//! The messages of [`StoreError`]: what is wrong, why it matters, and what to do.

use std::fmt;
use std::time::Duration;

use super::{Fence, StoreError};
use crate::layout::{Utc, span};

/// Much longer than a floor waits that was raised over lost grants: the clock was wrong then, or
/// somebody raised it by hand.
pub(crate) const FAR_AHEAD: Duration = Duration::from_secs(3600);

impl fmt::Display for StoreError {
    /// One line: what is wrong, with the values. [`note`](Self::note) and
    /// [`help`](Self::help) have the rest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInitialised { namespace } => {
                write!(f, "the store has no namespace {namespace:?}")
            }
            Self::AlreadyInitialised { namespace } => {
                write!(f, "the store already has a namespace {namespace:?}")
            }
            Self::HistoryUnknown { namespace, reason } => write!(
                f,
                "the store has no namespace {namespace:?}, and may have lost it: {reason}"
            ),
            Self::FingerprintMismatch {
                namespace,
                recorded,
                offered,
            } => write!(
                f,
                "namespace {namespace:?} belongs to the secret and ID width with fingerprint \
                 {recorded}, not {offered}"
            ),
            Self::SecretInUse { namespace, other } if namespace == other => write!(
                f,
                "namespace {namespace:?} had this secret for IDs of another width before its \
                 record was lost"
            ),
            Self::SecretInUse { namespace, other } => write!(
                f,
                "namespace {namespace:?} has the same secret as namespace {other:?}"
            ),
            Self::Format {
                namespace,
                recorded,
                known,
            } => write!(
                f,
                "namespace {namespace:?} is recorded in format {recorded}, and this version \
                 reads format {known}"
            ),
            Self::LayoutMismatch {
                namespace,
                recorded,
                offered,
            } => write!(
                f,
                "namespace {namespace:?} was initialised as {recorded}, not as {offered}"
            ),
            Self::Fenced { block, fence } => write!(f, "block {block} is fenced: {fence}"),
            Self::Exhausted {
                wanted,
                blocks,
                retry_after,
            } => write!(
                f,
                "no block is free: {wanted} requested, all {blocks} are held, and the first ends \
                 in {} unless it is renewed",
                span(*retry_after)
            ),
            Self::BeforeFloor {
                start,
                start_unix_ms,
                floor,
                floor_unix_ms,
            } => write!(
                f,
                "the requested past ticks start at tick {start} ({}), before the namespace's floor \
                 at tick {floor} ({})",
                Utc(*start_unix_ms),
                Utc(*floor_unix_ms),
            ),
            Self::NotPast {
                end,
                end_unix_ms,
                latest,
                latest_unix_ms,
            } => write!(
                f,
                "the requested past ticks end at tick {end} ({}), which the store's clock has not \
                 reached: the latest allowed end is tick {latest} ({})",
                Utc(*end_unix_ms),
                Utc(*latest_unix_ms),
            ),
            Self::PastExhausted {
                wanted,
                blocks,
                start,
                start_unix_ms,
                lowest_mark_unix_ms,
            } => {
                write!(
                    f,
                    "no block is free from tick {start} ({}): {wanted} requested, and all {blocks} \
                     have later grants",
                    Utc(*start_unix_ms),
                )?;
                match lowest_mark_unix_ms {
                    Some(lowest) => write!(f, "; the earliest start is {}", Utc(*lowest)),
                    None => Ok(()),
                }
            }
            Self::PresentOnly { store } => write!(f, "{store} grants no past ticks"),
            Self::FloorAhead {
                floor,
                horizon_end,
                retry_after,
            } => write!(
                f,
                "no grant is possible for the next {}: the floor is at tick {floor}, and grants \
                 must end by tick {horizon_end}",
                span(*retry_after)
            ),
            Self::FloorTooFar {
                tick,
                tick_unix_ms,
                latest,
                latest_unix_ms,
                idle,
            } => write!(
                f,
                "a floor at tick {tick} ({}) would stop all grants for {}: the latest floor \
                 without force is tick {latest} ({})",
                Utc(*tick_unix_ms),
                span(Duration::from_secs(idle.as_secs())),
                Utc(*latest_unix_ms),
            ),
            Self::NotQuarantined { block } => write!(f, "block {block} is not quarantined"),
            Self::HistoryLost {
                confirmed,
                recorded,
            } => {
                write!(
                    f,
                    "the store has lost a grant that it confirmed, {confirmed}: it records "
                )?;
                match recorded {
                    Some((epoch, mark)) => write!(f, "epoch {epoch} up to tick {mark}"),
                    None => f.write_str("no grant of that block"),
                }
            }
            Self::LayoutEnded {
                start,
                layout_ticks,
            } => write!(
                f,
                "the layout has run out of ticks: the next grant would start at tick {start} of \
                 {layout_ticks}"
            ),
            Self::ClockSkew {
                store_unix_ms,
                client_unix_ms,
                limit,
            } => write!(
                f,
                "the store's clock shows {} and the client's {}: {} apart, and the limit is {}",
                Utc(*store_unix_ms),
                Utc(*client_unix_ms),
                span(Duration::from_millis(
                    store_unix_ms.abs_diff(*client_unix_ms)
                )),
                span(*limit)
            ),
            Self::BeforeEpoch {
                unix_ms,
                epoch_unix_ms,
            } => write!(
                f,
                "the store's clock shows {}, before the layout's epoch at {}",
                Utc(*unix_ms),
                Utc(*epoch_unix_ms)
            ),
            Self::NotDurable { store, reason } => {
                write!(f, "{store} can lose grants that it confirmed: {reason}")
            }
            Self::Copied {
                store,
                recorded,
                found,
            } => write!(
                f,
                "{store} is a copy, or was restored to an earlier state: it was written for \
                 {recorded}, and this is {found}"
            ),
            Self::Unavailable { .. } => f.write_str("the store is unavailable"),
            Self::Denied { .. } => f.write_str("the store rejected the login"),
            Self::Ambiguous { operation, .. } => write!(
                f,
                "no reply came from the store during {operation}: the outcome is unknown"
            ),
            Self::Invalid {
                what,
                value,
                min,
                max,
            } => write!(f, "{what} must be {min} to {max}, got {value}"),
            Self::TableMissing { .. } => f.write_str("a table of ringflake is missing"),
            Self::Corrupt { detail, .. } => write!(f, "the store's record is corrupt: {detail}"),
        }
    }
}

impl StoreError {
    /// Why it matters, in one sentence; none where the first line says all.
    ///
    /// Names no item of this crate, so that an operator can read it. Costs no allocation.
    pub fn note(&self) -> Option<&'static str> {
        Some(match self {
            Self::SecretInUse { namespace, other } if namespace == other => {
                "IDs of two widths under one secret can be the same"
            }
            Self::SecretInUse { .. } => "two namespaces with one secret could issue the same IDs",
            Self::BeforeFloor { .. } => {
                "ticks before the floor may have been granted, and this record would not show it"
            }
            Self::FloorAhead { .. } => "the floor was raised over grants that may have been lost",
            Self::FloorTooFar { .. } => "a floor is never lowered",
            Self::HistoryLost { .. } => "the floor was raised above every lost grant",
            Self::NotDurable { .. } => "after such a loss, IDs can be issued twice",
            Self::Copied { .. } => "the original may still grant the same leases",
            Self::LayoutEnded { .. } => {
                "the same layout with a later epoch would issue the same IDs again"
            }
            Self::Unavailable { .. } | Self::Denied { .. } => "nothing was granted or changed",
            Self::Ambiguous { .. } => "the store may or may not have carried out the request",
            _ => return None,
        })
    }

    /// What to do about it, in one sentence; none where the first line says it.
    ///
    /// Names no item of this crate and no command, so that each program can add its own.
    /// Costs no allocation.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotInitialised { .. } | Self::HistoryUnknown { .. } => {
                "initialise it: as new only if no ID with a present or future time was issued \
                 with its layout and secret, otherwise with its history unknown"
            }
            Self::AlreadyInitialised { .. } => "use it, or choose another name",
            Self::FingerprintMismatch { .. } => {
                "use the secret and the ID width that it was initialised with, or another \
                 namespace with another secret"
            }
            Self::SecretInUse { namespace, other } if namespace == other => {
                "initialise it with its old ID width, and with its history unknown; or use another \
                 secret"
            }
            Self::SecretInUse { .. } => "use another secret, or the other namespace",
            Self::Format { .. } => "use a version at least as new as the one that wrote the record",
            Self::LayoutMismatch { .. } => {
                "use the recorded layout and block size, or another namespace with another secret"
            }
            Self::Fenced {
                fence: Fence::Quarantined { .. },
                ..
            } => "repair the block, or acquire another",
            Self::Fenced { .. } => "acquire another block",
            Self::Exhausted { .. } => {
                "hold fewer blocks in each process; for smaller blocks, close this store for good, and \
                 initialise another with the same secret and its history unknown"
            }
            Self::BeforeFloor { .. } => {
                "start at the floor or later, or import older IDs into a namespace that was \
                 initialised as unused, with a secret of its own; its IDs can equal those of this \
                 namespace, so keep them in another table"
            }
            Self::NotPast { .. } => {
                "end at that tick or before; for current IDs use a generator that is not for imports"
            }
            Self::PastExhausted {
                lowest_mark_unix_ms: Some(_),
                ..
            } => {
                "start later, or import these IDs into a namespace that was initialised as unused, \
                 with a secret of its own"
            }
            Self::PastExhausted { .. } => {
                "import these IDs into a namespace that was initialised as unused, with a secret \
                 of its own and smaller blocks"
            }
            Self::PresentOnly { .. } => "request past ticks from its upstream store",
            Self::FloorAhead { retry_after, .. } if *retry_after > FAR_AHEAD => {
                "wait; or, if no ID was issued with a time so far ahead, close this store for good, \
                 and initialise another with the same secret and its history unknown"
            }
            Self::FloorAhead { .. } => "try again after that time",
            Self::FloorTooFar { .. } => {
                "choose an earlier tick, or force the floor if the pause is intended"
            }
            Self::NotQuarantined { .. } => "a check lists the quarantined blocks",
            Self::HistoryLost { .. } => {
                "try again after the failover time; new grants start at the floor"
            }
            Self::LayoutEnded { .. } => {
                "move to a layout with more time bits, and keep its IDs apart from the old ones"
            }
            Self::ClockSkew { .. } => "synchronise both clocks",
            Self::BeforeEpoch { .. } => "set the store's clock",
            Self::NotDurable { .. } => {
                "change that setting, or accept the risk explicitly when opening the store"
            }
            Self::Copied { .. } => {
                "go back to the original; if nobody can use it any more, adopt this copy by \
                 raising its floor over lost grants"
            }
            Self::Unavailable { .. } => "try again",
            Self::Denied { .. } => {
                "check the user, the password, the certificate, and the server's access rules"
            }
            Self::Ambiguous { .. } => "treat the request as not granted, and do not send it again",
            Self::TableMissing { .. } => {
                "initialise any new namespace, as a user who may create tables: that creates what \
                 is missing"
            }
            Self::Corrupt { .. } => {
                "restore the record from a backup and raise the floor over lost grants, or remove \
                 the namespace and initialise it with its history unknown"
            }
            Self::Invalid { .. } => return None,
        })
    }
}

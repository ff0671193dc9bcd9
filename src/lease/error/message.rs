//! The messages of [`StoreError`], which say what to do next.

use std::fmt;

use super::StoreError;
use crate::layout::Utc;

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInitialised { namespace } => write!(
                f,
                "the store has no namespace {namespace:?}: initialise it; \
                 if it was there before, its history is lost and must be declared unknown"
            ),
            Self::AlreadyInitialised { namespace } => write!(
                f,
                "the store has a namespace {namespace:?} already: use it, or choose another name"
            ),
            Self::HistoryUnknown { namespace, reason } => write!(
                f,
                "the store has no namespace {namespace:?}, and may have lost it: {reason}; \
                 declare its history unknown (`History::Unknown`), or, if no ID was ever issued \
                 in it, let a person initialise it once, with `History::New`"
            ),
            Self::FingerprintMismatch {
                namespace,
                recorded,
                offered,
            } => write!(
                f,
                "namespace {namespace:?} belongs to the secret with fingerprint {recorded}, \
                 not {offered}: use that secret and the width of IDs (`id_width`) that it was \
                 initialised with, or a namespace of its own for this secret; for another width \
                 also another secret"
            ),
            Self::SecretInUse { namespace, other } if namespace == other => write!(
                f,
                "namespace {namespace:?} had this secret for IDs of another width (`id_width`) \
                 before its record was lost, and with one secret IDs of both widths could be the \
                 same: initialise it at the width that it had, with its history declared unknown, \
                 or give it a secret of its own"
            ),
            Self::SecretInUse { namespace, other } => write!(
                f,
                "the secret of namespace {namespace:?} is that of namespace {other:?} already, \
                 and with one secret both could issue the same IDs: give {namespace:?} a secret of \
                 its own, or use {other:?}"
            ),
            Self::Format {
                namespace,
                recorded,
                known,
            } => write!(
                f,
                "namespace {namespace:?} is recorded in format {recorded}, and this version reads \
                 format {known}: use a version at least as new as the one that wrote the record"
            ),
            Self::LayoutMismatch {
                namespace,
                recorded,
                offered,
            } => write!(
                f,
                "namespace {namespace:?} was initialised as {recorded}, not as {offered}: \
                 use what is recorded, or a namespace and a secret of their own for this one"
            ),
            Self::Fenced { block, fence } => write!(
                f,
                "block {block} is fenced: {fence}; use what was confirmed, \
                 then drop the block and acquire another"
            ),
            Self::Exhausted {
                wanted,
                blocks,
                retry_after,
            } => write!(
                f,
                "none of {wanted} blocks asked for is free, all {blocks} are held: \
                 the first ends in {retry_after:?} if it is not renewed; \
                 hold fewer blocks a process or make blocks smaller in a new namespace"
            ),
            Self::BeforeFloor {
                start,
                start_unix_ms,
                floor,
                floor_unix_ms,
            } => write!(
                f,
                "the past ticks asked for begin at tick {start} ({}), and nothing is granted before \
                 the namespace's floor, tick {floor} ({}), since it may have been given away without \
                 this record: begin there or later, or give the IDs of the time before a namespace \
                 and a secret of their own, initialised with `History::Unused`",
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
                "the past ticks asked for end at tick {end} ({}), which is not over by the store's \
                 clock: let them end at tick {latest} ({}) or before; IDs of the present are made by \
                 the other generators",
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
                    "none of {wanted} blocks asked for is free from tick {start} ({}) on: of all \
                     {blocks} something was given away that ends later",
                    Utc(*start_unix_ms),
                )?;
                if let Some(lowest) = lowest_mark_unix_ms {
                    write!(f, ", of one of them up to {}", Utc(*lowest))?;
                }
                f.write_str(
                    "; ask for later ticks, or give these IDs a namespace and a secret of their own, \
                     initialised with `History::Unused`, and smaller blocks if \
                     many imports are to come",
                )
            }
            Self::PresentOnly { store } => write!(
                f,
                "{store} grants ticks of the present alone: ask the store behind it for those of the \
                 past"
            ),
            Self::FloorAhead {
                floor,
                horizon_end,
                retry_after,
            } => write!(
                f,
                "grants start at the floor, tick {floor}, and must end by tick {horizon_end} at \
                 present: try again in {retry_after:?}; the floor was raised over grants \
                 that may have been lost"
            ),
            Self::FloorTooFar {
                tick,
                tick_unix_ms,
                latest,
                latest_unix_ms,
                idle,
            } => write!(
                f,
                "tick {tick} begins at {}, and with the floor there nothing would be granted for \
                 {} s: a floor is never lowered; give a tick up to {latest} ({}), which lies above \
                 all that was ever granted, or, if so long a pause is meant, force it with \
                 `Floor::AnyTick`",
                Utc(*tick_unix_ms),
                idle.as_secs(),
                Utc(*latest_unix_ms),
            ),
            Self::NotQuarantined { block } => write!(
                f,
                "block {block} is not quarantined, and nothing was done: a check lists the blocks \
                 that are"
            ),
            Self::HistoryLost {
                confirmed,
                recorded,
            } => {
                write!(
                    f,
                    "the store has lost what it confirmed, {confirmed}: it knows "
                )?;
                match recorded {
                    Some((epoch, mark)) => write!(f, "epoch {epoch} up to tick {mark}"),
                    None => f.write_str("of no grant of that block"),
                }?;
                f.write_str(
                    "; its floor is raised above all that was granted, and grants start there",
                )
            }
            Self::LayoutEnded {
                start,
                layout_ticks,
            } => write!(
                f,
                "a grant would start at tick {start}, but the layout has run out of its \
                 {layout_ticks} ticks: move to a layout with more time bits, and \
                 keep its IDs apart from the old ones: a later epoch alone would issue the \
                 same numbers again"
            ),
            Self::ClockSkew {
                store_unix_ms,
                client_unix_ms,
                limit,
            } => write!(
                f,
                "the store's clock shows {store_unix_ms} ms and the client's {client_unix_ms} ms, \
                 {} ms apart where {} ms are allowed: synchronise the one that is wrong",
                store_unix_ms.abs_diff(*client_unix_ms),
                limit.as_millis()
            ),
            Self::BeforeEpoch {
                unix_ms,
                epoch_unix_ms,
            } => write!(
                f,
                "the store's clock shows {unix_ms} ms, before the layout's epoch at \
                 {epoch_unix_ms} ms: set the clock"
            ),
            Self::NotDurable { store, reason } => write!(
                f,
                "{store} can lose what it has confirmed, and with it the promise of uniqueness: \
                 {reason}; change the setting, or accept the risk explicitly when opening the store"
            ),
            Self::Copied {
                store,
                recorded,
                found,
            } => write!(
                f,
                "{store} is a copy, or was put back to an earlier state: it was written for \
                 {recorded}, and this is {found}; go back to the original, or, if nobody can \
                 use that any more, adopt this one by raising its floor over lost grants"
            ),
            Self::ClockStepped {
                expected_unix_ms,
                shown_unix_ms,
                limit,
                retry_after,
            } => write!(
                f,
                "the machine's clock was set to {shown_unix_ms} ms where its uptime leads to \
                 {expected_unix_ms} ms, {} ms apart where {} ms are allowed: set it right, or, \
                 if it is right now, try again in {retry_after:?}",
                expected_unix_ms.abs_diff(*shown_unix_ms),
                limit.as_millis()
            ),
            Self::Unavailable { .. } => {
                write!(f, "the store can't be reached; nothing was done, try again")
            }
            Self::Denied { .. } => write!(
                f,
                "the store refused the login; nothing was done: check user, password and \
                 certificate, and whom the server lets in"
            ),
            Self::Ambiguous { operation, .. } => write!(
                f,
                "the connection broke during {operation}, and whether it was done is unknown; \
                 treat it as not granted, and don't send it again"
            ),
            Self::Invalid {
                what,
                value,
                min,
                max,
            } => write!(f, "{what} is {value}: give {min} to {max}"),
            Self::Corrupt { detail, .. } => write!(
                f,
                "the store holds what this version did not write: {detail}; \
                 restore it, and declare the history unknown"
            ),
        }
    }
}

//! The messages of [`StoreError`]: what is wrong, why it matters, and what to do.

use std::time::Duration;

use super::{Fence, StoreError};
use crate::describe::describe;
use crate::layout::{Utc, span};

/// Much longer than a floor waits that was raised over lost grants: the clock was wrong then, or
/// somebody raised it by hand.
pub(crate) const FAR_AHEAD: Duration = Duration::from_secs(3600);

describe! {
    StoreError,
    /// Why it matters, in one sentence; none where the first line says all.
    ///
    /// Names no item of this crate, so that an operator can read it. Costs no allocation.
    note,
    /// What to do about it, in one sentence; none where the first line says it.
    ///
    /// Names no item of this crate and no command, so that each program can add its own.
    /// Costs no allocation.
    help;

    Self::NotInitialised { namespace } => "the store has no namespace {namespace:?}",
        help: "initialise it: as new only if no ID with a present or future time was issued \
               with its layout and secret; otherwise, once the clock is right, with its history \
               unknown and its old horizon and failover time, or longer ones";
    Self::AlreadyInitialised { namespace } => "the store already has a namespace {namespace:?}",
        help: "if it was restored, or another store was used meanwhile: stop all processes, and once \
               the clock is right, raise its floor over lost grants; else use it, or choose another \
               name";
    Self::HistoryUnknown { namespace, reason } =>
        "the store has no namespace {namespace:?}, and may have lost it: {reason}",
        help: "initialise it: as new only if no ID with a present or future time was issued \
               with its layout and secret; otherwise, once the clock is right, with its history \
               unknown and its old horizon and failover time, or longer ones";
    Self::FingerprintMismatch { namespace, recorded, offered } =>
        "namespace {namespace:?} belongs to the secret and ID width with fingerprint {recorded}, \
         not {offered}",
        help: "use the secret and the ID width that it was initialised with; or another \
               namespace with another secret, and keep its IDs apart from the old ones";
    Self::SecretInUse { namespace, other } if namespace == other =>
        "namespace {namespace:?} had this secret for IDs of another width before its record was \
         lost",
        note: "IDs of two widths under one secret can be the same",
        help: "once the clock is right, initialise it with its history unknown, its old ID width and \
               layout, and its old horizon and failover time, or longer ones; or use another secret";
    Self::SecretInUse { namespace, other } =>
        "namespace {namespace:?} has the same secret as namespace {other:?}",
        note: "two namespaces with one secret could issue the same IDs",
        help: "use another secret, or the other namespace";
    Self::Format { namespace, recorded, known } =>
        "namespace {namespace:?} is recorded in format {recorded}, and this version reads format \
         {known}",
        help: "use a version at least as new as the one that wrote the record";
    Self::LayoutMismatch { namespace, recorded, offered } =>
        "namespace {namespace:?} was initialised as {recorded}, not as {offered}",
        help: "use the recorded layout and block size; or another namespace with another secret, \
               and keep its IDs apart from the old ones";
    Self::Fenced { block, fence: fence @ Fence::Quarantined { .. } } =>
        "block {block} is fenced: {fence}",
        help: "repair the block once the clock is right, or acquire another";
    Self::Fenced { block, fence } => "block {block} is fenced: {fence}",
        help: "acquire another block";
    Self::Exhausted { wanted, blocks, retry_after } => (
        "no block is free: {wanted} requested, all {blocks} are held, and the first ends in {} \
         unless it is renewed", span(*retry_after)),
        help: "hold fewer blocks in each process; for smaller blocks, stop all processes, close \
               this store for good, and, once the clock is right, initialise another with the same \
               secret, its history unknown, and the old horizon and failover time or longer ones";
    Self::BeforeFloor { start, start_unix_ms, floor, floor_unix_ms } => (
        "the requested past ticks start at tick {start} ({}), before the namespace's floor at tick \
         {floor} ({})", Utc(*start_unix_ms), Utc(*floor_unix_ms)),
        note: "ticks before the floor may have been granted, and this record would not show it",
        help: "start at the floor or later, or import older IDs into a namespace that was \
               initialised as unused, with a secret of its own; its IDs can equal those of this \
               namespace, so keep them in another table";
    Self::NotPast { end, end_unix_ms, latest, latest_unix_ms } => (
        "the requested past ticks end at tick {end} ({}), which the store's clock has not reached: \
         the latest allowed end is tick {latest} ({})", Utc(*end_unix_ms), Utc(*latest_unix_ms)),
        help: "end at that tick or before; for current IDs use a generator that is not for imports";
    Self::PastExhausted { wanted, blocks, start, start_unix_ms, lowest_mark_unix_ms: None } => (
        "no block is free from tick {start} ({}): {wanted} requested, and all {blocks} have later \
         grants", Utc(*start_unix_ms)),
        help: "import these IDs into a namespace that was initialised as unused, with a secret of \
               its own and smaller blocks";
    Self::PastExhausted { wanted, blocks, start, start_unix_ms, lowest_mark_unix_ms: Some(at) } => (
        "no block is free from tick {start} ({}): {wanted} requested, and all {blocks} have later \
         grants; the earliest start is {}", Utc(*start_unix_ms), Utc(*at)),
        help: "start later, or import these IDs into a namespace that was initialised as unused, \
               with a secret of its own";
    Self::PresentOnly { store } => "{store} grants no past ticks",
        help: "request past ticks from its upstream store";
    Self::FloorAhead { floor, floor_unix_ms, now_unix_ms, retry_after }
        if *retry_after > FAR_AHEAD => (
        "no grant is possible for the next {}: the floor is at {} (tick {floor}), and the \
         store's clock shows {}", span(*retry_after), Utc(*floor_unix_ms), Utc(*now_unix_ms)),
        note: "the floor was raised over grants that may have been lost",
        help: "if that clock is behind, set it right; otherwise wait; only if it is right \
               and no ID was issued with a time so far ahead, close this store for good, and \
               initialise another with the same secret, its history unknown, and the old horizon \
               and failover time or longer ones";
    Self::FloorAhead { floor, floor_unix_ms, now_unix_ms, retry_after } => (
        "no grant is possible for the next {}: the floor is at {} (tick {floor}), and the \
         store's clock shows {}", span(*retry_after), Utc(*floor_unix_ms), Utc(*now_unix_ms)),
        note: "the floor was raised over grants that may have been lost",
        help: "try again after that time";
    Self::FloorTooFar { tick, tick_unix_ms, latest, latest_unix_ms, idle } => (
        "a floor at tick {tick} ({}) would stop all grants for {}: the latest floor without force \
         is tick {latest} ({})",
        Utc(*tick_unix_ms), span(Duration::from_secs(idle.as_secs())), Utc(*latest_unix_ms)),
        note: "a floor is never lowered",
        help: "choose an earlier tick, or force the floor if the pause is intended";
    Self::NotQuarantined { block } => "block {block} is not quarantined",
        help: "a check lists the quarantined blocks";
    Self::HistoryLost { confirmed, recorded: None } =>
        "the store has lost a grant that it confirmed, {confirmed}: it records no grant of that \
         block",
        note: "the floor was raised above every lost grant",
        help: "try again after the failover time; new grants start at the floor";
    Self::HistoryLost { confirmed, recorded: Some((epoch, mark)) } =>
        "the store has lost a grant that it confirmed, {confirmed}: it records epoch {epoch} up to \
         tick {mark}",
        note: "the floor was raised above every lost grant",
        help: "try again after the failover time; new grants start at the floor";
    Self::LayoutEnded { start, layout_ticks } =>
        "the layout has run out of ticks: the next grant would start at tick {start} of \
         {layout_ticks}",
        note: "the same layout with a later epoch would issue the same IDs again",
        help: "move to a layout with more time bits, and keep its IDs apart from the old ones";
    Self::ClockSkew { store_unix_ms, client_unix_ms, limit } => (
        "the store's clock shows {} and the client's {}: {} apart, and the limit is {}",
        Utc(*store_unix_ms), Utc(*client_unix_ms),
        span(Duration::from_millis(store_unix_ms.abs_diff(*client_unix_ms))), span(*limit)),
        help: "synchronise both clocks";
    Self::BeforeEpoch { unix_ms, epoch_unix_ms } => (
        "the store's clock shows {}, before the layout's epoch at {}",
        Utc(*unix_ms), Utc(*epoch_unix_ms)),
        help: "set the store's clock";
    Self::NotDurable { store, reason } => "{store} can lose grants that it confirmed: {reason}",
        note: "after such a loss, IDs can be issued twice",
        help: "change that setting, or accept the risk explicitly when opening the store";
    Self::Copied { store, recorded, found } =>
        "{store} is a copy, or was restored to an earlier state: it was written for {recorded}, \
         and this is {found}",
        note: "the original may still grant the same leases",
        help: "go back to the original; if nobody can use it any more, and the clock is right, \
               adopt this copy by raising its floor over lost grants";
    Self::Unavailable { .. } => "the store is unavailable",
        note: "nothing was granted or changed",
        help: "try again; if a permission is missing, run as a user that has it, such as the \
               owner of the file";
    Self::Denied { .. } => "the store rejected the login",
        note: "nothing was granted or changed",
        help: "check the user, the password, the certificate, and the server's access rules";
    Self::Ambiguous { operation: operation @ "raise_floor", .. } =>
        "no reply came from the store during {operation}: the outcome is unknown",
        note: "the floor may not have been raised",
        help: "raise it again before anybody uses the store";
    Self::Ambiguous { operation: operation @ ("init" | "repair" | "release"), .. } =>
        "no reply came from the store during {operation}: the outcome is unknown",
        note: "the store may or may not have carried out the request",
        help: "send the request again, which does no harm; the answer that the namespace is there \
               already, or that the block is not quarantined, means that it was done";
    Self::Ambiguous { operation, .. } =>
        "no reply came from the store during {operation}: the outcome is unknown",
        note: "the store may or may not have carried out the request",
        help: "treat the request as not granted, and do not send it again";
    Self::Invalid { what, value, min, max } => "{what} must be {min} to {max}, got {value}";
    Self::TableMissing { .. } => "a table of ringflake is missing",
        help: "initialise any new namespace, as a user who may create tables: that creates what \
               is missing";
    Self::Corrupt { detail, .. } => "the store's record is corrupt: {detail}",
        help: "stop all processes; once the clock is right, restore a backup and raise the floor \
               over lost grants, or remove the namespace from the server (of a file, move it and \
               its journal aside, and keep its lock file) and initialise it with its history \
               unknown, and its old horizon and failover time or longer ones";
}

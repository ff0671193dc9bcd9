//! The interface of a store of leases.

mod forward;

use std::fmt;
use std::time::Duration;

use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::namespace::Namespace;
use crate::lease::store::batch::one_by_one;
use crate::lease::store::key::StoreKey;
#[cfg(doc)]
use crate::lease::store::limits::StoreLimits;
#[cfg(doc)]
use crate::lease::store::quarantine::Quarantined;
use crate::lease::store::record::StoreRecord;
use crate::lease::store::report::{Listing, StoreReport};
use crate::lease::store::request::{Acquire, Floor, History, Init, Renew};

/// Hands out disjoint rectangles of ID space.
///
/// The head of the [module](crate::lease) has the rules. Each method is one atomic step
/// on the namespace's record and its blocks: a transaction, a script, a guarded
/// write. A positive answer is given only once the step is durable.
///
/// A store blocks its caller for as long as its own time-outs allow. It runs on
/// a thread that keeps leases alive, never on one that takes IDs, and must not
/// fork there. A store that has lost its connection opens a new one at the next
/// call.
///
/// # For those who write a store
/// * Compare the whole [`Namespace`] with the record inside the same step
///   ([`StoreRecord::verify`]), in every method but `init`.
/// * The store's own clock counts. A store without one uses the caller's
///   `now_unix_ms`, and its comparisons decide.
/// * After a failure that leaves open whether the step was taken, answer
///   [`StoreError::Ambiguous`] and never repeat the step: the caller gives the
///   grant up. A repetition, or a token to recognise one, could not distinguish
///   two copies of one process.
/// * A record of a block that can't be read, or can't be true, costs that block alone:
///   don't choose it, answer [`Fence::Quarantined`](crate::lease::Fence::Quarantined) for its
///   grants, pass over the evidence on it, and list it as [`Quarantined`].
/// * Let no two namespaces have one fingerprint, but for
///   [`Fingerprint::PLAIN`](crate::lease::Fingerprint::PLAIN): with one secret they could issue the
///   same IDs, whatever their layouts. Nor let a namespace
///   be made where another has one of [`Init::same_secret`], also if both are made at once.
/// * Every number that is kept is below 2^63.
pub trait LeaseStore: Send + fmt::Debug {
    /// Makes the record of a namespace. Nothing else ever makes one, so that a
    /// store that lost its memory does not start again at the beginning.
    ///
    /// # Errors
    /// [`StoreError::AlreadyInitialised`], [`StoreError::SecretInUse`],
    /// [`StoreError::Invalid`] for limits out of range, [`StoreError::ClockSkew`] for
    /// clocks that are too far apart, as by [`acquire`](Self::acquire), and those of every
    /// method. Nothing is written then.
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError>;

    /// As [`init`](Self::init), for a program that gives the same `history` at
    /// each of its starts, whatever may have happened since the one before.
    ///
    /// Such a program's [`History::New`] or [`History::Unused`] is known to hold only at
    /// its first start. So this refuses them if a missing namespace may have been lost: in a
    /// store that can lose what it has confirmed, that has lost something, or that finds the
    /// note of the namespace's secret, or its blocks, without its record. The default
    /// implementation always refuses them.
    ///
    /// # Errors
    /// [`StoreError::HistoryUnknown`], and those of [`init`](Self::init).
    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        match init.history {
            History::Unknown => self.init(namespace, init),
            History::New | History::Unused => {
                let reason = "this store doesn't say whether it can lose what it has confirmed";
                Err(namespace.history_unknown(reason))
            }
        }
    }

    /// Grants up to the number of blocks asked for, at least one, each for an
    /// interval of its own.
    ///
    /// The store chooses the blocks, out of those whose mark lies at or before
    /// now or the floor, and, when they are used up, those released. An
    /// interval starts at `max(now, floor, hwm_end)` and has the length asked
    /// for, or less where the horizon or the layout ends before. Of a request for the
    /// [past](Acquire::past) it is the one asked for, and the blocks are those whose mark
    /// lies at or before its start: [`StoreRecord::mark_window`] and
    /// [`StoreRecord::granted`] have both rules. A store that grants no past answers
    /// [`StoreError::PresentOnly`].
    ///
    /// In this order: refuse clocks that are too far apart; refuse a copy; where the server's
    /// incarnation is not the recorded one, raise the floor over lost grants; choose.
    /// If less is on record than the [evidence](Acquire::evidence) says
    /// ([`StoreRecord::check_history`]), read no earlier than what is chosen, raise the
    /// floor over lost grants and refuse, before any other refusal. A raised floor must
    /// be kept even when the choice then fails: computed anew at each attempt, it would
    /// run away from the clock for ever.
    ///
    /// # Errors
    /// [`StoreError::ClockSkew`], [`StoreError::Copied`],
    /// [`StoreError::FloorAhead`], [`StoreError::Exhausted`], [`StoreError::HistoryLost`],
    /// [`StoreError::LayoutEnded`], [`StoreError::Invalid`], and those of every method; for
    /// the past [`StoreError::BeforeFloor`], [`StoreError::NotPast`],
    /// [`StoreError::PastExhausted`] and [`StoreError::PresentOnly`].
    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError>;

    /// Moves the end of a grant, and returns where it is now: at the end asked for, or before it
    /// where the horizon or the layout ends, and never before the end known.
    ///
    /// It compares and sets: the epoch and the end must be those on record, the
    /// end known must not be below the floor, and the server's incarnation must
    /// be the recorded one. The time is not compared with the grant's: an expired grant can be
    /// renewed until another process holds the block.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when a comparison fails,
    /// [`StoreError::Invalid`] for a new end before the known one, and those of
    /// every method.
    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError>;

    /// Renews each of these grants, of one namespace or of many, as
    /// [`renew`](Self::renew) does. Returns its answers in their order, in ticks. For a
    /// holder of many blocks this costs less, if the store can move many marks in one
    /// step.
    ///
    /// Each succeeds or fails alone, by the rules of [`renew`](Self::renew): one that is
    /// fenced or out of range costs no other. There may be any number of them, none
    /// included. They may be carried out in any order, except that those of one block
    /// keep theirs.
    ///
    /// # Errors
    /// For each renewal those of [`renew`](Self::renew). Two of them reach further:
    /// * [`StoreError::Ambiguous`] for all that were in the step whose outcome is
    ///   unknown. None of them is sent again, and the holder must give all those blocks
    ///   up.
    /// * After [`StoreError::Unavailable`], [`StoreError::Denied`] or
    ///   [`StoreError::Ambiguous`] nothing more is sent. Each renewal that was not sent
    ///   by then is [`StoreError::Unavailable`], and was not carried out.
    ///
    /// # Cost
    /// A store that can't be reached costs one of its time-outs. The stores of this crate make
    /// up to 60 renewals in one transaction, and one more call for what it left undone.
    /// By default one renewal follows the other.
    ///
    /// It blocks the caller, like every method. Other connections to the store may acquire, renew
    /// and release meanwhile.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use ringflake::lease::{
    ///     Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, Renew,
    /// };
    /// use ringflake::{Clock, Layout, SystemClock};
    ///
    /// let mut store = MemoryStore::new(Arc::new(SystemClock));
    /// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
    /// let now = SystemClock.unix_ms();
    /// store.init(&orders, &Init::new(History::New, now))?;
    /// let mut grants = store.acquire(&orders, &Acquire::new(3, 60, now))?;
    ///
    /// let wanted: Vec<Renew> = grants
    ///     .iter()
    ///     .map(|grant| Renew::new(grant, grant.ticks.end + 30, now))
    ///     .collect();
    /// let wanted: Vec<_> = wanted.iter().map(|renew| (&orders, renew)).collect();
    /// for (grant, answer) in grants.iter_mut().zip(store.renew_all(&wanted)) {
    ///     grant.ticks.end = answer?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn renew_all(&mut self, renewals: &[(&Namespace, &Renew)]) -> Vec<Result<u64, StoreError>> {
        one_by_one(renewals, |namespace, renew| self.renew(namespace, renew))
    }

    /// Notes that the holder of this grant is done with it, so that the block
    /// can be granted again before its end has passed. The mark stays: the next
    /// grant starts where this one ends. A renewal takes the note back.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is not the block's last grant, and those
    /// of every method.
    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError>;

    /// Brings back a block that is [quarantined](Quarantined), and returns its new
    /// state: released, with a mark and an epoch above all that can have been granted of
    /// it ([`StoreRecord::repaired`]). It is granted again from that mark on, once the
    /// horizon reaches it, so after [`StoreLimits::failover`] at the earliest.
    ///
    /// `now_unix_ms` is the caller's time in milliseconds since 1970. The mark depends
    /// on the store's clock, so a time too far from it is refused. A record that has
    /// changed meanwhile is judged anew.
    ///
    /// A store that quarantines nothing does not have to implement this: the default looks the
    /// namespace up, and returns [`StoreError::NotQuarantined`].
    ///
    /// It may run while others use the namespace, and while others repair the block: one
    /// of them does. Cost: one step on the record and this block, as a renewal.
    ///
    /// # Errors
    /// [`StoreError::NotQuarantined`], [`StoreError::ClockSkew`], [`StoreError::Copied`], and those
    /// of every method.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use ringflake::{Layout, ManualClock};
    /// use ringflake::lease::{
    ///     Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, StoreError,
    /// };
    ///
    /// let now = 1_760_000_000_000;
    /// let mut store = MemoryStore::new(Arc::new(ManualClock::new(now)));
    /// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
    /// store.init(&orders, &Init::new(History::New, now))?;
    /// let lost = store.acquire(&orders, &Acquire::new(1, 600, now))?.remove(0);
    /// store.damage(&orders, lost.block);
    ///
    /// for found in store.list(&orders)?.quarantined {
    ///     // None is of no block: delete that by hand.
    ///     let Some(block) = found.block else { continue };
    ///     match store.repair(&orders, block, now) {
    ///         Ok(repaired) => assert!(repaired.hwm_end > lost.ticks.end),
    ///         // Somebody was faster.
    ///         Err(StoreError::NotQuarantined { .. }) => {}
    ///         Err(error) => return Err(error.into()),
    ///     }
    /// }
    /// assert!(store.list(&orders)?.quarantined.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        let _ = now_unix_ms;
        self.list(namespace)?;
        Err(StoreError::NotQuarantined { block })
    }

    /// The record, and every block that was granted at least once, in order; quarantined blocks are
    /// listed apart. Changes nothing.
    ///
    /// # Errors
    /// Those of every method.
    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError>;

    /// Raises the floor, and returns it. It is never lowered.
    ///
    /// `now_unix_ms` is the caller's time in milliseconds since 1970. Unless the tick
    /// is [forced](Floor::AnyTick), clocks that are too far apart are refused, as by
    /// [`acquire`](Self::acquire): one of them says how far ahead a tick lies.
    ///
    /// # Errors
    /// [`StoreError::ClockSkew`], [`StoreError::FloorTooFar`],
    /// [`StoreError::Invalid`] for a tick beyond the layout's, and those of
    /// every method. Nothing is raised then.
    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError>;

    /// The state of the store: whether it is durable, whether its history is
    /// whole, how far its clock is from the caller's. Changes nothing.
    ///
    /// `now_unix_ms` is the caller's time in milliseconds since 1970.
    ///
    /// # Errors
    /// Of every method: [`StoreError::NotInitialised`],
    /// [`StoreError::FingerprintMismatch`], [`StoreError::LayoutMismatch`],
    /// [`StoreError::Format`], [`StoreError::BeforeEpoch`], [`StoreError::NotDurable`],
    /// [`StoreError::Unavailable`], [`StoreError::Denied`], [`StoreError::Ambiguous`],
    /// [`StoreError::TableMissing`], [`StoreError::Corrupt`].
    fn check(&mut self, namespace: &Namespace, now_unix_ms: u64)
    -> Result<StoreReport, StoreError>;

    /// Writes a note beside the namespace's blocks as a grant would be written, to prove that
    /// the store accepts writes. [`check`](Self::check) looks at settings and changes nothing;
    /// a full disk or a missing permission shows here.
    ///
    /// `now_unix_ms` is the caller's time in milliseconds since 1970, and what is written.
    ///
    /// # Errors
    /// Those of every method.
    fn write_test(&mut self, namespace: &Namespace, now_unix_ms: u64) -> Result<(), StoreError>;

    /// The key of this store, if another store with the same key can do its work.
    /// Generators of a process whose stores have equal keys share one store: that of
    /// the first one. The others' are dropped without a request.
    ///
    /// None by default: each generator keeps the store that it was given. A store that
    /// adds to the work of another one with a key must have none, too.
    fn key(&self) -> Option<StoreKey> {
        None
    }

    /// Announces that no request is due for this long, as far as is known; one may come
    /// sooner all the same. It is called a few times a second while nothing is asked. A
    /// store whose connection costs its server more than a new one does may close it.
    /// It must not take long, and by default does nothing.
    fn rest(&mut self, at_least: Duration) {
        let _ = at_least;
    }
}

//! The generator without a ring.
//!
//! # State
//!
//! The leased nodes are divided into one or more *lanes*, each a timeline of
//! its own over a part of the nodes and all the ticks, that never borrows. One
//! lane is in use; its one atomic word is all that a take touches.
//!
//! ```text
//!            claim in the lane in use
//!   take --------------------------------> ID
//!              | refused: the clock is behind the lane,
//!              v          or the tick is used up
//!   Refuse, Logical: the error       Wait: sleep and try again, up to a bound
//!   SwitchNode: the next lane that the clock is not behind
//! ```
//!
//! # Why it is right
//!
//! If a store leases blocks, each lane has its share of every block. Lanes have
//! disjoint nodes, and each timeline claims each of its raws once (U1 there).
//! So the lane in use is only a hint: two threads that disagree about it still
//! never claim the same raw, and no clock is needed for the proof.
//!
//! # Why a take makes one ID
//!
//! A run of IDs costs each of them a fraction of what one costs alone, most of which is the
//! encryption. A take that made a run would have to keep the rest for later takes, and
//! those would give
//!
//! - the tick of the first of them, unless each looked at the clock and threw the rest away
//!   when the tick is over: with ticks of a millisecond, 4,096 IDs in each and a run for
//!   each of 64 cores all there are;
//! - no order: made one by one, an ID that is taken after another one, by whichever
//!   thread, lies after it in its lane, and a plain one is larger;
//! - IDs that an invalidation or a fork would have to find.
//!
//! Use a `CachedGenerator` for that. So runs are for callers that ask for several IDs at the same
//! moment: `take_batch` is one claim and one encryption for each run.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::empty::TakeError;
use super::lease_hold::{LeaseHold, Shutdown};
use crate::id::Id;
use crate::lease::Lease;
use crate::source::Source;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::timeline::{Refused, Timeline};

/// How a [`DirectGenerator`] reacts when the clock was set back, or a tick is used up. None of the
/// policies can make a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClockPolicy {
    /// Fail at once, with the time to wait in the error.
    Refuse,
    /// Sleep until the clock has caught up, but fail rather than sleep longer
    /// than this in one take.
    Wait {
        /// The longest that one take sleeps.
        at_most: Duration,
    },
    /// Go on with another node of the lease, when the clock is set back and
    /// also when a tick is used up.
    SwitchNode,
    /// Count ticks without following the clock: from the start of the lease
    /// on, a tick is used to the end before the next begins. IDs are dense and
    /// their time is only an order. The clock is read for one purpose, the bound.
    Logical {
        /// How far the count may be ahead of the clock: at most a day with a
        /// [`StaticLease`](crate::StaticLease), or a tick where that is longer.
        at_most_ahead: Duration,
    },
}

impl Default for ClockPolicy {
    /// [`Wait`](Self::Wait), at most 15 ms: enough for the small steps of a time
    /// daemon and for the rest of a tick of 10 ms, and too short to be noticed.
    fn default() -> Self {
        Self::Wait {
            at_most: Duration::from_millis(15),
        }
    }
}

/// Makes each ID when it is asked for, without a ring and without threads.
///
/// Lock-free on one atomic word, which all threads share; a take costs a look at the clock,
/// one exchange and one encryption, some tens of nanoseconds. IDs carry the time of their
/// take to the tick, and never borrow from the future (except `Logical`), so a
/// lease of N nodes gives at most N x 2^sequence_bits of them per tick. Nothing is made
/// ahead: for several IDs of one moment [`take_batch`](Self::take_batch) costs a fraction
/// for each.
///
/// Clones are cheap and share everything, the lane in use too: clone one into every thread
/// or task rather than build several. In a child of `fork(2)` every take fails with
/// [`Refused::Forked`]. A take that a signal handler interrupts to fork may give its IDs in both
/// processes.
///
/// # Examples
///
/// ```
/// use ringflake::{ClockPolicy, DirectGenerator, Layout, StaticLease};
///
/// let ids = DirectGenerator::builder(Layout::RANDFLAKE)
///     .plain()
///     .lease(StaticLease::assume_unique(Layout::RANDFLAKE, 8..16))
///     .clock_policy(ClockPolicy::SwitchNode)
///     .build()?;
/// assert!((8..16).contains(&ids.inspect(ids.take()?)?.node));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct DirectGenerator {
    lanes: Arc<[Source]>,
    pub(super) shared: Arc<Shared>,
}

/// What the clones share besides the lanes.
pub(super) struct Shared {
    /// The lane in use; a hint.
    active: AtomicUsize,
    policy: ClockPolicy,
    pub(super) leases: LeaseHold,
}

impl DirectGenerator {
    pub(super) fn new(lanes: Arc<[Source]>, policy: ClockPolicy, leases: LeaseHold) -> Self {
        let shared = Arc::new(Shared {
            active: AtomicUsize::new(0),
            policy,
            leases,
        });
        Self { lanes, shared }
    }

    /// Its hold on its leases, and the timeline of one of its lanes.
    pub(super) fn hold(&self) -> (&LeaseHold, &Timeline) {
        (&self.shared.leases, self.lanes[0].timeline())
    }

    /// Makes one ID. Lock-free, but for the sleep of [`ClockPolicy::Wait`].
    ///
    /// # Errors
    ///
    /// [`TakeError::Refused`] where the policy does not help, at the end of the lease, and
    /// in a forked child.
    #[doc(alias = "generate")]
    #[doc(alias = "next_id")]
    #[doc(alias = "try_take")]
    #[inline]
    pub fn take(&self) -> Result<Id, TakeError> {
        let mut id = [Id::default()];
        self.mint(&mut id, &mut None)?;
        Ok(id[0])
    }

    /// Fills `out` from the front and returns how many IDs that were: all of
    /// it, or fewer if a limit was hit, but at least one unless `out` is empty.
    ///
    /// Lock-free as [`take`](Self::take) is; a claim for each run of IDs rather
    /// than for each ID.
    ///
    /// # Errors
    ///
    /// [`TakeError`] as in [`take`](Self::take), if there was not even one.
    pub fn take_batch(&self, out: &mut [Id]) -> Result<usize, TakeError> {
        let mut done = 0;
        let mut waits_since = None;
        while done < out.len() {
            match self.mint(&mut out[done..], &mut waits_since) {
                Ok(count) => done += count,
                // IDs that were made before a clock forked are the parent's.
                Err(Refused::Forked) => return Err(Refused::Forked.into()),
                Err(refused) if done == 0 => return Err(refused.into()),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// That of the first lane, of the layout and the secret of all.
    pub(super) fn source(&self) -> &Source {
        &self.lanes[0]
    }

    /// The leases that IDs come from at this moment, divided as the
    /// [`ClockPolicy`] demands. Allocates.
    pub fn leases(&self) -> Vec<Lease> {
        let timelines = self.lanes.iter().map(Source::timeline);
        timelines.flat_map(Timeline::leases).collect()
    }

    /// Whether a lease is in force at this moment; see
    /// [`CachedGenerator::is_ready`](crate::CachedGenerator::is_ready).
    pub fn is_ready(&self) -> bool {
        self.wait_ready(Duration::ZERO)
    }

    /// Waits until a lease is in force, for no longer than `patience`; see
    /// [`CachedGenerator::wait_ready`](crate::CachedGenerator::wait_ready).
    pub fn wait_ready(&self, patience: Duration) -> bool {
        // Again after the last look at the clock, which may have forked.
        !self.is_forked() && self.shared.leases.wait_ready(patience) && !self.is_forked()
    }

    /// Releases the leases from a store, waiting for that no longer than `patience`. Every
    /// other clone has to be gone; see
    /// [`CachedGenerator::shutdown`](crate::CachedGenerator::shutdown).
    #[doc(alias = "close")]
    pub fn shutdown(self, patience: Duration) -> Shutdown {
        let Self { lanes, shared } = self;
        let Some(shared) = Arc::into_inner(shared) else {
            return Shutdown::InUse;
        };
        drop(lanes);
        shared.leases.shut_down(patience)
    }

    /// Gives up every lease, because a copy of this process may have it too; see
    /// [`CachedGenerator::invalidate`](crate::CachedGenerator::invalidate).
    pub fn invalidate(&self) {
        if !self.is_forked() {
            self.shared.leases.invalidate(&self.lanes);
        }
    }

    /// `waits_since` is when this take first had to wait, for the bound.
    #[inline]
    pub(super) fn mint(
        &self,
        out: &mut [Id],
        waits_since: &mut Option<Instant>,
    ) -> Result<usize, Refused> {
        // Relaxed: a hint, in range because nothing else is ever stored.
        let lane = self.shared.active.load(Relaxed);
        match self.lanes[lane].mint(out) {
            Ok(count) => Ok(count),
            Err(refused) => self.mint_or_refuse(out, lane, refused, waits_since),
        }
    }

    #[cold]
    fn mint_or_refuse(
        &self,
        out: &mut [Id],
        lane: usize,
        refused: Refused,
        waits_since: &mut Option<Instant>,
    ) -> Result<usize, Refused> {
        let outcome = self.mint_by_policy(out, lane, refused, waits_since);
        // After the last look at the clock, which may have forked.
        if self.is_forked() {
            Err(Refused::Forked)
        } else {
            outcome
        }
    }

    fn mint_by_policy(
        &self,
        out: &mut [Id],
        lane: usize,
        refused: Refused,
        waits_since: &mut Option<Instant>,
    ) -> Result<usize, Refused> {
        match self.shared.policy {
            ClockPolicy::Refuse | ClockPolicy::Logical { .. } => Err(refused),
            ClockPolicy::Wait { at_most } => {
                let started = *waits_since.get_or_insert_with(Instant::now);
                self.mint_after_a_wait(out, refused, started, at_most)
            }
            ClockPolicy::SwitchNode => self.mint_in_another_lane(out, lane, refused),
        }
    }

    fn mint_after_a_wait(
        &self,
        out: &mut [Id],
        mut refused: Refused,
        started: Instant,
        at_most: Duration,
    ) -> Result<usize, Refused> {
        while let Refused::BorrowLimit { retry_after, .. } = refused {
            let left = at_most.saturating_sub(started.elapsed());
            if retry_after > left {
                break;
            }
            std::thread::sleep(retry_after);
            match self.lanes[0].mint(out) {
                Ok(count) => return Ok(count),
                Err(again) => refused = again,
            }
        }
        Err(refused)
    }

    fn mint_in_another_lane(
        &self,
        out: &mut [Id],
        lane: usize,
        refused: Refused,
    ) -> Result<usize, Refused> {
        let mut soonest = refused;
        let others = (lane + 1..self.lanes.len()).chain(0..lane);
        for other in others {
            match self.lanes[other].mint(out) {
                Ok(count) => {
                    self.shared.active.store(other, Relaxed);
                    return Ok(count);
                }
                Err(refused) => soonest = sooner(soonest, refused),
            }
        }
        Err(soonest)
    }
}

/// The one of two refusals that ends first; that of a used-up lease never ends.
fn sooner(a: Refused, b: Refused) -> Refused {
    let wait = |refused| match refused {
        Refused::BorrowLimit { retry_after, .. } => retry_after,
        _ => Duration::MAX,
    };
    if wait(b) < wait(a) { b } else { a }
}

// As for the cached one: atomic throughout.
impl UnwindSafe for DirectGenerator {}
impl RefUnwindSafe for DirectGenerator {}

impl fmt::Debug for DirectGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectGenerator")
            .field("leases", &self.leases())
            .field("policy", &self.shared.policy)
            .field("lanes", &self.lanes.len())
            .finish_non_exhaustive()
    }
}

//! Keeps the leases of one process, as a state machine without I/O.
//!
//! A [`Manager`] has no thread, no clock, no connection and no source of
//! randomness. Its driver passes it the time and the demand, carries its requests
//! to a [`LeaseStore`](crate::lease::LeaseStore), and carries the answers back. There is
//! one request under way at most.
//!
//! # One grant
//! ```text
//!                positive reply to an acquisition
//!                            |
//!                            v    not needed for a whole lease duration
//!     renewed: its   +---> HELD ------------------------------> LAPSING
//!     end moves up   +----- |  <------------------------------     |
//!                           |           needed again               |
//!                           | Fenced, Ambiguous                    |
//!                           v                                      |
//!                       DRAINING                                   |
//!                           |                                      |
//!                           | the clock has passed its end         | the same
//!                           v                                      v
//!                       (closed)                       (closed, then released)
//! ```
//! While it is held a grant is renewed to the clock plus the lease duration, each time after a
//! tenth to three twentieths of the reach of the last reply. Any answer not in the diagram leaves
//! the grant as it is, and it is renewed later. [`Unavailable`](StoreError::Unavailable) is retried
//! after a backoff that all requests of the process share: the more ticks are left, the longer. All
//! other errors are retried at a slow rate. [`Denied`](StoreError::Denied) is one of them, because
//! passwords are changed. The confirmed ticks of a draining grant are used like any other's, and
//! its block is replaced by another. [`invalidate`](Manager::invalidate) removes the grant
//! immediately, from any state.
//!
//! # Out of reach
//! If both clocks, the store's and this machine's, were ahead, IDs were issued for that future
//! time. After both are corrected, nothing more can be borrowed until the clock reaches that time
//! again. If this takes longer than a lease duration, the current grants count as out of reach, in
//! any state. They keep following the diagram. Meanwhile the manager acquires replacements that
//! begin now. The first replacement within reach closes them. If the clock catches up first, they
//! count again. So a clock that is wrong for a moment costs no block, and a grant that is closed is
//! never returned to.
//!
//! # The manager
//! ```text
//!             Ambiguous                        release()
//!   ASKING --------------->  UNSURE                 |  from anywhere
//!          <---------------                         v
//!             a reply comes                     RELEASING ---> DONE
//! ```
//! In `ASKING` the manager sends the request that is overdue for longest: a renewal, or an
//! acquisition of as many blocks as are missing. In `UNSURE` it sends only `check`. If replies are
//! lost, each acquisition leaves its blocks without a holder, and each renewal costs a held block. So
//! it sends neither until a reply has arrived. If the reason is an overloaded store, this and the
//! longer backoff after an unknown outcome let it catch up.
//!
//! # Why it is right
//! Of the rules at the head of [`lease`](crate::lease), the stores keep their half, and
//! the manager keeps the client's:
//!
//! *S1.* A renewal names the end that the last positive reply named. A renewal with an unknown
//! outcome is never sent again, and no other renewal is sent for that grant. So no request rests on
//! a guessed end. A release does not cut the grant: the store leaves the mark where it is.
//!
//! *S2.* Grants enter the table in one place, and their ends move in one: where
//! a positive reply to the request under way is taken in. A reply that comes
//! after [`invalidate`](Manager::invalidate), or to no request, is dropped.
//!
//! *S3.* A grant is opened once, with its whole interval; later its end moves
//! up, never its start. The cursor is the generator's.
//!
//! *S4.* Two copies of a manager are two copies of the process. Both use the grants from before the
//! copy up to their confirmed ends, and both renew with the same end. The store accepts one renewal
//! and fences the other. Each later grant reaches only one copy. (The reply to a request in flight
//! at the copy can reach both.) Nothing in the manager distinguishes one copy from another, so
//! this is up to the driver:
//! * A forked child never drives its parent's manager. It has no renewal thread, and builds a
//!   manager of its own. Code called on that thread must not fork. If a signal handler forks on the
//!   renewal thread, that thread ends in the child after the request in flight.
//! * A hook that runs when a machine is resumed from a snapshot calls
//!   [`invalidate`](Manager::invalidate); then nothing is used twice. The
//!   answer to a request that was under way is dropped.
//!
//! *S8.* Every confirmation in a positive reply goes with every acquisition, also
//! after the grant was given up or closed: it stays true. A store that knows less
//! raises its floor in the same step. A renewal that is fenced for that reason is
//! followed by an acquisition at once.
//!
//! *S5, S6, S7.* Kept by the store. A refusal on account of them opens nothing
//! and extends nothing. An end is never assumed, only read from a reply, so it
//! lies within the horizon.
//!
//! The argument above uses no clock. The wall clock only decides what is requested and when a grant
//! counts as passed; the monotonic clock decides when to ask. A wrong clock costs service: requests
//! that are refused, or grants closed before their time.

mod agenda;
mod counts;
mod evidence;
mod exchange;
mod holding;
mod plan;
mod reach;
mod replies;
mod status;
mod timing;
mod width;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub use self::counts::{FenceCounts, LeaseCounts, RenewalCounts};
use self::evidence::Evidence;
pub use self::exchange::{Answer, Change, Demand, Moment, Request, Step};
use self::holding::Holding;
pub use self::plan::{LeasePlan, PlanError};
pub use self::status::{GrantState, GrantStatus, LeaseHealth, LeaseStatus};
use self::timing::{Backoff, Jitter, RenewTiming};
use self::width::Width;
use crate::layout::Layout;
use crate::lease::block::{Block, Epoch};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;

/// Keeps the leases of one process.
///
/// It decides what to ask of a store and when, and which grants may be used; the
/// [module](self) has its states and why it is right. Calls cost some
/// comparisons for each grant, and allocate only what they answer. A clone is
/// like a snapshot of the process: both go on as the same holder.
///
/// # Examples
/// A driver in full, on one thread:
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use ringflake::lease::protocol::{Change, Demand, Manager, Moment, Step};
/// use ringflake::lease::{
///     Fingerprint, History, Init, LeasePlan, LeaseStore, MemoryStore, Namespace,
/// };
/// use ringflake::{Layout, ManualClock};
///
/// let start = 1_760_000_000_000;
/// let clock = ManualClock::new(start);
/// let mut store = MemoryStore::new(Arc::new(clock.clone()));
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// store.init(&orders, &Init::new(History::New, start))?;
///
/// let mut manager = Manager::new(orders.clone(), LeasePlan::new(2), 42)?;
/// let mut elapsed = Duration::ZERO;
/// let demand = Demand { borrowed: Duration::ZERO, borrow_limit: Duration::from_secs(60), room: 8 };
/// let (mut opened, mut extended) = (0, 0);
/// // An hour.
/// while elapsed < Duration::from_secs(3600) {
///     let at = |elapsed: Duration| Moment { unix_ms: start + elapsed.as_millis() as u64, elapsed };
///     let (changes, step) = manager.next(at(elapsed), demand);
///     assert!(changes.is_empty(), "no grant is ever passed by the clock");
///     match step {
///         Step::Ask(request) => {
///             let answer = request.send(&mut store, &orders);
///             for change in manager.answer(at(elapsed), answer) {
///                 match change {
///                     Change::Opened(_) => opened += 1,
///                     Change::Extended(_) => extended += 1,
///                     other => panic!("{other:?}"),
///                 }
///             }
///         }
///         Step::Wait(wait) => {
///             elapsed += wait;
///             clock.advance(wait);
///         }
///         Step::Done => break,
///     }
/// }
/// assert_eq!(opened, 2);
/// // Each of the two every 60 to 90 seconds.
/// assert!((2 * 40..=2 * 60).contains(&extended), "{extended}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Manager {
    namespace: Namespace,
    plan: LeasePlan,
    timing: RenewTiming,
    jitter: Jitter,
    width: Width,
    holdings: Vec<Holding>,
    /// Closed, but not released yet.
    to_release: VecDeque<(Block, Epoch)>,
    /// The store's confirmations, for as long as the process lives.
    evidence: Evidence,
    mode: Mode,
    flight: Option<Flight>,
    backoff: Backoff,
    reach_ahead: Reach,
    acquire_at: Duration,
    reach: Duration,
    /// The latest end of all grants since the last invalidation.
    last_end: Option<u64>,
    expired_since_unix_ms: Option<u64>,
    store_failing: Option<Failing>,
    acquire_failing: Option<Failing>,
    counts: LeaseCounts,
}

/// The mode of the manager, as the head of this file draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// It sends the request that is overdue for longest.
    Asking,
    /// The outcome of the last request is unknown and nothing has come back since: it
    /// sends nothing but `check`.
    Unsure,
    /// It closes and releases everything.
    Releasing,
    /// It sends nothing any more.
    Done,
}

impl Mode {
    /// Whether no lease is wanted any more.
    fn is_leaving(self) -> bool {
        matches!(self, Self::Releasing | Self::Done)
    }
}

/// The request under way.
#[derive(Clone, Debug)]
struct Flight {
    request: Request,
    /// Whether its answer is to be ignored.
    void: bool,
}

/// Whether IDs can be issued on from the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    is_lost: bool,
    /// How far ahead IDs may lie, as of the last demand.
    borrow_limit: Duration,
}

/// The beginning of a failure, and its last error.
#[derive(Clone, Debug)]
struct Failing {
    since_unix_ms: u64,
    error: Arc<StoreError>,
}

impl Manager {
    /// A manager that holds nothing yet.
    ///
    /// `seed` only spreads the requests of many processes; it should differ
    /// between them, and needs no other quality.
    ///
    /// # Errors
    /// When the plan is not one; see [`LeasePlan::validate`].
    pub fn new(namespace: Namespace, plan: LeasePlan, seed: u64) -> Result<Self, PlanError> {
        plan.validate(&namespace)?;
        Ok(Self {
            timing: RenewTiming::new(plan.lease_duration),
            jitter: Jitter::new(seed),
            width: Width::new(&plan, &namespace),
            namespace,
            plan,
            holdings: Vec::new(),
            to_release: VecDeque::new(),
            evidence: Evidence::default(),
            mode: Mode::Asking,
            flight: None,
            backoff: Backoff::new(),
            reach_ahead: Reach::default(),
            acquire_at: Duration::ZERO,
            reach: Duration::ZERO,
            last_end: None,
            expired_since_unix_ms: None,
            store_failing: None,
            acquire_failing: None,
            counts: LeaseCounts::default(),
        })
    }

    /// The namespace that the grants are of.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The changes that time has made, and the next step.
    ///
    /// Apply the changes before doing the step. While a request is under way the
    /// step is to wait, and the driver waits for the answer.
    pub fn next(&mut self, at: Moment, demand: Demand) -> (Vec<Change>, Step) {
        let mut changes = Vec::new();
        self.pass_time(at, &mut changes);
        if self.flight.is_some() {
            let wait = self.until_something_passes(at);
            return (changes, Step::Wait(wait.unwrap_or(self.timing.period)));
        }
        let step = match self.mode {
            Mode::Asking | Mode::Unsure => {
                self.leave_what_is_replaced(at, &mut changes);
                self.follow_demand(at, demand);
                self.choose(at, demand)
            }
            Mode::Releasing => self.let_go(&mut changes),
            Mode::Done => Step::Done,
        };
        (changes, step)
    }

    /// Takes in the answer to the request under way. `at` is when it came, which
    /// may be long after [`next`](Self::next) asked.
    ///
    /// An answer to no request is dropped, and one of another kind than the
    /// request counts as lost.
    pub fn answer(&mut self, at: Moment, answer: Answer) -> Vec<Change> {
        let mut changes = Vec::new();
        if let Some(flight) = self.flight.take()
            && !flight.void
        {
            self.take_in(at, &flight.request, answer, &mut changes);
        }
        self.pass_time(at, &mut changes);
        changes
    }

    /// Gives up every grant at once, to acquire others: for a hook that runs when
    /// the process may be a copy, resumed from a snapshot.
    ///
    /// The answer to a request that is under way will be ignored. Nothing is
    /// released: the grants may be another copy's.
    pub fn invalidate(&mut self) -> Vec<Change> {
        if let Some(flight) = &mut self.flight {
            flight.void = true;
        }
        self.to_release.clear();
        self.acquire_at = Duration::ZERO;
        self.last_end = None;
        let revoked = self.holdings.drain(..);
        revoked.map(|held| Change::Revoked(held.grant)).collect()
    }

    /// Lets go of everything, for good: from now on [`next`](Self::next) closes
    /// the grants, then releases each that is certainly this process's, and is
    /// then [`Step::Done`].
    ///
    /// Releasing is optional: it frees the blocks for others sooner. If the
    /// store fails at it, the rest is not released.
    pub fn release(&mut self) {
        if self.mode != Mode::Done {
            self.mode = Mode::Releasing;
        }
    }

    /// The status of the leases, as of the last call. Allocates.
    pub fn status(&self) -> LeaseStatus {
        let failing = self
            .store_failing
            .as_ref()
            .or(self.acquire_failing.as_ref());
        LeaseStatus {
            grants: self
                .holdings
                .iter()
                .map(|held| GrantStatus {
                    grant: held.grant.clone(),
                    state: held.state,
                })
                .collect(),
            target: self.width.target,
            lease_duration: self.plan.lease_duration,
            reach: self.reach,
            expired_since_unix_ms: self.expired_since_unix_ms,
            counts: self.counts,
            health: LeaseHealth {
                failing_since_unix_ms: failing.map(|failing| failing.since_unix_ms),
                last_error: failing.map(|failing| Arc::clone(&failing.error)),
            },
        }
    }

    /// Closes the grants that the clock has passed, and reports when it has
    /// passed all of them. A grant that is held is not closed by that: it can
    /// still be renewed.
    fn pass_time(&mut self, at: Moment, changes: &mut Vec<Change>) {
        let layout = self.namespace.layout();
        let passed = |held: &mut Holding| !held.is_held() && held.left_ms(layout, at.unix_ms) == 0;
        for held in self.holdings.extract_if(.., passed) {
            if held.state == GrantState::Lapsing {
                self.to_release
                    .push_back((held.grant.block, held.grant.epoch));
            }
            changes.push(Change::Closed(held.grant));
        }
        match (self.is_in_force(at), self.expired_since_unix_ms) {
            (true, Some(_)) => {
                self.expired_since_unix_ms = None;
                changes.push(Change::Revived);
            }
            (false, None) if !self.mode.is_leaving() => {
                if let Some(end) = self.last_end {
                    let passed_unix_ms = self.layout().tick_start_unix_ms(end);
                    let since_unix_ms = passed_unix_ms.min(at.unix_ms);
                    self.expired_since_unix_ms = Some(since_unix_ms);
                    changes.push(Change::Expired { since_unix_ms });
                }
            }
            _ => {}
        }
    }

    /// Closes everything, then releases one block after the other.
    fn let_go(&mut self, changes: &mut Vec<Change>) -> Step {
        for held in self.holdings.drain(..) {
            if held.is_last {
                self.to_release
                    .push_back((held.grant.block, held.grant.epoch));
            }
            changes.push(Change::Closed(held.grant));
        }
        match self.to_release.pop_front() {
            Some((block, epoch)) => self.ask(Request::Release { block, epoch }),
            None => {
                self.mode = Mode::Done;
                Step::Done
            }
        }
    }

    /// Enters a mode, unless everything is being released: that is for good.
    fn enter(&mut self, mode: Mode) {
        if !self.mode.is_leaving() {
            self.mode = mode;
        }
    }

    fn layout(&self) -> &Layout {
        self.namespace.layout()
    }

    /// How many count for the target.
    fn held(&self) -> usize {
        self.holdings.iter().filter(|held| held.counts()).count()
    }

    fn within_reach(&mut self, state: GrantState) -> impl Iterator<Item = &mut Holding> {
        self.holdings
            .iter_mut()
            .filter(move |held| held.state == state && !held.out_of_reach)
    }

    /// Whether there is a grant whose end the clock has not passed.
    fn is_in_force(&self, at: Moment) -> bool {
        let left = |held: &Holding| held.left_ms(self.layout(), at.unix_ms);
        self.holdings.iter().any(|held| left(held) > 0)
    }
}

#[cfg(test)]
mod tests;

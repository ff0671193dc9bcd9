//! Parts of a generator without the rest of it, for the models in `loom-tests`.
//!
//! Exists only with the feature `loom`, and is not part of the crate's interface.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::filler::{FilledWait, Filler, FillerParts};
use super::policy::{AssistFill, FillCause};
use super::stripe::Stripe;
use super::waiters::{Supply, Waiters, Waiting};
use crate::cipher::Cipher;
use crate::clock::ManualClock;
use crate::id::Id;
use crate::layout::Layout;
use crate::lease::Lease;
use crate::per_core::stocks::Stocks;
use crate::ring::RingBuffer;
use crate::source::Source;
use crate::sync;
use crate::timeline::{ClaimPolicy, LaneIndex, Timeline};

/// The consumers of a generator that wait for a publication.
#[derive(Debug)]
pub struct WaitingRoom(Waiters);

impl WaitingRoom {
    /// Without a waiting consumer.
    #[allow(
        clippy::new_without_default,
        reason = "loom's objects are made in a model"
    )]
    pub fn new() -> Self {
        Self(Waiters::new())
    }

    /// To be called after a publication.
    pub fn notify(&self) {
        self.0.notify();
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Whether nobody waits, and no waker is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Waits until `attempt` gives something; `more` says whether there is
    /// something for another.
    pub fn wait<T>(&self, attempt: impl FnMut() -> Option<T>, more: impl Fn() -> bool) -> T {
        let given = self.0.wait(Duration::MAX, attempt, more);
        given.expect("the time is never over")
    }
}

/// A future that waits in a room for a ring to be filled.
#[derive(Debug)]
pub struct WaitingFuture<'a>(Waiting<'a, RingBuffer>);

impl Supply for RingBuffer {
    fn has_some(&self) -> bool {
        !self.is_empty()
    }

    fn is_forked(&self) -> bool {
        false
    }
}

impl<'a> WaitingFuture<'a> {
    /// To be polled.
    pub fn new(room: &'a WaitingRoom, ring: &'a RingBuffer) -> Self {
        Self(Waiting::new(&room.0, ring))
    }

    /// One poll.
    pub fn poll<T>(&mut self, waker: &Waker, attempt: impl FnMut() -> Option<T>) -> Poll<T> {
        self.0.poll(waker, attempt)
    }
}

/// The stripes of a generator without its producers: a thread that calls [`produce`](Self::produce)
/// is a producer for one round.
#[derive(Clone, Debug)]
pub struct Stripes(Arc<Filler>);

impl Stripes {
    /// Two IDs to a tick, and no encryption.
    fn layout() -> Layout {
        let builder = Layout::builder()
            .bits(30, 1, 1)
            .tick(Duration::from_secs(1));
        builder.build().expect("a possible layout")
    }

    /// Two full stripes of `slots` each, whose takes ask for a fill below `threshold`, and
    /// assist where that is more than 0 and `assists`. So many `ids` can be made in all.
    pub fn full(slots: usize, threshold: usize, assists: bool, ids: u64) -> Self {
        Self::made(slots, threshold, assists, ids, None)
    }

    /// The same with stocks of two cores, and without assists.
    pub fn stocked(slots: usize, threshold: usize, ids: u64) -> Self {
        Self::made(slots, threshold, false, ids, Self::stocks())
    }

    /// The same at a borrow limit: no more IDs than there are slots can be made until it is
    /// lifted, which never happens.
    pub fn stocked_at_the_limit(slots: usize) -> Self {
        let ids = 2 * slots as u64;
        Self::limited(slots, 0, false, 2 * ids, Self::stocks(), ids / 2 - 1)
    }

    fn stocks() -> Option<Stocks> {
        #[cfg(loom)]
        return Some(Stocks::in_a_model(2));
        #[cfg(not(loom))]
        Stocks::new().expect("a few pages")
    }

    fn made(
        slots: usize,
        threshold: usize,
        assists: bool,
        ids: u64,
        stocks: Option<Stocks>,
    ) -> Self {
        Self::limited(slots, threshold, assists, ids, stocks, u64::MAX)
    }

    fn limited(
        slots: usize,
        threshold: usize,
        assists: bool,
        ids: u64,
        stocks: Option<Stocks>,
        borrow_limit: u64,
    ) -> Self {
        let assist = assists.then_some(AssistFill::below(100));
        let stripes = Stripe::one_per_core(2, 2 * slots, 2 * threshold, assist);
        let layout = Self::layout();
        let lease = Lease::new(layout, 0..1, 0..ids / 2).expect("a possible lease");
        let policy = ClaimPolicy {
            borrow_limit,
            follows_clock: true,
            serves_the_past: false,
        };
        let clock = ManualClock::new(layout.epoch_unix_ms());
        let timeline = Timeline::new(&lease, 0, Arc::new(clock), policy).expect("a page");
        let filler = Filler::new(FillerParts {
            stripes: stripes.expect("a possible capacity"),
            stocks,
            source: Source::new(timeline, Cipher::plain()),
            schedule: None,
            on_full: None,
            producers: 1,
        });
        filler.fill(FillCause::Padding).expect("IDs for all slots");
        Self(Arc::new(filler))
    }

    /// A take.
    pub fn take(&self) -> Option<Id> {
        let at_once = (self.0).take_at_once(self.0.stocks(), self.0.stripes());
        at_once.or_else(|| self.0.take_slowly())
    }

    /// The same for a consumer who would else get none.
    pub fn take_last(&self) -> Option<Id> {
        let mut id = [Id::default()];
        (self.0.take_last(&mut id) > 0).then_some(id[0])
    }

    /// A batch of up to `want`.
    pub fn take_batch(&self, want: usize) -> Vec<Id> {
        let mut ids = vec![Id::default(); want];
        let count = self.0.take_batch(&mut ids);
        ids.truncate(count);
        ids
    }

    /// A take that has found all stripes dry, and makes its ID.
    pub fn make_in_place(&self) -> Option<Id> {
        let mut id = [Id::default()];
        self.0.make_in_place(&mut id).ok().map(|_| id[0])
    }

    /// Puts back IDs that were taken, into the stripe of this core first.
    pub fn put_back(&self, ids: &[Id]) {
        let mark = self.0.recall_mark();
        assert_eq!(self.0.put_back(ids, mark), ids.len(), "there is room");
    }

    /// A take that waits; none if there will be none.
    pub fn wait(&self) -> Option<Id> {
        let mut id = [Id::default()];
        let taken = self.0.wait(Duration::MAX, || self.0.attempt(&mut id));
        let taken = taken.expect("the time is never over");
        taken.is_ok().then_some(id[0])
    }

    /// The same as a future.
    pub fn taking(&self) -> StripesTake<'_> {
        StripesTake(&self.0, self.0.waiting())
    }

    /// A future that waits until there is an ID, and takes none.
    pub fn ready(&self) -> StripesReady<'_> {
        StripesReady(FilledWait::new(&self.0))
    }

    /// One round of a producer: serves what is wanted, if anything is.
    pub fn produce(&self) {
        let wanted = self.0.requests().wanted();
        if let Some(cause) = wanted.cause()
            && self.0.serve(cause, wanted).is_err()
        {
            // The requests stay open, and those who wait look again.
            self.0.wake_waiters();
        }
    }

    /// Extends the lease, so that so many IDs can be made in all.
    pub fn extend(&self, ids: u64) {
        let timeline = self.0.source().timeline();
        timeline.extend(LaneIndex::FIRST, ids / 2);
    }

    /// Whether no thread has the permission to assist.
    pub fn may_assist(&self) -> bool {
        let mut stripes = self.0.stripes().iter();
        stripes.all(|stripe| !stripe.assist.is_taken())
    }

    /// Ends the lease, and recalls what was made from it.
    pub fn invalidate(&self) {
        self.0.source().timeline().close_all();
        self.recall();
    }

    /// Recalls what was made. More can be.
    pub fn recall(&self) {
        while self.0.recall() {
            sync::back_off(0);
        }
    }

    /// Fills all stripes, and returns whether there were IDs for that.
    pub fn fill(&self) -> bool {
        self.0.fill(FillCause::Padding).is_ok()
    }

    /// IDs in all stripes.
    pub fn level(&self) -> usize {
        self.0.level()
    }

    /// IDs that have gone out of the stripes and stocks to consumers, and those that were
    /// retired, as they are counted.
    pub fn issued_and_retired(&self) -> (u64, u64) {
        let taken = self.0.taken();
        let kept = taken.moved + self.0.in_stocks() as u64;
        let given_up = self.0.counters().given_up.load(Relaxed);
        (taken.all - taken.retired - kept, taken.retired + given_up)
    }

    /// IDs in the stocks of all cores.
    pub fn in_stocks(&self) -> usize {
        self.0.in_stocks()
    }

    /// R4: whether each stripe has as many IDs as its threshold, or a request that a
    /// producer will find.
    pub fn are_filled_or_wanted(&self) -> bool {
        let is_wanted = self.0.requests().wanted().includes(FillCause::Threshold);
        let mut stripes = self.0.stripes().iter();
        stripes.all(|stripe| {
            stripe.ring.len() as u64 >= stripe.threshold || is_wanted && stripe.request.is_open()
        })
    }
}

/// A take of [`Stripes`] that waits as a future.
#[derive(Debug)]
pub struct StripesTake<'a>(&'a Filler, Waiting<'a, Filler>);

impl StripesTake<'_> {
    /// One poll: an ID, or none if there will be none.
    pub fn poll(&mut self, waker: &Waker) -> Poll<Option<Id>> {
        let mut id = [Id::default()];
        let taken = self.1.poll(waker, || self.0.attempt(&mut id));
        taken.map(|taken| taken.is_ok().then_some(id[0]))
    }
}

/// A future that waits until [`Stripes`] have an ID.
#[derive(Debug)]
pub struct StripesReady<'a>(FilledWait<'a>);

impl StripesReady<'_> {
    /// One poll, with a lease in force or without.
    pub fn poll(&mut self, is_leased: bool, waker: &Waker) -> Poll<bool> {
        self.0.poll(is_leased.then_some(true), waker)
    }
}

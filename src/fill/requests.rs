//! Requests for fills, and how producers sleep until there is one.
//!
//! # State
//!
//! The word `wanted` has a bit for each cause of a fill, a bit to stop, and in its upper
//! half a count of *nudges*. A nudge has producers that pause after a refusal try again.
//! The word `idle` has a bit for each producer that is *idle*: asleep until something is
//! wanted, and not woken yet.
//!
//! Which stripes want a fill is in a word of each stripe, its *request*, which its takes
//! read without touching what other cores write. The bit for threshold fills in `wanted`
//! says that some stripe's request may be open.
//!
//! ```text
//!   request closed --a take leaves too few: open it, set the bit, wake one--> open
//!         ^                                                                     |
//!         +------- a producer fills the stripe, closes it, looks at the level --+
//! ```
//!
//! ```text
//!   awake --sleep: set idle bit, then look at `wanted`--> idle
//!     ^                                                     | the waker clears the idle
//!     +------- unparked, or the time is over ---------------+ bit, then unparks
//!
//!   awake --pause: look at `wanted` for a nudge--> pausing --nudge, or time--> awake
//! ```
//!
//! A thread that wants a producer clears an idle bit that it has found, and unparks that
//! producer only if it was the one that cleared the bit. So two threads that want a
//! producer at the same time wake two. A producer that is stuck in a clock is not idle,
//! and is never chosen.
//!
//! # Why no wake-up is lost
//!
//! A producer marks itself idle and then looks at `wanted`. A thread that raises a request
//! changes `wanted` and then looks for idle bits. Both access `wanted` with a
//! read-modify-write. The two have one order: either the producer's comes later and
//! sees the request, or the other's comes later, acquires the idle bit with it, and
//! wakes the producer.
//!
//! A producer that has served the open requests it has found clears the bit and then looks
//! at all requests once more. A take opens its stripe's request and then sets the bit. Both
//! change `wanted` by a read-modify-write. If the take's comes first, the producer
//! acquires the open request with it and sees that, unless another producer has closed it
//! since, which then looks at that stripe's level. If the producer's comes first, the bit
//! stays set, and the take wakes a producer.
//!
//! The same holds for a nudge. A producer that pauses compares the count with
//! the one it read before the fill that was refused, and a nudge is counted before
//! any thread is unparked. It holds for the thread handles, too: a producer registers its
//! own before it first looks at `wanted`, so a nudge either finds the handle, or is seen.
//!
//! The thread's park token is only a hint. Other people's code that runs
//! in a producer, a clock or a subscriber, may consume a token or leave one behind. No
//! such code runs between a look at `wanted` and the parking that follows, and a producer
//! that wakes without a reason looks again.

use std::sync::OnceLock;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::policy::FillCause;
use crate::sync;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::thread::{self, Thread};

/// The open requests, and the producers that sleep until there is one.
///
/// A word of bits is a queue that is bounded and free of duplicates by construction.
#[derive(Debug)]
pub(crate) struct Requests {
    wanted: CachePadded<AtomicU64>,
    /// One bit for each producer that is idle. The filler's tests set and read it too.
    pub(super) idle: CachePadded<AtomicU64>,
    /// Each registered by its thread, before that first sleeps.
    producers: Box<[OnceLock<Thread>]>,
}

/// The request for a fill of one stripe, which its takes open.
#[derive(Debug)]
pub(crate) struct StripeRequest(CachePadded<AtomicU64>);

impl StripeRequest {
    pub(super) fn new() -> Self {
        Self(CachePadded::new(AtomicU64::new(0)))
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        // Relaxed: if the producer did not count the caller's take, the caller has
        // acquired the closed request through the ring's `cursor`.
        self.0.load(Relaxed) != 0
    }

    /// Marks the request as served. The caller must look at the level afterwards.
    pub(super) fn close(&self) {
        // Relaxed: released to the takes by `settled_level`, which follows.
        self.0.swap(0, Relaxed);
    }

    /// Puts back a request that could not be served.
    pub(super) fn reopen(&self) {
        // Relaxed: released by `Requests::reopen`, which follows.
        self.0.swap(1, Relaxed);
    }
}

/// The open requests at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted(u64);

impl Wanted {
    const STOP: u64 = 1 << 31;
    /// One nudge; the count wraps at the top of the word.
    const NUDGE: u64 = 1 << 32;
    /// All bits but the nudges.
    const BITS: u64 = Self::NUDGE - 1;

    pub(crate) fn stop(self) -> bool {
        self.0 & Self::STOP != 0
    }

    pub(crate) fn includes(self, cause: FillCause) -> bool {
        self.0 & cause.bit() != 0
    }

    /// These requests and one for `cause`.
    pub(crate) fn with(self, cause: FillCause) -> Self {
        Self(self.0 | cause.bit())
    }

    /// The most pressing cause, if there is any.
    pub(crate) fn cause(self) -> Option<FillCause> {
        FillCause::ALL
            .into_iter()
            .find(|&cause| self.includes(cause))
    }

    /// The requests for fills, and nothing else.
    fn causes(self) -> u64 {
        self.0 & Self::BITS & !Self::STOP
    }

    fn nudges(self) -> u64 {
        self.0 / Self::NUDGE
    }
}

impl FillCause {
    const fn bit(self) -> u64 {
        1 << self as u64
    }
}

impl Requests {
    /// For up to `producers` threads, at most 64.
    pub(crate) fn new(producers: usize) -> Self {
        Self {
            wanted: CachePadded::new(AtomicU64::new(0)),
            idle: CachePadded::new(AtomicU64::new(0)),
            producers: (0..producers).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Registers this thread as producer `index`; the first call counts.
    pub(crate) fn register(&self, index: usize) {
        // A second call would come from a second set of producers, and nothing in
        // this crate starts one.
        let _ = self.producers[index].set(thread::current());
    }

    /// Asks for a fill, unless one is asked for already.
    ///
    /// Lock-free: one load while a request is open. The first request of a
    /// crossing wakes one idle producer, with one futex call. That producer
    /// wakes another if there is more to do than a block.
    #[inline]
    pub(crate) fn request(&self, cause: FillCause) {
        // Relaxed: if the producer did not count the caller's take, the caller has
        // acquired the cleared bit through the ring's `cursor`.
        if self.wanted.load(Relaxed) & cause.bit() == 0 {
            self.raise(cause.bit());
        }
    }

    /// Asks for a fill of a stripe, unless that is asked for already.
    ///
    /// Lock-free: one load of the stripe's own word while a request is open.
    #[inline]
    pub(crate) fn request_for(&self, stripe: &StripeRequest) {
        if !stripe.is_open() {
            self.open(stripe);
        }
    }

    /// Asks for a fill of a stripe, and wakes a producer even if that is asked for already:
    /// the producer that has taken that request on may be stuck, or the take that has
    /// opened it be stopped before it has set the bit.
    ///
    /// Lock-free: three loads while the bit is set and no producer is idle.
    #[inline]
    pub(crate) fn insist_for(&self, stripe: &StripeRequest) {
        if !stripe.is_open() {
            self.open(stripe);
            return;
        }
        self.request(FillCause::Threshold);
        // Relaxed: an idle bit that is missed here is seen by the next take that
        // finds nothing.
        if self.idle.load(Relaxed) != 0 {
            self.wake_one();
        }
    }

    #[cold]
    fn open(&self, stripe: &StripeRequest) {
        // Relaxed: released by the next line. A read-modify-write, so that one of several
        // takes goes on.
        if stripe.0.swap(1, Relaxed) == 0 {
            // AcqRel: pairs with `sleep` and with `settle`.
            self.wanted.fetch_or(FillCause::Threshold.bit(), AcqRel);
            self.wake_one();
        }
    }

    /// Asks the producers to stop.
    pub(crate) fn stop(&self) {
        self.wanted.fetch_or(Wanted::STOP, AcqRel);
        self.unpark_all();
    }

    /// Wakes every producer, also those that pause after a refusal.
    pub(crate) fn nudge(&self) {
        // AcqRel: pairs with `register` and with the look in `pause`.
        self.wanted.fetch_add(Wanted::NUDGE, AcqRel);
        self.unpark_all();
    }

    fn unpark_all(&self) {
        self.producers
            .iter()
            .filter_map(OnceLock::get)
            .for_each(Thread::unpark);
    }

    #[cold]
    fn raise(&self, bit: u64) {
        // AcqRel: pairs with `sleep`.
        if self.wanted.fetch_or(bit, AcqRel) & bit == 0 {
            self.wake_one();
        }
    }

    /// Wakes one idle producer, if there is any, to look at `wanted`.
    #[cold]
    pub(crate) fn wake_one(&self) {
        // Relaxed: ordered by `wanted`, see above. A producer that is awake looks at
        // `wanted` before it sleeps.
        let idle = self.idle.load(Relaxed);
        let woken = self
            .claim_one(idle)
            .and_then(|index| self.producers.get(index));
        if let Some(thread) = woken.and_then(OnceLock::get) {
            thread.unpark();
        }
    }

    /// Clears the idle bit of one producer and returns its index: of one that was
    /// `idle`, or of one that is now, where other threads were faster.
    fn claim_one(&self, mut idle: u64) -> Option<usize> {
        while idle != 0 {
            let lowest = idle & idle.wrapping_neg();
            // Acquire: pairs with `sleep`. A thread that claims the bit finds the
            // producer's handle, also if it has changed nothing in `wanted`.
            let before = self.idle.fetch_and(!lowest, Acquire);
            if before & lowest != 0 {
                return Some(lowest.trailing_zeros() as usize);
            }
            idle = before;
        }
        None
    }

    /// Puts producer `index` to sleep until something is wanted, for at most `timeout`.
    pub(crate) fn sleep(&self, index: usize, timeout: Option<Duration>) {
        let bit = 1 << index;
        // Release: pairs with `claim_one`, for the handle. Otherwise ordered by the next
        // line.
        self.idle.fetch_or(bit, Release);
        // Read by adding nothing: a request that was raised before is seen
        // here, and a thread that raises one after this sees the idle bit.
        if self.wanted.fetch_or(0, AcqRel) & Wanted::BITS == 0 {
            sync::park(timeout);
        }
        // Relaxed: until this is seen, a wake-up may be wasted on this thread,
        // which is about to look anyway.
        self.idle.fetch_and(!bit, Relaxed);
    }

    /// Puts a producer whose fill failed to sleep for `pause`, or until a nudge.
    /// `before` is what it read before that fill: a nudge since then is not slept
    /// through.
    pub(crate) fn pause(&self, before: Wanted, pause: Duration) {
        // Read by adding nothing, as in `sleep`.
        let now = Wanted(self.wanted.fetch_or(0, AcqRel));
        if now.nudges() == before.nudges() && !now.stop() {
            sync::park(Some(pause));
        }
    }

    /// The open requests. May miss one that is raised at this moment; `sleep` does not.
    pub(crate) fn wanted(&self) -> Wanted {
        // Acquire: pairs with `nudge`. A fill after a nudge that is counted here finds
        // the reason for that nudge; else `pause` would sleep through it.
        Wanted(self.wanted.load(Acquire))
    }

    /// Marks the requests of `served` as done. The caller must look at the
    /// level afterwards.
    pub(crate) fn settle(&self, served: Wanted) {
        // AcqRel: released to the takes by `settled_level`, which follows.
        self.wanted.fetch_and(!served.causes(), AcqRel);
    }

    /// Puts back requests that could not be served, without waking a producer:
    /// the caller tries again itself, and wakes another if it panicked.
    pub(crate) fn reopen(&self, unserved: Wanted) {
        self.wanted.fetch_or(unserved.causes(), AcqRel);
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod placement {
    use super::*;
    use crate::placement::assert_apart;

    /// The first take of a crossing writes `wanted`, and looks for who is `idle`.
    #[test]
    fn requests() {
        assert_apart!(Requests { [wanted] [idle] [producers] });
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use super::*;
    use ringflake_kit::eventually;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    /// Long enough that a test which waits for it has failed.
    const HOUR: Duration = Duration::from_secs(3600);

    fn idle(requests: &Requests) -> u64 {
        requests.idle.load(Relaxed)
    }

    #[test]
    fn a_producer_that_wakes_by_itself_is_not_idle() {
        let requests = Requests::new(2);
        requests.register(0);
        requests.sleep(0, Some(Duration::from_nanos(1)));
        assert_eq!(idle(&requests), 0);
    }

    #[test]
    fn each_wake_up_goes_to_another_idle_producer() {
        let requests = Requests::new(3);
        for index in 0..3 {
            requests.register(index);
        }
        let stripe = StripeRequest::new();
        requests.idle.store(0b110, Relaxed);
        requests.request_for(&stripe);
        assert_eq!(idle(&requests), 0b100);
        requests.request_for(&stripe);
        assert_eq!(idle(&requests), 0b100, "one crossing is one request");
        requests.insist_for(&stripe);
        assert_eq!(idle(&requests), 0);
        requests.insist_for(&stripe);
        assert_eq!(idle(&requests), 0);
    }

    #[test]
    fn one_request_for_all_stripes_wakes_one_producer() {
        let requests = Requests::new(3);
        requests.idle.store(0b110, Relaxed);
        for _ in 0..2 {
            requests.request(FillCause::Padding);
            assert_eq!(idle(&requests), 0b100);
            assert_eq!(requests.wanted().cause(), Some(FillCause::Padding));
        }
        requests.raise(FillCause::Padding.bit());
        assert_eq!(idle(&requests), 0b100, "another thread was faster");
    }

    #[test]
    fn each_stripe_that_asks_wakes_a_producer() {
        let requests = Requests::new(3);
        for index in 0..3 {
            requests.register(index);
        }
        requests.idle.store(0b111, Relaxed);
        let stripes = [StripeRequest::new(), StripeRequest::new()];
        for (stripe, left) in stripes.iter().zip([0b110, 0b100]) {
            requests.request_for(stripe);
            assert!(stripe.is_open());
            assert_eq!(idle(&requests), left);
        }
        assert_eq!(requests.wanted().cause(), Some(FillCause::Threshold));
    }

    #[test]
    fn a_producer_that_another_has_woken_is_passed_over() {
        let requests = Requests::new(3);
        requests.idle.store(0b110, Relaxed);
        assert_eq!(requests.claim_one(0b111), Some(1));
        assert_eq!(requests.claim_one(0b111), Some(2));
        assert_eq!(requests.claim_one(0b111), None);
        assert_eq!(idle(&requests), 0);
    }

    #[test]
    fn insisting_raises_a_request_that_is_not_open() {
        let requests = Requests::new(1);
        let stripe = StripeRequest::new();
        requests.insist_for(&stripe);
        assert!(stripe.is_open());
        assert_eq!(requests.wanted().cause(), Some(FillCause::Threshold));
    }

    /// A take that has opened it may be stopped before it has set the bit.
    #[test]
    fn r3_insisting_sets_the_bit_of_a_request_that_is_open() {
        let requests = Requests::new(1);
        let stripe = StripeRequest::new();
        stripe.reopen();
        requests.request_for(&stripe);
        assert_eq!(requests.wanted().cause(), None);
        requests.insist_for(&stripe);
        assert_eq!(requests.wanted().cause(), Some(FillCause::Threshold));
    }

    #[test]
    fn nudges_are_no_requests() {
        let requests = Requests::new(1);
        requests.nudge();
        let wanted = requests.wanted();
        assert_eq!(wanted.cause(), None);
        assert!(!wanted.stop());
        requests.reopen(wanted);
        assert_eq!(requests.wanted(), wanted, "not counted twice");
        requests.request(FillCause::Padding);
        requests.settle(requests.wanted());
        assert_eq!(requests.wanted(), wanted);
    }

    #[test]
    fn settling_leaves_the_stop_and_other_requests() {
        let requests = Requests::new(1);
        requests.request(FillCause::Threshold);
        let served = requests.wanted();
        requests.request(FillCause::Scheduled);
        requests.stop();
        requests.settle(served);
        let left = requests.wanted();
        assert!(left.stop());
        assert_eq!(left.cause(), Some(FillCause::Scheduled));
    }

    /// Starts producer `index`, which runs `body` once. The number becomes 1 when that is over.
    fn sleeper(
        requests: &Arc<Requests>,
        index: usize,
        body: impl FnOnce(&Requests) + Send + 'static,
    ) -> (Arc<AtomicUsize>, std::thread::JoinHandle<()>) {
        let done = Arc::new(AtomicUsize::new(0));
        let thread = {
            let (requests, done) = (Arc::clone(requests), Arc::clone(&done));
            std::thread::spawn(move || {
                requests.register(index);
                body(&requests);
                done.store(1, Relaxed);
            })
        };
        (done, thread)
    }

    #[track_caller]
    fn assert_over((done, thread): (Arc<AtomicUsize>, std::thread::JoinHandle<()>)) {
        eventually("the sleep is over", || done.load(Relaxed) == 1);
        thread.join().unwrap();
    }

    #[test]
    fn each_producer_has_a_bit_of_its_own() {
        let requests = Arc::new(Requests::new(3));
        let asleep = sleeper(&requests, 2, |requests| {
            while requests.wanted().cause().is_none() {
                requests.sleep(2, Some(HOUR));
            }
        });
        eventually("it is idle", || idle(&requests) == 0b100);
        requests.request(FillCause::Threshold);
        assert_over(asleep);
        assert_eq!(idle(&requests), 0);
    }

    #[test]
    fn a_nudge_ends_a_pause() {
        let requests = Arc::new(Requests::new(1));
        let before = requests.wanted();
        let asleep = sleeper(&requests, 0, move |requests| {
            while requests.wanted().nudges() == before.nudges() {
                requests.pause(before, HOUR);
            }
        });
        eventually("it is registered", || requests.producers[0].get().is_some());
        requests.nudge();
        assert_over(asleep);
    }

    #[test]
    fn a_nudge_before_a_producer_is_registered_is_seen() {
        let requests = Arc::new(Requests::new(1));
        let before = requests.wanted();
        requests.nudge();
        assert_over(sleeper(&requests, 0, move |requests| {
            requests.pause(before, HOUR)
        }));
    }

    #[test]
    fn a_nudge_whose_token_is_consumed_is_seen() {
        let requests = Arc::new(Requests::new(1));
        let before = requests.wanted();
        assert_over(sleeper(&requests, 0, move |requests| {
            requests.nudge();
            // As a subscriber may do that waits for something of its own.
            std::thread::park();
            requests.pause(before, HOUR);
        }));
    }

    #[test]
    fn a_stop_is_seen_before_a_sleep() {
        let requests = Arc::new(Requests::new(1));
        let before = requests.wanted();
        requests.stop();
        assert_over(sleeper(&requests, 0, move |requests| {
            requests.pause(before, HOUR);
            requests.sleep(0, None);
        }));
    }
}

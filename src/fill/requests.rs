//! What consumers ask of the producers, and how those sleep and are woken.
//!
//! # State
//!
//! One word says what is wanted: a bit for each cause of a fill, one to stop, and
//! in its upper half a count of *nudges*, which tell producers that rest after a
//! refusal to try again. A second word has a bit for each producer that is *idle*:
//! asleep until something is wanted, and not woken yet.
//!
//! ```text
//!   awake --sleep: idle bit set, then `wanted` looked at--> idle
//!     ^                                                     | idle bit cleared by the
//!     +------- unparked, or the nap is over ----------------+ one who unparks it
//!
//!   awake --pause: `wanted` looked at for a nudge--> pausing --nudge, or time--> awake
//! ```
//!
//! Whoever wants a producer clears the idle bit that it has found, and only the one
//! who did unparks the thread. So two that want one at the same time wake two, and
//! one that is stuck in a clock, not being idle, is never chosen.
//!
//! # Why no wake-up is lost
//!
//! A producer marks itself idle and then looks at `wanted`; whoever raises a request
//! changes `wanted` and then looks for idle bits. Both touch `wanted` with a
//! read-modify-write. They have one order: either the producer's comes later and
//! sees the request, or the other's comes later, acquires the idle bit with it, and
//! wakes. The same holds for a nudge: a producer that pauses compares the count with
//! the one it read before the fill that was refused, and a nudge is counted before
//! anybody is unparked. And for the threads' names: a producer enters its own before
//! it first looks at `wanted`, so a nudge either finds the name, or is seen.
//!
//! The thread's own token is no more than a hint here. Other people's code that runs
//! in a producer, as a clock or a subscriber, may use up a token or leave one over:
//! between a look at `wanted` and the parking that follows there is none, and one
//! that wakes without a reason looks again.

use std::sync::OnceLock;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::policy::FillCause;
use crate::sync;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::thread::{self, Thread};

/// What the producers are asked to do.
///
/// A word of bits is a queue that is bounded and deduplicated by itself.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The bits of [`Wanted`].
    wanted: CachePadded<AtomicU64>,
    /// The producers that sleep until something is wanted: one bit each. The filler's
    /// tests set and read it too.
    pub(super) idle: CachePadded<AtomicU64>,
    /// Each entered by its thread, before that can sleep.
    producers: Box<[OnceLock<Thread>]>,
}

/// A copy of the requests at one moment.
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
    /// For up to `producers` threads, 64 at the most.
    pub(crate) fn new(producers: usize) -> Self {
        Self {
            wanted: CachePadded::new(AtomicU64::new(0)),
            idle: CachePadded::new(AtomicU64::new(0)),
            producers: (0..producers).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Enters this thread as producer `index`; the first call counts.
    pub(crate) fn register(&self, index: usize) {
        // A second call would come from a second set of producers, which
        // nothing in this crate starts.
        let _ = self.producers[index].set(thread::current());
    }

    /// Asks for a fill, unless one is asked for already.
    ///
    /// Lock-free: a load while a request is open. The first request of a
    /// crossing wakes one producer that sleeps, with one futex call; that one
    /// wakes another if there is more to do than a block.
    #[inline]
    pub(crate) fn request(&self, cause: FillCause) {
        // Relaxed: a caller whose take the producer did not count has
        // acquired the cleared bit through the ring's `cursor`.
        if self.wanted.load(Relaxed) & cause.bit() == 0 {
            self.raise(cause.bit());
        }
    }

    /// Asks for a fill, and wakes a producer even if one is asked for already:
    /// the one that has taken it on may be stuck.
    ///
    /// Lock-free: two loads while no producer is idle.
    #[inline]
    pub(crate) fn insist(&self, cause: FillCause) {
        // Relaxed: as in `request`. Of two that are idle or not by a hair, the
        // next take that finds nothing sees it.
        if self.wanted.load(Relaxed) & cause.bit() == 0 {
            self.raise(cause.bit());
        } else if self.idle.load(Relaxed) != 0 {
            self.wake_one();
        }
    }

    /// Tells the producers to end.
    pub(crate) fn stop(&self) {
        self.wanted.fetch_or(Wanted::STOP, AcqRel);
        self.unpark_all();
    }

    /// Wakes every producer, also those that rest after a refusal.
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

    /// Wakes one of the producers that are idle, to look at what is wanted.
    #[cold]
    pub(crate) fn wake_one(&self) {
        // Relaxed: ordered by the word of requests, see above. Of those that
        // are awake each looks at it before it sleeps.
        let idle = self.idle.load(Relaxed);
        let woken = self
            .claim_one(idle)
            .and_then(|index| self.producers.get(index));
        if let Some(thread) = woken.and_then(OnceLock::get) {
            thread.unpark();
        }
    }

    /// Clears the idle bit of a producer and names it: of those that were `idle`, or
    /// of those that are now, where somebody else was faster.
    fn claim_one(&self, mut idle: u64) -> Option<usize> {
        while idle != 0 {
            let lowest = idle & idle.wrapping_neg();
            // Acquire: pairs with `sleep`. Whoever claims the bit finds the thread's
            // name, also where it has changed nothing in the word of requests.
            let before = self.idle.fetch_and(!lowest, Acquire);
            if before & lowest != 0 {
                return Some(lowest.trailing_zeros() as usize);
            }
            idle = before;
        }
        None
    }

    /// Puts producer `index` to sleep until something is wanted, or for `nap`.
    pub(crate) fn sleep(&self, index: usize, timeout: Option<Duration>) {
        let bit = 1 << index;
        // Release: pairs with `wake_one`, for the name. Else ordered by the next line.
        self.idle.fetch_or(bit, Release);
        // Read by adding nothing: a request that was raised before is seen
        // here, and whoever raises one after this sees the idle bit.
        if self.wanted.fetch_or(0, AcqRel) & Wanted::BITS == 0 {
            sync::park(timeout);
        }
        // Relaxed: until this is seen, a wake-up may be spent on this thread,
        // which is about to look anyway.
        self.idle.fetch_and(!bit, Relaxed);
    }

    /// Lets a producer whose fill failed rest for `pause`, or until somebody
    /// nudges. `before` is what it read before that fill: a nudge since then is not
    /// slept through.
    pub(crate) fn pause(&self, before: Wanted, pause: Duration) {
        // Read by adding nothing, as in `sleep`.
        let now = Wanted(self.wanted.fetch_or(0, AcqRel));
        if now.nudges() == before.nudges() && !now.stop() {
            sync::park(Some(pause));
        }
    }

    /// What is wanted. May miss what is raised at this moment; `sleep` will not.
    pub(crate) fn wanted(&self) -> Wanted {
        // Acquire: pairs with `nudge`. A fill that comes after a nudge which is
        // counted here finds what was nudged for, or `pause` would sleep through it.
        Wanted(self.wanted.load(Acquire))
    }

    /// Marks the requests of `served` as done. The caller must look at the
    /// level afterwards.
    pub(crate) fn settle(&self, served: Wanted) {
        // AcqRel: released to the takes by `settled_level`, which follows.
        self.wanted.fetch_and(!served.causes(), AcqRel);
    }

    /// Puts back requests that could not be served, without waking anybody:
    /// the caller tries again itself, and wakes another where it is to blame.
    pub(crate) fn reopen(&self, unserved: Wanted) {
        self.wanted.fetch_or(unserved.causes(), AcqRel);
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
        requests.idle.store(0b110, Relaxed);
        requests.request(FillCause::Threshold);
        assert_eq!(idle(&requests), 0b100);
        requests.request(FillCause::Threshold);
        assert_eq!(idle(&requests), 0b100, "one crossing is one request");
        requests.insist(FillCause::Threshold);
        assert_eq!(idle(&requests), 0);
        requests.insist(FillCause::Threshold);
        assert_eq!(idle(&requests), 0);
    }

    #[test]
    fn one_whom_another_has_woken_is_passed_over() {
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
        requests.insist(FillCause::Threshold);
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

    /// Starts a producer that runs `body` once, and returns when that was over.
    fn sleeper(
        requests: &Arc<Requests>,
        body: impl FnOnce(&Requests) + Send + 'static,
    ) -> (Arc<AtomicUsize>, std::thread::JoinHandle<()>) {
        let done = Arc::new(AtomicUsize::new(0));
        let thread = {
            let (requests, done) = (Arc::clone(requests), Arc::clone(&done));
            std::thread::spawn(move || {
                requests.register(0);
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
    fn a_request_wakes_an_idle_producer() {
        let requests = Arc::new(Requests::new(1));
        let asleep = sleeper(&requests, |requests| {
            while requests.wanted().cause().is_none() {
                requests.sleep(0, Some(HOUR));
            }
        });
        eventually("it is idle", || idle(&requests) == 1);
        requests.request(FillCause::Threshold);
        assert_over(asleep);
    }

    #[test]
    fn each_producer_has_a_bit_of_its_own() {
        let requests = Arc::new(Requests::new(3));
        let thread = {
            let requests = Arc::clone(&requests);
            std::thread::spawn(move || {
                requests.register(2);
                while requests.wanted().cause().is_none() {
                    requests.sleep(2, Some(HOUR));
                }
            })
        };
        eventually("it is idle", || idle(&requests) == 0b100);
        requests.request(FillCause::Threshold);
        thread.join().unwrap();
        assert_eq!(idle(&requests), 0);
    }

    #[test]
    fn a_nudge_ends_a_pause() {
        let requests = Arc::new(Requests::new(1));
        let before = requests.wanted();
        let asleep = sleeper(&requests, move |requests| {
            while requests.wanted().nudges() == before.nudges() {
                requests.pause(before, HOUR);
            }
        });
        eventually("it has a name", || requests.producers[0].get().is_some());
        requests.nudge();
        assert_over(asleep);
    }

    #[test]
    fn a_nudge_before_a_producer_has_a_name_is_not_slept_through() {
        let requests = Arc::new(Requests::new(1));
        let before = requests.wanted();
        requests.nudge();
        assert_over(sleeper(&requests, move |requests| {
            requests.pause(before, HOUR)
        }));
    }

    #[test]
    fn a_nudge_whose_token_is_used_up_is_not_slept_through() {
        let requests = Arc::new(Requests::new(1));
        let before = requests.wanted();
        assert_over(sleeper(&requests, move |requests| {
            requests.nudge();
            // As a subscriber may do that waits for something of its own.
            std::thread::park();
            requests.pause(before, HOUR);
        }));
    }

    #[test]
    fn a_stop_is_not_slept_through() {
        let requests = Arc::new(Requests::new(1));
        let before = requests.wanted();
        requests.stop();
        assert_over(sleeper(&requests, move |requests| {
            requests.pause(before, HOUR);
            requests.sleep(0, None);
        }));
    }
}

//! The stripes of a generator, what fills them, and when.

mod assist;
mod in_place;
mod insert;
mod ready;
mod serve;
mod take;
#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crossbeam_utils::CachePadded;

pub(crate) use self::in_place::MadeInPlace;
pub(crate) use self::ready::FilledWait;
use super::policy::{FillCause, RingFull, ScheduledFill};
use super::recall::Recalls;
use super::requests::Requests;
use super::stripe::Stripe;
use super::timetable::Timetable;
use super::waiters::{Supply, Waiters, Waiting};
use crate::events::{self, Throttle};
use crate::id::Id;
use crate::per_core::PerCore;
use crate::per_core::stocks::Stocks;
use crate::source::Source;
use crate::sync;
use crate::sync::atomic::Ordering::Relaxed;
use crate::timeline::{RefusalCounters, Refused};

/// IDs made and published in one step: enough that the cost of publishing
/// does not show (it does below 128), few enough that block and ring lines stay in the
/// first cache level. In a model two, so that a fill of a few slots takes several
/// blocks.
const BLOCK: usize = sync::size(1024, 2);

/// The most IDs that a consumer makes at a time: half of a block.
const LONGEST_RUN: usize = sync::size(512, 2);

/// How many IDs a consumer makes at a time for a stripe of `capacity` slots: as many as
/// `in_a_microsecond`, and no more than half of the slots, so that one that is stopped
/// meanwhile leaves room to the producers.
fn run_of(capacity: usize, in_a_microsecond: usize) -> usize {
    (capacity / 2).clamp(1, in_a_microsecond.min(LONGEST_RUN))
}

/// The most IDs that one permit is for: [`BLOCK`], and fewer where that would leave the
/// other producers no room to go on while this one is stuck. All permits together
/// hold no more than half of the stripe, if that has a slot for each producer.
fn block_of(capacity: usize, producers: usize) -> usize {
    (capacity / (2 * producers.max(1))).clamp(1, BLOCK)
}

/// Called when a scheduled fill finds the ring full.
pub(crate) type FullHook = Box<dyn Fn(RingFull) + Send + Sync>;

/// The stripes, the source of their IDs, and everything that decides when they are filled.
pub(crate) struct Filler {
    pub(super) stripes: PerCore<Stripe>,
    /// In front of the stripes, for takes of one ID.
    pub(super) stocks: Option<Stocks>,
    pub(super) source: Source,
    pub(super) schedule: Option<ScheduledFill>,
    timetable: Option<Timetable>,
    /// The most IDs that one permit is for, at most [`BLOCK`].
    block: usize,
    /// How many IDs a consumer makes at a time, at most [`LONGEST_RUN`].
    run: usize,
    requests: Requests,
    pub(super) waiters: Waiters,
    on_full: Option<FullHook>,
    pub(super) recalls: Recalls,
    /// Written by the producers; on lines of their own, away from what takes read.
    pub(super) counters: CachePadded<FillCounters>,
    throttles: CachePadded<Throttles>,
}

/// Each keeps one kind of event from being logged too often.
#[derive(Debug)]
struct Throttles {
    assisted: Throttle,
    near_limit: Throttle,
    refused: Throttle,
    panicked: Throttle,
}

/// Totals of the producers' work.
#[derive(Debug, Default)]
pub(crate) struct FillCounters {
    /// Finished fills, by cause.
    pub(crate) fills: [AtomicU64; FillCause::ALL.len()],
    /// IDs that were made and never inserted, because of a recall.
    pub(crate) given_up: AtomicU64,
    /// Fills that the timeline cut short.
    pub(crate) refusals: AtomicU64,
    /// The same by reason.
    pub(crate) refused: RefusalCounters,
    /// Fills that ended in a panic of a clock or a hook.
    pub(crate) panics: AtomicU64,
}

/// IDs that have left the rings, by what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) all: u64,
    /// IDs that were dropped, for their age or by a recall.
    pub(crate) retired: u64,
    /// IDs that went on to another stripe.
    pub(crate) moved: u64,
}

pub(crate) struct FillerParts {
    pub(crate) stripes: PerCore<Stripe>,
    pub(crate) stocks: Option<Stocks>,
    pub(crate) source: Source,
    pub(crate) schedule: Option<ScheduledFill>,
    pub(crate) on_full: Option<FullHook>,
    /// The number of producers, at most 64.
    pub(crate) producers: usize,
}

impl Filler {
    pub(crate) fn new(parts: FillerParts) -> Self {
        let FillerParts {
            stripes,
            stocks,
            source,
            schedule,
            on_full,
            producers,
        } = parts;
        // All stripes have the same.
        let capacity = stripes[0].ring.capacity();
        Self {
            block: block_of(capacity, producers),
            run: run_of(capacity, source.cipher().ids_in_a_microsecond()),
            stripes,
            stocks,
            source,
            schedule,
            timetable: schedule.map(|schedule| Timetable::new(schedule.period())),
            requests: Requests::new(producers),
            waiters: Waiters::new(),
            on_full,
            recalls: Recalls::new(),
            counters: CachePadded::default(),
            throttles: CachePadded::new(Throttles {
                assisted: Throttle::new(),
                near_limit: Throttle::new(),
                refused: Throttle::new(),
                panicked: Throttle::new(),
            }),
        }
    }

    /// Asks for fills where the level is low. To be called some time after a recall, which
    /// lowers the level and asks for nothing, since there may be nothing to fill with.
    pub(crate) fn ask_for_what_is_missing(&self) {
        for stripe in self.stripes.iter() {
            // Settled, as by a take: it meets a producer that has cleared the request and
            // then missed room that this thread gave back.
            self.note_level(stripe, stripe.ring.settled_level().filled);
        }
    }

    /// Has producers that were refused try again at once. They wake the waiting consumers,
    /// whether that succeeds or not. Calls nobody's code, and so may be called under a lock.
    pub(crate) fn nudge(&self) {
        self.requests.nudge();
    }

    /// Follows a take that has left fewer IDs than the threshold: requests a fill, and assists
    /// where very few are left. Returns whether the IDs taken still belong to this process: an
    /// assist reads a clock, and the clock may have forked.
    // Out of line, so that other takes need no registers for it.
    #[must_use]
    #[inline(never)]
    pub(super) fn note_low(&self, stripe: &Stripe, left: u64) -> bool {
        self.ask_for(stripe, left);
        if left >= stripe.low_mark {
            return true;
        }
        self.assist(stripe);
        !self.source.timeline().is_forked()
    }

    /// Asks for a fill of a stripe that has so many IDs, if these are few.
    fn note_level(&self, stripe: &Stripe, left: u64) {
        if left < stripe.threshold {
            self.ask_for(stripe, left);
        }
    }

    #[inline]
    fn ask_for(&self, stripe: &Stripe, left: u64) {
        if left > 0 {
            self.requests.request_for(&stripe.request);
        } else {
            // The producer that has taken the request on may be stuck.
            self.requests.insist_for(&stripe.request);
        }
    }

    /// Calls `attempt` until it gives a value, and sleeps in between until something is
    /// published; `None` after `timeout`.
    pub(crate) fn wait<T>(
        &self,
        timeout: Duration,
        attempt: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        self.waiters.wait(timeout, attempt, || !self.is_empty())
    }

    /// The wait of a future, which is for it to poll.
    pub(crate) fn waiting(&self) -> Waiting<'_, Self> {
        Waiting::new(&self.waiters, self)
    }

    /// Whether no consumer waits: for tests.
    #[cfg(test)]
    pub(crate) fn nobody_waits(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Counts and logs a panic of a clock or a hook in a producer.
    pub(crate) fn count_panic(&self) {
        self.counters.panics.fetch_add(1, Relaxed);
        events::producer_panicked(&self.throttles.panicked);
    }

    /// Has waiting consumers look again, after a fill was refused: some of them then
    /// give up.
    pub(crate) fn wake_waiters(&self) {
        // Nobody waits in a forked child, and the gate may be locked there for ever.
        if !self.source.timeline().is_forked() {
            self.waiters.notify_all();
        }
    }

    /// Wakes a waiting consumer, and all who wait for the last: IDs were published.
    fn notify_waiters(&self) {
        // As above.
        if !self.source.timeline().is_forked() {
            self.waiters.notify();
        }
    }

    pub(crate) fn stripes(&self) -> &PerCore<Stripe> {
        &self.stripes
    }

    /// The stocks in front of them, if takes use any.
    pub(crate) fn stocks(&self) -> Option<&Stocks> {
        self.stocks.as_ref()
    }

    /// IDs in the stocks of all cores, each counted at its own moment.
    pub(crate) fn in_stocks(&self) -> usize {
        self.stocks.as_ref().map_or(0, Stocks::level)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.stripes.len() * self.stripes[0].ring.capacity()
    }

    /// IDs in all stripes, each counted at its own moment.
    pub(crate) fn level(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.ring.len()).sum()
    }

    /// The IDs that have left the rings since they were made.
    pub(crate) fn taken(&self) -> Taken {
        let mut taken = Taken::default();
        for stripe in self.stripes.iter() {
            // Read `taken` first: the counters that are read later can only be larger.
            taken.all += stripe.ring.taken();
            taken.retired += stripe.retired();
            taken.moved += stripe.moved();
        }
        taken
    }

    /// How often a take has made IDs for its stripe.
    pub(crate) fn assists(&self) -> u64 {
        self.stripes.iter().map(Stripe::assists).sum()
    }

    fn is_empty(&self) -> bool {
        let mark = self.recalls.current().to_word();
        let in_stocks = |stocks: &Stocks| stocks.has_some(mark);
        self.stripes.iter().all(|stripe| stripe.ring.is_empty())
            && !self.stocks.as_ref().is_some_and(in_stocks)
    }

    /// One attempt of [`wait`](Self::wait), which fills `out` from the front: how many IDs,
    /// at least one, or why there will be none. `None` if the consumer has to go on waiting.
    pub(crate) fn attempt(&self, out: &mut [Id]) -> Option<Result<usize, Refused>> {
        let count = self.take_last(out);
        if count > 0 {
            return Some(Ok(count));
        }
        // When producers are refused, they wake the waiting takes. If the refusal is final, only
        // the IDs that producers have claimed by then will come. After an invalidation, or in a
        // forked child, not even those come. Room is reserved before a claim, and the exchange of
        // the last claim releases the reservation to `refused_now`. So either the room is seen to
        // be held, or its IDs are found.
        match self.source.timeline().refused_now()? {
            Refused::BorrowLimit { .. } | Refused::NoLease { .. } => None,
            refused
                if !matches!(refused, Refused::Invalidated | Refused::Forked)
                    && self.waits_for_the_last() =>
            {
                None
            }
            // Again, for IDs that were published after the first look.
            refused => match self.take_last(out) {
                0 => Some(Err(refused)),
                last => Some(Ok(last)),
            },
        }
    }

    /// Whether IDs may come though none can be made: somebody holds a permit, or has reserved
    /// slots that are not published. Then the attempt is made again when these have come or
    /// not.
    fn waits_for_the_last(&self) -> bool {
        let mut stripes = self.stripes.iter();
        let have_some = stripes.any(|stripe| stripe.ring.has_more_to_come());
        if have_some {
            self.waiters.wait_for_the_last();
        }
        have_some
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn threshold(&self) -> usize {
        let thresholds = self.stripes.iter().map(|stripe| stripe.threshold);
        thresholds.sum::<u64>() as usize
    }

    /// Whether a scheduled fill is due; if so, the caller has taken it on.
    pub(crate) fn take_due(&self) -> bool {
        self.timetable.as_ref().is_some_and(Timetable::take_due)
    }

    /// How long until the next scheduled fill, if there are any.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.timetable.as_ref().map(Timetable::time_left)
    }

    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    pub(crate) fn counters(&self) -> &FillCounters {
        &self.counters
    }
}

impl Supply for Filler {
    fn has_some(&self) -> bool {
        !self.is_empty()
    }

    fn is_forked(&self) -> bool {
        self.source.timeline().is_forked()
    }
}

impl fmt::Debug for Filler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filler")
            .field("level", &self.level())
            .field("capacity", &self.capacity())
            .field("stocks", &self.stocks)
            .field("stripes", &self.stripes.len())
            .field("threshold", &self.threshold())
            .field("source", &self.source)
            .field("schedule", &self.schedule)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod placement {
    use super::*;
    use crate::placement::assert_apart;

    #[test]
    fn a_filler() {
        assert_apart!(Filler {
            [stripes, stocks, source, schedule, timetable, block, run, on_full]
            [requests]
            [waiters]
            [recalls]
            [counters]
            [throttles]
        });
    }
}

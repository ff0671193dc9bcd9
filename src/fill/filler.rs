//! One fill: a producer's work from a request until it is served.

mod insert;
#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::adaptive::ThresholdController;
use super::policy::{FillCause, RingFull, ScheduledFill};
use super::recall::Recalls;
use super::requests::{Requests, Wanted};
use super::timetable::Timetable;
use super::waiters::Waiters;
use super::watermark::{Totals, Watermark};
use crate::events::{self, Throttle};
use crate::id::Id;
use crate::ring::RingBuffer;
use crate::source::Source;
use crate::sync;
use crate::sync::atomic::Ordering::Relaxed;
use crate::timeline::Refused;

/// IDs made and published in one step: enough that the cost of publishing
/// does not show (it does below 128), few enough that block and ring lines stay in the
/// first cache level. In a model two, so that a fill of a few slots takes several
/// blocks.
const BLOCK: usize = sync::size(1024, 2);

/// A block that lacks fewer IDs than this is published as it is. Where runs are long,
/// filling it up would start the next run off its alignment.
const TOP_UP: usize = sync::size(64, 1);

/// The most IDs that one permit is for: [`BLOCK`], and fewer where that would leave the
/// other producers no room to go on while this one is stuck. All permits together
/// hold no more than half of the ring, if that has a slot for each producer.
fn block_of(capacity: usize, producers: usize) -> usize {
    (capacity / (2 * producers.max(1))).clamp(1, BLOCK)
}

/// Called when a scheduled fill finds the ring full.
pub(crate) type FullHook = Box<dyn Fn(RingFull) + Send + Sync>;

/// A ring, the source of its IDs, and everything that decides when it is filled.
pub(crate) struct Filler {
    pub(super) ring: RingBuffer,
    pub(super) source: Source,
    watermark: Watermark,
    pub(super) schedule: Option<ScheduledFill>,
    timetable: Option<Timetable>,
    /// The most IDs that one permit is for, at most [`BLOCK`].
    block: usize,
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
    near_limit: Throttle,
    refused: Throttle,
    panicked: Throttle,
}

/// Totals of the producers' work.
#[derive(Debug, Default)]
pub(crate) struct FillCounters {
    /// Finished fills, by cause.
    pub(crate) fills: [AtomicU64; FillCause::ALL.len()],
    /// IDs that were dropped from the ring, for their age or by a recall.
    pub(crate) retired: AtomicU64,
    /// IDs that were made and never inserted, because of a recall.
    pub(crate) given_up: AtomicU64,
    /// Fills that the timeline cut short.
    pub(crate) refusals: AtomicU64,
    /// Fills that ended in a panic of a clock or a hook.
    pub(crate) panics: AtomicU64,
}

/// What a [`Filler`] is made from.
pub(crate) struct FillerParts {
    pub(crate) ring: RingBuffer,
    pub(crate) source: Source,
    /// A take that leaves fewer IDs than this asks for a fill; 0: no take does.
    pub(crate) threshold: usize,
    /// Moves the threshold in place of the fixed one.
    pub(crate) controller: Option<ThresholdController>,
    pub(crate) schedule: Option<ScheduledFill>,
    pub(crate) on_full: Option<FullHook>,
    /// The number of producers, at most 64.
    pub(crate) producers: usize,
}

impl Filler {
    pub(crate) fn new(parts: FillerParts) -> Self {
        let FillerParts {
            ring,
            source,
            threshold,
            controller,
            schedule,
            on_full,
            producers,
        } = parts;
        Self {
            block: block_of(ring.capacity(), producers),
            ring,
            source,
            watermark: controller.map_or_else(|| Watermark::fixed(threshold), Watermark::moving),
            schedule,
            timetable: schedule.map(|schedule| Timetable::new(schedule.period())),
            requests: Requests::new(producers),
            waiters: Waiters::new(),
            on_full,
            recalls: Recalls::new(),
            counters: CachePadded::default(),
            throttles: CachePadded::new(Throttles {
                near_limit: Throttle::new(),
                refused: Throttle::new(),
                panicked: Throttle::new(),
            }),
        }
    }

    /// Takes one ID from the ring, and asks for a fill if that leaves too few.
    #[inline]
    pub(crate) fn take(&self) -> Option<Id> {
        let taken = self.ring.take_leaving();
        self.note_level(taken.map_or(0, |(_, left)| left));
        taken.map(|(id, _)| id)
    }

    /// Takes up to `out.len()` IDs from the ring, in one step.
    #[inline]
    pub(crate) fn take_batch(&self, out: &mut [Id]) -> usize {
        let (count, left) = self.ring.take_batch_leaving(out);
        self.note_level(left);
        count
    }

    /// Asks for a fill if the level is low. To be called some time after a recall, which
    /// lowers the level and asks for nothing, since there may be nothing to fill with.
    pub(crate) fn ask_for_what_is_missing(&self) {
        // Settled, as by a take: it meets a producer that has cleared the request and
        // then missed room that this thread gave back.
        self.note_level(self.ring.settled_level().filled);
    }

    /// Has producers that were refused try again at once, and waiting consumers look
    /// again.
    pub(crate) fn nudge(&self) {
        self.requests.nudge();
        self.wake_waiters();
    }

    #[inline]
    fn note_level(&self, left: u64) {
        if left < self.watermark.threshold() {
            if left > 0 {
                self.requests.request(FillCause::Threshold);
            } else {
                // The producer that has taken the request on may be stuck.
                self.requests.insist(FillCause::Threshold);
            }
        }
    }

    /// Calls `attempt` until it gives a value, and sleeps in between until something is
    /// published; `None` after `timeout`.
    pub(crate) fn wait<T>(
        &self,
        timeout: Duration,
        attempt: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        self.waiters
            .wait(timeout, attempt, || !self.ring.is_empty())
    }

    /// Fills the room that there is now, and returns the number of IDs made.
    /// If there is more to do than a block, another producer is woken first: making IDs
    /// may call a clock that gets stuck.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the timeline ran into a limit; the IDs made before that
    /// are in the ring.
    pub(crate) fn fill(&self, cause: FillCause) -> Result<u64, Refused> {
        self.fill_leaving(0, cause)
    }

    /// The same, with `spare` slots left empty.
    fn fill_leaving(&self, spare: u64, cause: FillCause) -> Result<u64, Refused> {
        let started = Instant::now();
        // Read once: the consumers need the cache line that `cursor` lies on.
        let limit = self.ring.fill_limit() - spare;
        let mut block = [Id::default(); BLOCK];
        let mut alone = true;
        let mut made = 0;
        let mut outcome = Ok(());
        while outcome.is_ok() && !self.requests.wanted().stop() {
            let Some(permit) = self.ring.reserve_below(limit, self.block) else {
                break;
            };
            // Before anything is made: IDs that a recall meets half-made count as old.
            let mark = self.recalls.mark();
            if alone && self.ring.has_room_below(limit) {
                alone = false;
                self.requests.wake_one();
            }
            let count;
            (count, outcome) = self.mint_block(&mut block[..permit.len()]);
            let pushed = self.insert(permit, &block[..count], mark);
            self.counters
                .given_up
                .fetch_add((count - pushed) as u64, Relaxed);
            made += pushed as u64;
        }
        self.report(cause, made, started.elapsed(), outcome);
        outcome.map(|()| made)
    }

    /// The number of slots that a threshold fill leaves empty; 0 unless the threshold
    /// is adaptive.
    fn spare(&self) -> u64 {
        let capacity = self.ring.capacity() as u64;
        capacity - self.watermark.targets().goal(capacity)
    }

    /// Makes IDs until `block` is full or nearly full. Returns how many, and the
    /// refusal if one ended it early.
    fn mint_block(&self, block: &mut [Id]) -> (usize, Result<(), Refused>) {
        let mut count = 0;
        while count == 0 || block.len() - count >= TOP_UP {
            match self.source.mint(&mut block[count..]) {
                Ok(minted) => count += minted,
                Err(refused) => return (count, Err(refused)),
            }
        }
        (count, Ok(()))
    }

    /// Serves the open requests `wanted`, the most pressing of which is `cause`.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the ring could not be filled; the requests stay open, and
    /// so does one for `cause`.
    pub(crate) fn serve(&self, cause: FillCause, wanted: Wanted) -> Result<(), Refused> {
        let wanted = wanted.with(cause);
        // Puts the requests back if this fails or unwinds. Another producer may
        // have settled them meanwhile, counting on this one. And a scheduled fill,
        // which only the timetable asks for, may have retired IDs that it could not
        // replace.
        let unserved = Unserved {
            requests: &self.requests,
            wanted,
        };
        if wanted.includes(FillCause::Scheduled) {
            self.retire();
        }
        // IDs that were retired, or never there, were not taken. So nothing is learnt
        // from them, and the ring is filled up.
        let takes_asked = cause == FillCause::Threshold && !wanted.includes(FillCause::Scheduled);
        let before = (takes_asked && self.watermark.moves())
            .then(|| (self.watermark.threshold(), self.ring.len()));
        let spare = if takes_asked { self.spare() } else { 0 };
        let mut made = self.fill_leaving(spare, cause)?;
        if made == 0 && spare > 0 && (self.ring.len() as u64) < self.watermark.threshold() {
            // Others hold permits for all the room below the goal, and one of them may
            // be stuck. Then the room that they hold does not count towards the goal.
            let spare = spare.saturating_sub(self.ring.to_come());
            made = self.fill_leaving(spare, cause)?;
        }
        if let Some((threshold, level)) = before {
            self.learn(threshold, level);
        }
        unserved.settle();

        // R4: first the request is cleared and the threshold moved, then the
        // level is looked at, then the threshold.
        let level = self.ring.settled_level();
        let spare = self.spare();
        // Without room, other producers hold permits for the missing IDs, and they
        // settle when they have published them.
        if level.filled < self.watermark.threshold() && level.room > spare {
            self.requests.request(FillCause::Threshold);
        }
        // Last, so that a panic in it leaves nothing undone.
        if cause == FillCause::Scheduled
            && made == 0
            && level.filled == self.ring.capacity() as u64
            && let Some(hook) = &self.on_full
        {
            hook(RingFull {
                capacity: self.ring.capacity(),
            });
        }
        Ok(())
    }

    /// Moves the threshold after a fill, by the threshold and the level before it, and
    /// the level now.
    fn learn(&self, threshold: u64, level: usize) {
        let lowest = level.min(self.ring.len()) as u64;
        self.watermark.follow(threshold, lowest, || Totals {
            taken: self.ring.taken(),
            retired: self.counters.retired.load(Relaxed),
        });
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

    /// Drops the IDs in the ring that are too old.
    fn retire(&self) {
        let Some(max_age) = self.schedule.and_then(|schedule| schedule.age_limit()) else {
            return;
        };
        let now = self.source.timeline().clock().unix_ms();
        let stale = |id| self.source.age(id, now) > max_age;
        let mut retired = 0;
        self.ring.retire(stale, |count| {
            retired += count as u64;
            // At once, so that a fill that finds the level lowered finds the reason.
            self.count_retired(count);
            !self.requests.wanted().stop()
        });
        if retired > 0 {
            events::retired(retired, max_age);
        }
    }

    pub(super) fn count_retired(&self, count: usize) {
        self.counters.retired.fetch_add(count as u64, Relaxed);
    }

    fn report(&self, cause: FillCause, made: u64, took: Duration, outcome: Result<(), Refused>) {
        if made > 0 && outcome.is_ok() {
            self.counters.fills[cause as usize].fetch_add(1, Relaxed);
        }
        events::filled(cause, made, took);
        match outcome {
            Err(refused) => {
                self.counters.refusals.fetch_add(1, Relaxed);
                events::refused(&self.throttles.refused, refused);
            }
            Ok(()) => {
                let timeline = self.source.timeline();
                let (borrowed, limit) = (timeline.borrowed(), timeline.borrow_limit());
                // From nine tenths on. With a limit of 0 nothing is ever borrowed.
                if !limit.is_zero() && borrowed >= limit - limit / 10 {
                    events::borrowing_near_limit(&self.throttles.near_limit, borrowed, limit);
                }
            }
        }
    }

    pub(crate) fn ring(&self) -> &RingBuffer {
        &self.ring
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn threshold(&self) -> usize {
        self.watermark.threshold() as usize
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

impl fmt::Debug for Filler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filler")
            .field("ring", &self.ring)
            .field("source", &self.source)
            .field("threshold", &self.watermark.threshold())
            .field("schedule", &self.schedule)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Requests that a producer has taken on and not yet served.
struct Unserved<'a> {
    requests: &'a Requests,
    wanted: Wanted,
}

impl Unserved<'_> {
    fn settle(self) {
        self.requests.settle(self.wanted);
        std::mem::forget(self);
    }
}

impl Drop for Unserved<'_> {
    fn drop(&mut self) {
        self.requests.reopen(self.wanted);
    }
}

//! One fill: a producer's work from a request until it is served.

use std::time::{Duration, Instant};

use super::{BLOCK, Filler};
use crate::events;
use crate::fill::policy::{FillCause, RingFull};
use crate::fill::requests::Wanted;
use crate::fill::stripe::Stripe;
use crate::id::Id;
use crate::sync;
use crate::sync::atomic::Ordering::Relaxed;
use crate::timeline::Refused;
use crate::unwind::Undo;

/// A block that lacks fewer IDs than this is published as it is. Where runs are long,
/// filling it up would start the next run off its alignment.
const TOP_UP: usize = sync::size(64, 1);

impl Filler {
    /// Fills the room that there is now, and returns the number of IDs made.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the timeline ran into a limit; the IDs made before that
    /// are in the stripes.
    pub(crate) fn fill(&self, cause: FillCause) -> Result<u64, Refused> {
        let started = Instant::now();
        let mut made = 0;
        let outcome = self
            .stripes
            .iter()
            .try_for_each(|stripe| self.fill_stripe(stripe, &mut made));
        self.report(cause, made, started.elapsed(), outcome);
        outcome.map(|()| made)
    }

    /// Fills a stripe, and adds the number of IDs made to `made`. If there is more to do
    /// than a block, another producer is woken first: making IDs may call a clock that gets
    /// stuck.
    pub(super) fn fill_stripe(&self, stripe: &Stripe, made: &mut u64) -> Result<(), Refused> {
        // Read once: the consumers need the cache line that `cursor` lies on.
        let limit = stripe.ring.fill_limit();
        let mut block = [Id::default(); BLOCK];
        let mut alone = true;
        let mut outcome = Ok(());
        while outcome.is_ok() && !self.requests.wanted().stop() {
            let Some(permit) = stripe.ring.reserve_below(limit, self.block) else {
                break;
            };
            // Before anything is made: IDs that a recall meets half-made count as old.
            let mark = self.recalls.mark();
            if alone && stripe.ring.has_room_below(limit) {
                alone = false;
                self.requests.wake_one();
            }
            let count;
            (count, outcome) = self.mint_block(&mut block[..permit.len()]);
            let pushed = self.insert(stripe, permit, &block[..count], mark);
            self.count_given_up(count - pushed);
            *made += pushed as u64;
        }
        outcome
    }

    /// Makes IDs until `block` is full or nearly full. Returns how many, and the
    /// refusal if one ended it early.
    pub(super) fn mint_block(&self, block: &mut [Id]) -> (usize, Result<(), Refused>) {
        let mut minted = Minted {
            filler: self,
            count: 0,
        };
        while minted.count == 0 || block.len() - minted.count >= TOP_UP {
            match self.source.mint(&mut block[minted.count..]) {
                Ok(count) => minted.count += count,
                Err(refused) => return (minted.publish(), Err(refused)),
            }
        }
        (minted.publish(), Ok(()))
    }

    /// Serves the open requests `wanted`, the most pressing of which is `cause`: takes
    /// asked for the stripes whose requests are open, and another cause for all.
    ///
    /// # Errors
    ///
    /// [`Refused`] if a stripe could not be filled; the requests stay open, and
    /// so does one for `cause`.
    pub(crate) fn serve(&self, cause: FillCause, wanted: Wanted) -> Result<(), Refused> {
        let wanted = wanted.with(cause);
        // Puts the requests back if this fails or unwinds. Another producer may
        // have settled them meanwhile, counting on this one. And a scheduled fill,
        // which only the timetable asks for, may have retired IDs that it could not
        // replace.
        let unserved = Undo(|| self.requests.reopen(wanted));
        if wanted.includes(FillCause::Scheduled) {
            self.retire();
        }
        let takes_asked = cause == FillCause::Threshold && !wanted.includes(FillCause::Scheduled);
        let started = Instant::now();
        let mut made = 0;
        let mut filled = 0;
        let outcome = self
            .stripes
            .places_from(self.stripes.here())
            .map(|place| &self.stripes[place])
            .filter(|stripe| !takes_asked || stripe.request.is_open())
            .try_for_each(|stripe| {
                filled += self.serve_stripe(stripe, takes_asked, &mut made)?;
                Ok(())
            });
        self.report(cause, made, started.elapsed(), outcome);
        outcome?;
        self.requests.settle(wanted);
        unserved.keep();
        // R4: first the bit is cleared, then the stripes' requests are looked at.
        if self.stripes.iter().any(|stripe| stripe.request.is_open()) {
            self.requests.request(FillCause::Threshold);
        }
        // Last, so that a panic in it leaves nothing undone.
        let capacity = self.capacity();
        if cause == FillCause::Scheduled
            && made == 0
            && filled == capacity as u64
            && let Some(hook) = &self.on_full
        {
            hook(RingFull { capacity });
        }
        Ok(())
    }

    /// Fills one stripe and closes its request. Adds the number of IDs made to `made`, and
    /// returns the level.
    pub(super) fn serve_stripe(
        &self,
        stripe: &Stripe,
        takes_asked: bool,
        made: &mut u64,
    ) -> Result<u64, Refused> {
        // R4: a request that takes have asked for was open when the producer chose the stripe.
        // Another may have closed it since, and found no room because of this one's permits: then
        // it counts on this one, which so has to put it back if it fails.
        let was_open = takes_asked || stripe.request.is_open();
        let unserved = Undo(|| {
            if was_open {
                stripe.request.reopen();
            }
        });
        self.fill_stripe(stripe, made)?;
        stripe.request.close();
        unserved.keep();
        stripe.assist.free();

        // R4: first the request is closed, then the level is looked at.
        let level = stripe.ring.settled_level();
        // Without room, other producers hold permits for the missing IDs, and they
        // settle when they have published them.
        if level.filled < stripe.threshold && level.room > 0 {
            self.requests.request_for(&stripe.request);
        }
        Ok(level.filled)
    }

    /// Drops the IDs in the stripes that are too old.
    fn retire(&self) {
        let Some(max_age) = self.schedule.and_then(|schedule| schedule.age_limit()) else {
            return;
        };
        let now = self.source.timeline().clock().unix_ms();
        let stale = |id| self.source.age(id, now) > max_age;
        let mut retired = 0;
        for stripe in self.stripes.iter() {
            stripe.ring.retire(stale, |count| {
                retired += count as u64;
                // At once, so that none of them is counted as issued meanwhile.
                stripe.count_retired(count);
                !self.requests.wanted().stop()
            });
        }
        if retired > 0 {
            events::retired(retired, max_age);
        }
    }

    /// Counts IDs that were made, or moved, and not inserted.
    pub(super) fn count_given_up(&self, count: usize) {
        if count > 0 {
            self.counters.given_up.fetch_add(count as u64, Relaxed);
        }
    }

    fn report(&self, cause: FillCause, made: u64, took: Duration, outcome: Result<(), Refused>) {
        if made > 0 && outcome.is_ok() {
            self.counters.fills[cause as usize].fetch_add(1, Relaxed);
        }
        events::filled(cause, made, took);
        match outcome {
            Err(refused) => {
                self.counters.refusals.fetch_add(1, Relaxed);
                self.counters.refused.count(refused);
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
}

/// IDs of a block that is not complete. If a clock panics, they are counted as given up.
struct Minted<'a> {
    filler: &'a Filler,
    count: usize,
}

impl Minted<'_> {
    fn publish(self) -> usize {
        let count = self.count;
        std::mem::forget(self);
        count
    }
}

impl Drop for Minted<'_> {
    fn drop(&mut self) {
        self.filler.count_given_up(self.count);
    }
}

//! Takes: from this core's stock, from its stripe, and from the other stripes where that is empty.

use super::Filler;
use super::insert::Reservation;
use crate::fill::recall::RecallMark;
use crate::fill::stripe::Stripe;
use crate::id::Id;
use crate::per_core::PerCore;
use crate::per_core::stocks::{self, Stocks};
use crate::ring::RingBuffer;
use crate::sync;

/// The most IDs that a take moves from another stripe to its own, besides the one that it
/// gives out.
const MOVED: usize = sync::size(255, 1);

impl Filler {
    /// Takes one ID: from the core's stock if there are `stocks`, else from its stripe. `stocks`
    /// and `stripes` are this filler's.
    ///
    /// `None` in every rare case, where [`take_slowly`](Self::take_slowly) goes on: the stock is
    /// empty, another consumer was faster, the core's number takes a call, or an assist's clock
    /// has forked this child. All rare cases share one out-of-line call, so the fast path
    /// spills no registers.
    #[inline(always)]
    pub(crate) fn take_at_once(
        &self,
        stocks: Option<&Stocks>,
        stripes: &PerCore<Stripe>,
    ) -> Option<Id> {
        match stocks {
            Some(stocks) => stocks.pop(self.recalls.current().to_word()),
            None => self.take_from_stripe(stripes),
        }
    }

    // Out of line, so that the pop is inlined into its callers.
    #[inline(never)]
    fn take_from_stripe(&self, stripes: &PerCore<Stripe>) -> Option<Id> {
        let stripe = &stripes[stripes.here_at_once()?];
        let (id, left) = stripe.ring.try_take().ok()?;
        if left >= stripe.threshold {
            return Some(id);
        }
        self.note_taken(stripe, id, left)
    }

    #[cold]
    #[inline(never)]
    fn note_taken(&self, stripe: &Stripe, id: Id, left: u64) -> Option<Id> {
        if stripe.is_taken_care_of(left) {
            return Some(id);
        }
        self.note_taken_low(stripe, id, left)
    }

    // Out of line, so that the above keeps nothing in memory.
    #[inline(never)]
    fn note_taken_low(&self, stripe: &Stripe, id: Id, left: u64) -> Option<Id> {
        self.note_low(stripe, left).then_some(id)
    }

    /// Takes one ID from whichever stripe has any, and asks for fills.
    pub(crate) fn take_slowly(&self) -> Option<Id> {
        if let Some(stocks) = self.stocks.as_ref().filter(|it| it.has_one_here()) {
            return self.take_and_restock(stocks);
        }
        let place = self.stripes.here();
        let stripe = &self.stripes[place];
        let Some((id, left)) = stripe.ring.take_leaving() else {
            return self.take_elsewhere(place);
        };
        if left < stripe.threshold {
            return self.note_taken(stripe, id, left);
        }
        Some(id)
    }

    /// Fetches the cache lines of the IDs that are next in this core's stripe, up to `count`,
    /// for a batch that comes in so many takes.
    pub(crate) fn prefetch(&self, count: usize) {
        // Before the core's number, which may take a call.
        if !RingBuffer::CAN_PREFETCH {
            return;
        }
        self.stripes[self.stripes.here()].ring.prefetch(count);
    }

    /// Takes a batch from the stripe of this core, gives out one ID, and puts the others into
    /// the stock of the core on which the thread is by then.
    fn take_and_restock(&self, stocks: &Stocks) -> Option<Id> {
        // Again, since the first pop may have been interrupted.
        if let Some(id) = stocks.pop(self.recalls.current().to_word()) {
            return Some(id);
        }
        // Before the take: IDs that are taken during a recall count as old.
        let mark = self.recalls.mark();
        let place = self.stripes.here();
        let stripe = &self.stripes[place];
        let mut ids = [Id::default(); stocks::CAPACITY + 1];
        let (count, left) = stripe.ring.take_batch_leaving(&mut ids);
        let Some((&id, others)) = ids[..count].split_first() else {
            return self.take_elsewhere(place);
        };
        stripe.ring.prefetch(stocks::CAPACITY + 1);
        let is_ours = self.restock(stocks, stripe, others, mark);
        if left < stripe.threshold {
            return self.note_taken(stripe, id, left).filter(|_| is_ours);
        }
        is_ours.then_some(id)
    }

    /// Puts IDs that were taken from `stripe` at `mark` into this core's stock, or back into the
    /// stripes if that stock can't be filled: it has some, as after a move to another core, or the
    /// fill was interrupted. Returns whether the IDs are still this process's: they may wake a
    /// future, whose runtime forks.
    #[must_use]
    fn restock(&self, stocks: &Stocks, stripe: &Stripe, ids: &[Id], mark: RecallMark) -> bool {
        stripe.count_retired(stocks.discard_stale(mark.to_word()));
        if ids.is_empty() {
            return true;
        }
        if !stocks.fill(mark.to_word(), ids) {
            return self.give_back(stripe, ids, mark);
        }
        // A consumer may sleep that has looked for IDs while these were in hand.
        self.notify_waiters();
        !self.source.timeline().is_forked()
    }

    /// Puts IDs that were taken at `mark` back into the stripes, and counts them with `stripe`.
    /// Returns whether this is still the process that took them, as `restock` does.
    fn give_back(&self, stripe: &Stripe, ids: &[Id], mark: RecallMark) -> bool {
        let back = self.put_back(ids, mark);
        stripe.count_moved(back);
        stripe.count_retired(ids.len() - back);
        !self.source.timeline().is_forked()
    }

    /// Takes up to `out.len()` IDs: those of one stripe in one step. None in a child that an
    /// assist's clock has forked.
    #[inline]
    pub(crate) fn take_batch(&self, out: &mut [Id]) -> usize {
        let place = self.stripes.here();
        let stripe = &self.stripes[place];
        let (count, left) = stripe.ring.take_batch_leaving(out);
        if count == out.len() {
            if left < stripe.threshold && !self.note_low(stripe, left) {
                return 0;
            }
            count
        } else {
            self.note_level(stripe, left);
            match self.take_batch_elsewhere(place, &mut out[count..]) {
                Some(more) => count + more,
                None => 0,
            }
        }
    }

    /// `None` in a child that an assist's clock has forked.
    #[cold]
    pub(super) fn take_batch_elsewhere(&self, home: usize, out: &mut [Id]) -> Option<usize> {
        let mut done = 0;
        for place in self.stripes.places_from(home).skip(1) {
            let stripe = &self.stripes[place];
            if done == out.len() {
                break;
            }
            // A look first: it leaves the cache lines of an empty stripe where they are.
            if !stripe.ring.is_empty() {
                let (count, left) = stripe.ring.take_batch_leaving(&mut out[done..]);
                done += count;
                if left < stripe.threshold && !self.note_low(stripe, left) {
                    return None;
                }
            }
        }
        Some(done)
    }

    /// Takes up to `out.len()` IDs for a consumer who would else get none: from the stripes, where
    /// some may have come since, or from the stock of any core.
    #[cold]
    pub(crate) fn take_last(&self, out: &mut [Id]) -> usize {
        match self.take_batch(out) {
            0 => self.take_from_stocks(out),
            count => count,
        }
    }

    fn take_from_stocks(&self, out: &mut [Id]) -> usize {
        let Some(stocks) = &self.stocks else { return 0 };
        let mut ids = [Id::default(); stocks::CAPACITY];
        while let Some((mark, count)) = stocks.seize(&mut ids) {
            let mark = RecallMark::from_word(mark);
            let stripe = &self.stripes[self.stripes.here()];
            if !self.recalls.is_unchanged_since(mark) {
                stripe.count_retired(count);
                continue;
            }
            let given = count.min(out.len());
            out[..given].copy_from_slice(&ids[..given]);
            let is_ours = given == count || self.give_back(stripe, &ids[given..count], mark);
            return if is_ours { given } else { 0 };
        }
        0
    }

    /// Takes one ID from another stripe, and moves some more to the empty one at `home`,
    /// so that its next takes find them: up to half of what the other one has, and none
    /// where a thread that was stopped would hide them. Assists the other stripe where this
    /// leaves it very few. `None` also in a child that a clock or a waker has forked then.
    #[cold]
    pub(super) fn take_elsewhere(&self, home: usize) -> Option<Id> {
        let own = &self.stripes[home];
        self.note_level(own, 0);
        // With an age limit none: behind younger IDs, which may have come by then, one that
        // grows too old would be found that much later.
        let most_moved = match self.schedule.and_then(|schedule| schedule.age_limit()) {
            Some(_) => 0,
            None => MOVED,
        };
        for place in self.stripes.places_from(home).skip(1) {
            let other = &self.stripes[place];
            let half = other.ring.len().div_ceil(2);
            if half == 0 {
                continue;
            }
            // Before the take, for the IDs that are moved.
            let mark = self.recalls.mark();
            // Room before IDs, so that none of them is left without a place.
            let room = (!own.ring.is_held_back())
                .then(|| self.reserve(own, most_moved.min(half - 1)))
                .flatten();
            let more = room.as_ref().map_or(0, Reservation::len);
            let mut ids = [Id::default(); MOVED + 1];
            let (count, left) = other.ring.take_batch_leaving(&mut ids[..=more]);
            let Some((&id, moved)) = ids[..count].split_first() else {
                self.note_level(other, left);
                continue;
            };
            if let Some(room) = room {
                other.count_moved(moved.len());
                let inserted = room.stock(moved, mark);
                self.count_given_up(moved.len() - inserted);
            }
            // Last, so that the moved IDs are not away for as long as an assist takes.
            let is_low = left < other.threshold;
            if is_low && !self.note_low(other, left) {
                return None;
            }
            // The moved IDs may have woken a future, by the code of its runtime.
            return (!self.source.timeline().is_forked()).then_some(id);
        }
        None
    }
}

//! Takes: from the stripe of this core, and from the others where that is empty.

use std::sync::Arc;

use super::Filler;
use super::insert::Room;
use crate::fill::stripe::Stripe;
use crate::id::Id;
use crate::per_core::PerCore;
use crate::sync;

/// The most IDs that a take moves from another stripe to its own, besides the one that it
/// gives out.
const MOVED: usize = sync::size(255, 1);

impl Filler {
    /// Takes one ID, and asks for a fill if that leaves too few. `stripes` are this
    /// filler's.
    ///
    /// `None` also where another consumer was faster, where the number of the core takes a
    /// call, and in a child that an assist's clock has forked:
    /// [`take_slowly`](Self::take_slowly) goes on. What is rare is one call with one value,
    /// so that a take keeps nothing in memory, which its exchange would wait for.
    #[inline]
    pub(crate) fn take_at_once(self: &Arc<Self>, stripes: &PerCore<Stripe>) -> Option<Id> {
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
            let more = room.as_ref().map_or(0, Room::len);
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

//! One stripe of the cache: a ring for the takes of one core, and when it is filled.
//!
//! With `per_core::stocks` most takes pop from a stock of their core, and a take here is a
//! restock: a batch, of which it gives out one ID.
//!
//! A take goes to the stripe of the core that it runs on, and to the others only where that
//! one is empty. So what a take writes lies on cache lines that no other core touches: the
//! ring's `cursor`, and the stripe's request while the level is low. Which stripe a take
//! goes to is a hint, and nothing below depends on it.
//!
//! # What is true of many rings
//!
//! `ring` proves R1 and R2 of one ring, and `fill` R3 and R4. Together:
//!
//! *No ID twice, none lost (R1).* An ID lies in one ring, and leaves it by one take. A take that
//! *moves* IDs to its own stripe has taken them, like the one that it gives out. It publishes them
//! once more, in one other ring, under a permit that it got before. If a recall has come between,
//! they are dropped and counted instead.
//!
//! *Stocks (R1).* A restock has taken its IDs. It puts those that it does not give out into one
//! stock, or back into the stripes under a permit, as a handle does. A consumer that finds all
//! stripes empty, and can't make an ID, takes from the stocks of all cores before it fails or
//! sleeps (`take_last`). While no take is in progress, `issued + retired + in stocks + in stripes`
//! is what was made.
//!
//! *Empty (R1).* A take that reports empty has found every stripe empty, each at its own
//! moment during the call. There need not have been a moment at which all were: IDs can
//! come to a stripe after the take has looked there, and can be in the hands of a take
//! that moves them. What it does mean: an ID that lay in one ring from the beginning of the
//! call to its end would have been found there. So an ID that a take misses is one that
//! another thread published, took or moved during the call.
//!
//! *Waiting.* `waiters` has two requirements. First, an attempt finds what was published before the
//! consumer's fence, unless another consumer has it. This holds by the above. Second, each
//! publication is followed by a notification. This holds also for IDs that are moved, and for the
//! fill of a stock, whose IDs were in hand while others may have looked for them. An attempt that
//! missed such IDs on their way is then made again.
//!
//! *R3.* A producer holds one permit at a time, so one that is stuck holds up to a block in
//! one stripe. A take that is stopped while it moves IDs has up to 256 of them, and a permit
//! for as many slots of its own stripe; one that is stopped while it makes a run, or whose
//! clock is stuck, has a permit for that. Neither is for more than half of the stripe. Other
//! takes find the rest, and producers the other room. A restock that is stopped has up to 128,
//! and no permit. A thread that is stopped between its
//! reservation of slots and their publication holds back what is published after them, so
//! takes move nothing to that stripe: they would hide the IDs of all the others there.
//!
//! *R4.* Each stripe has its own request, see `requests`. One more thing is needed: a
//! producer that finds no room leaves the missing IDs to those who hold the permits, and
//! trusts that they look at the level afterwards. So do consumers that stock a stripe, with
//! IDs that they move, make or give back: they hold permits too, often for more than they
//! have, and for nothing where their clock fails (`filler::insert::Reservation`).

use std::sync::atomic::AtomicU64;

use crossbeam_utils::CachePadded;

use super::policy::AssistFill;
use super::recall::Insertions;
use super::requests::StripeRequest;
use crate::per_core::{MAX_ITEMS, PerCore};
use crate::ring::{RingBuffer, RingError};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;

/// A ring for the takes of one core.
#[derive(Debug)]
pub(crate) struct Stripe {
    pub(super) ring: RingBuffer,
    /// A take that leaves fewer than this asks for a fill; 0: no take does.
    pub(super) threshold: u64,
    /// A take that leaves fewer than this assists; never more than the threshold.
    pub(super) low_mark: u64,
    pub(super) request: StripeRequest,
    pub(super) insertions: Insertions,
    pub(super) assist: AssistPermission,
    counters: CachePadded<Counters>,
}

/// Figures for people, written by producers and by takes that found the stripe empty.
#[derive(Debug, Default)]
struct Counters {
    /// IDs that were dropped from the ring, for their age or by a recall.
    retired: AtomicU64,
    /// IDs that were taken from the ring for another stripe.
    moved: AtomicU64,
    /// Runs that takes made.
    assists: AtomicU64,
}

impl Stripe {
    /// Slots of one that is worth while, unless the number of stripes is given.
    pub(crate) const MIN_SLOTS: usize = 1024;

    pub(crate) const MOST: usize = MAX_ITEMS;

    /// `count` stripes for the cores, of `capacity` slots together, of which `count` must be
    /// a divisor. A take that leaves fewer than its share of `threshold` asks for a fill;
    /// with 0 no take does.
    ///
    /// # Errors
    ///
    /// [`RingError`] if the capacity is impossible, or if there is not enough memory.
    pub(crate) fn one_per_core(
        count: usize,
        capacity: usize,
        threshold: usize,
        assist: Option<AssistFill>,
    ) -> Result<PerCore<Self>, RingError> {
        // Of the whole: a divisor may make an impossible one possible.
        RingBuffer::check_capacity(capacity)?;
        let share = capacity / count;
        PerCore::try_new(count, |_| {
            let low_mark = assist.map_or(0, |assist| assist.in_slots(share) as u64);
            let ring = RingBuffer::with_capacity(share)?;
            Ok(Self::new(ring, threshold.div_ceil(count) as u64, low_mark))
        })
    }

    pub(super) fn new(ring: RingBuffer, threshold: u64, low_mark: u64) -> Self {
        Self {
            ring,
            threshold,
            low_mark,
            request: StripeRequest::new(),
            insertions: Insertions::new(),
            assist: AssistPermission::new(),
            counters: CachePadded::default(),
        }
    }

    /// Whether a take that leaves so few IDs, but some, has nothing to do: a fill is asked
    /// for, and there are too many for an assist. While producers are behind, most takes are
    /// such.
    #[inline]
    pub(super) fn is_taken_care_of(&self, left: u64) -> bool {
        left > self.low_mark && self.request.is_open()
    }

    pub(super) fn count_retired(&self, count: usize) {
        self.counters.retired.fetch_add(count as u64, Relaxed);
    }

    pub(super) fn retired(&self) -> u64 {
        self.counters.retired.load(Relaxed)
    }

    pub(super) fn count_moved(&self, count: usize) {
        self.counters.moved.fetch_add(count as u64, Relaxed);
    }

    pub(super) fn count_assist(&self) {
        self.counters.assists.fetch_add(1, Relaxed);
    }

    pub(super) fn assists(&self) -> u64 {
        self.counters.assists.load(Relaxed)
    }

    pub(super) fn moved(&self) -> u64 {
        self.counters.moved.load(Relaxed)
    }
}

/// The permission to assist a stripe, which one thread has at a time.
#[derive(Debug)]
pub(super) struct AssistPermission {
    is_taken: CachePadded<AtomicBool>,
}

impl AssistPermission {
    fn new() -> Self {
        Self {
            is_taken: CachePadded::new(AtomicBool::new(false)),
        }
    }

    /// Whether this thread has got the permission.
    pub(super) fn claim(&self) -> bool {
        // Relaxed, first: a look leaves the cache line where it is. The permission orders
        // nothing: two threads that assisted at once would make two runs.
        !self.is_taken.load(Relaxed) && !self.is_taken.swap(true, Relaxed)
    }

    /// Whether a thread has it.
    #[cfg(feature = "loom")]
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken.load(Relaxed)
    }

    /// Gives the permission back, whichever thread has it.
    pub(super) fn free(&self) {
        // Read first, so that the line stays with the stripe's consumers.
        if self.is_taken.load(Relaxed) {
            self.is_taken.store(false, Relaxed);
        }
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod placement {
    use super::*;
    use crate::placement::{LINE, assert_apart};

    #[test]
    fn a_stripe() {
        // Fields that takes read and nobody writes lie apart from those that takes and producers
        // write while the level is low.
        assert_apart!(Stripe {
            [ring, threshold, low_mark]
            [request]
            [insertions]
            [assist]
            [counters]
        });
        assert!(
            size_of::<RingBuffer>() + 2 * size_of::<u64>() <= LINE,
            "a take reads one line"
        );
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use super::*;

    #[test]
    fn stripes_share_the_slots_and_the_threshold() {
        for (assist, low_mark) in [(None, 0), (Some(AssistFill::below(10)), 26)] {
            let stripes = Stripe::one_per_core(4, 1024, 401, assist).unwrap();
            let each = stripes
                .iter()
                .map(|stripe| (stripe.ring.capacity(), stripe.threshold, stripe.low_mark));
            assert!(each.eq([(256, 101, low_mark); 4]), "{stripes:?}");
        }
    }
}

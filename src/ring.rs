//! The ring: slots that are filled ahead of time, so that takes need not wait.
//!
//! # State
//!
//! Positions are 64-bit counts that never wrap in practice (2^63 positions at
//! 10^9 a second last 292 years); position `p` lives in slot `p % capacity`,
//! and `p / capacity` is its *round*. Counting starts at position `capacity`,
//! round 1, so that 0 is never a live value: a forked child, in which the
//! counters read 0, finds an empty ring that accepts nothing. A child forked by a
//! signal handler in the middle of a take may still hold the old `cursor` in a
//! register; its exchange fails.
//!
//! ```text
//!          cursor          tail        reserved      promised
//!  taken     |  published    |  in copy    |  permits    |   room
//! -----------+---------------+-------------+-------------+------------->
//!            |<------------------- at most capacity --------------->|
//! ```
//!
//! | word | moves when | by |
//! |---|---|---|
//! | `cursor` | IDs are taken | compare-exchange |
//! | `tail` | a prefix of the reserved slots is published | compare-exchange, by any producer |
//! | `reserved` | a permit is exchanged for slots | add; cannot fail |
//! | `promised` | a permit is granted, or given back unused | compare-exchange, subtract |
//!
//! The *flag ring* holds one bit a slot, 64 slots a word. Position `p` is
//! published when its bit equals the parity of its round, so publishing flips
//! the bit and nothing is ever reset.
//!
//! # Taking
//!
//! Load `cursor`, compare with `tail`, read the slot, then compare-exchange
//! `cursor`. The slot is read before the exchange: success proves that nobody
//! else had the ID, and that no producer could have overwritten the slot,
//! because producers stay below `cursor + capacity`.
//!
//! # Filling
//!
//! 1. *Permit*: raise `promised` by `n`, no further than `cursor + capacity`.
//!    A permit is a count, not a place: dropped unused, by a panic for
//!    instance, it is given back, and nothing is left behind.
//! 2. *Reserve*: add `n` to `reserved`. This cannot fail, and from here to step 4
//!    nothing can unwind or call other people's code.
//! 3. *Copy* the IDs into the slots.
//! 4. *Publish*: flip their bits, then advance `tail` over every position whose bit any producer
//!    has set. A producer that is preempted between 2 and 4 holds back `tail`, never a consumer:
//!    the ring reads as empty, and the next producer to finish, or the slow one itself, advances
//!    over everything that is ready.
//!
//! # Why it is right
//!
//! *No ID twice (R1).* `cursor` only grows, by compare-exchange, so each
//! position is passed by one successful exchange. The ID read for position `p`
//! is the one published there: it is read after `tail > p` was seen (Acquire),
//! and a later round's ID can only be written once `cursor > p`, in which case
//! the exchange fails.
//!
//! *No slot overwritten early (R2).* Let a reservation end at `e`, and let `g`
//! be the last granted permit among those reserved so far, this one included.
//! At its grant `promised` covered all of them, so `e <= c + capacity` for the
//! `cursor` value `c` that `g`'s owner had read with Acquire. `reserved` is
//! only ever added to, with AcqRel, so this producer happens after that read,
//! and with it after the takes that made the room.
//!
//! *Nothing published is lost (R1, R3).* Consider the producers that have flipped the flags of a
//! range of positions. The one whose fence comes last sees all of these flags, and advances over
//! the whole range. It can misread only if its `tail` is so old that another producer has already
//! flipped a flag there for the next round. The fence of this other producer comes later still:
//! were it the earlier, `tail` could not have been read so old after the later one. So the task
//! falls to the other producer, which sees all the flags in turn.
//!
//! Takes work as in the bounded queues of crossbeam (after D. Vyukov's MPMC queue),
//! without their per-slot stamps. The flag ring is that of Baidu's `uid-generator`, moved
//! to the filling side.

mod contention_backoff;
mod error;
mod memory;
mod permit;
mod publish;
#[cfg(test)]
mod tests;

use std::fmt;

use crossbeam_utils::CachePadded;

use self::contention_backoff::ContentionBackoff;
pub use self::error::{PushError, RingError};
pub use self::permit::Permit;
use crate::fork::{WipeOnFork, ZeroIsValid};
use crate::id::Id;
use crate::sync;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Flags in one word of the flag ring. In a model two, so that a ring of four slots
/// has two words.
const FLAGS_PER_WORD: u64 = sync::size(64, 2) as u64;

/// What every counter reads in a forked child.
const WIPED: u64 = 0;

/// A bounded ring of IDs, for any number of producers and consumers.
///
/// Taking and pushing are lock-free and never allocate. A consumer never waits
/// for a producer: an ID that is not published yet counts as absent.
///
/// The ring takes 8 bytes a slot and one bit a slot for publication, plus one
/// page for its counters. In a child of `fork(2)` it is empty and stays empty.
///
/// # Examples
///
/// ```
/// use ringflake::{Id, RingBuffer};
///
/// let ring = RingBuffer::with_capacity(4)?;
/// ring.push(Id::from_u64(7))?;
/// assert_eq!(ring.take(), Some(Id::from_u64(7)));
/// assert_eq!(ring.take(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RingBuffer {
    slots: Box<[AtomicU64]>,
    published: Box<[AtomicU64]>,
    counters: WipeOnFork<Counters>,
}

/// The four counters, each on cache lines of its own.
///
/// They live in memory that a forked child reads as zero.
#[repr(C)]
struct Counters {
    /// Position of the next ID to be taken. Written by consumers.
    cursor: CachePadded<AtomicU64>,
    /// First position that is not published. Written by producers.
    tail: CachePadded<AtomicU64>,
    /// First position that no producer has reserved.
    reserved: CachePadded<AtomicU64>,
    /// `reserved`, plus the permits that are out and unused.
    promised: CachePadded<AtomicU64>,
}

// SAFETY: four atomic integers, for which all-zero bytes are the value 0.
unsafe impl ZeroIsValid for Counters {}

/// Why an attempt to take an ID took none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    Empty,
    /// Another consumer was faster.
    Contended,
}

impl RingBuffer {
    /// The largest capacity, in slots: 2^30, which takes 8 GiB.
    pub const MAX_CAPACITY: usize = error::MAX_CAPACITY;

    /// Makes an empty ring of `capacity` slots.
    ///
    /// Takes some microseconds: the system finds the memory of a large ring when its slots
    /// are first written.
    ///
    /// # Errors
    ///
    /// [`RingError`] if `capacity` is not a power of two between 1 and
    /// [`RingBuffer::MAX_CAPACITY`], or if there is not enough memory.
    #[doc(alias = "new")]
    pub fn with_capacity(capacity: usize) -> Result<Self, RingError> {
        Self::check_capacity(capacity)?;
        contention_backoff::calibrate();
        let start = capacity as u64;
        let counter = || CachePadded::new(AtomicU64::new(start));
        let counters = WipeOnFork::new(Counters {
            cursor: counter(),
            tail: counter(),
            reserved: counter(),
            promised: counter(),
        })
        .map_err(RingError::Memory)?;
        Ok(Self {
            slots: memory::zeroed(capacity)?,
            published: memory::zeroed(capacity.div_ceil(FLAGS_PER_WORD as usize))?,
            counters,
        })
    }

    /// Refuses a capacity that no ring can have.
    pub(crate) fn check_capacity(capacity: usize) -> Result<(), RingError> {
        if capacity.is_power_of_two() && capacity <= Self::MAX_CAPACITY {
            Ok(())
        } else {
            Err(RingError::Capacity { capacity })
        }
    }

    /// The number of slots.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The number of IDs in the ring: exact while no other thread takes or pushes, else
    /// at least the number at some moment during the call.
    #[inline]
    pub fn len(&self) -> usize {
        // `cursor` first: a tail that is read later can't lie before it, unless it was wiped.
        let cursor = self.counters.cursor.load(Acquire);
        let tail = self.counters.tail.load(Acquire);
        // While this thread slept between the loads a whole ring may have gone by.
        (tail.saturating_sub(cursor) as usize).min(self.capacity())
    }

    /// Whether the ring was empty at some moment during the call, as
    /// [`take`](Self::take) would find it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the oldest ID, or `None` if the ring is empty.
    ///
    /// Lock-free; a few nanoseconds alone, more when consumers contend.
    #[must_use = "an ID that is taken and dropped is lost"]
    #[inline]
    pub fn take(&self) -> Option<Id> {
        self.take_leaving().map(|(id, _)| id)
    }

    /// Takes up to `out.len()` of the oldest IDs and returns how many.
    ///
    /// They are taken in one step: no other consumer gets one in between.
    /// There are fewer only if the ring held fewer. Lock-free.
    #[must_use = "only as many of the IDs are new"]
    #[inline]
    pub fn take_batch(&self, out: &mut [Id]) -> usize {
        self.take_batch_leaving(out).0
    }

    /// [`take`](Self::take), and a lower bound of the IDs that it left.
    #[inline]
    pub(crate) fn take_leaving(&self) -> Option<(Id, u64)> {
        match self.try_take() {
            Ok(taken) => Some(taken),
            Err(NotTaken::Empty) => None,
            Err(NotTaken::Contended) => self.take_contended(),
        }
    }

    /// The rest of a take that another consumer was faster than.
    // Out of line, so that other takes keep nothing in memory for it, which their exchange
    // would wait for.
    #[cold]
    #[inline(never)]
    fn take_contended(&self) -> Option<(Id, u64)> {
        let mut backoff = ContentionBackoff::FIRST.wait();
        loop {
            match self.try_take() {
                Ok(taken) => return Some(taken),
                Err(NotTaken::Empty) => return None,
                Err(NotTaken::Contended) => backoff = backoff.wait(),
            }
        }
    }

    /// One attempt of [`take_leaving`](Self::take_leaving).
    #[inline]
    pub(crate) fn try_take(&self) -> Result<(Id, u64), NotTaken> {
        // Acquire: pairs with the AcqRel exchange below, so that `tail` is
        // at least what the consumer before saw, and with `settled_level`.
        let cursor = self.counters.cursor.load(Acquire);
        // Acquire: pairs with the Release in `advance_tail`; the slots
        // below it are written.
        let tail = self.counters.tail.load(Acquire);
        debug_assert!(cursor <= tail || tail == WIPED, "R2");
        if cursor == tail {
            return Err(NotTaken::Empty);
        }
        // Relaxed: ordered by `tail`; a stale or newer value makes the exchange fail.
        let id = self.slot(cursor).load(Relaxed);
        // Release: the slot was read before a producer may write it again
        // (pairs with the Acquire in `fill_limit`). Acquire: see `settled_level`.
        let exchange = self
            .counters
            .cursor
            .compare_exchange(cursor, cursor + 1, AcqRel, Relaxed);
        match exchange {
            Ok(_) => Ok((Id::from_u64(id), tail - cursor - 1)),
            Err(_) => Err(NotTaken::Contended),
        }
    }

    /// [`take_batch`](Self::take_batch), and a lower bound of the IDs that it left.
    #[inline]
    pub(crate) fn take_batch_leaving(&self, out: &mut [Id]) -> (usize, u64) {
        self.take_with(out.len(), |ring, cursor, available| {
            let (first, second) = ring.slots_from(cursor, available);
            let (out_first, out_second) = out.split_at_mut(first.len());
            // Two loops rather than a chain: each is a plain copy.
            for (slot, id) in first.iter().zip(out_first) {
                *id = Id::from_u64(slot.load(Relaxed));
            }
            for (slot, id) in second.iter().zip(out_second) {
                *id = Id::from_u64(slot.load(Relaxed));
            }
            available
        })
    }

    /// Whether [`prefetch`](Self::prefetch) does anything.
    pub(crate) const CAN_PREFETCH: bool = memory::CAN_PREFETCH;

    /// Fetches the cache lines of the next IDs, up to `count`, for a take that comes soon. Costs
    /// an instruction for eight of them. Lines without IDs stay with the producers.
    #[inline]
    pub(crate) fn prefetch(&self, count: usize) {
        if !Self::CAN_PREFETCH {
            return;
        }
        // Relaxed: nothing follows from it.
        let cursor = self.counters.cursor.load(Relaxed);
        let (first, second) = self.slots_from(cursor, count.min(self.len()));
        memory::prefetch(first);
        memory::prefetch(second);
    }

    /// Takes and drops the oldest IDs while they are `stale`. Looks no further than the
    /// IDs that are there now, since producers may add new ones faster than they can be
    /// looked at. `dropped` is called after each step with the number of IDs dropped, up
    /// to 64, and says whether to go on.
    ///
    /// IDs lie in the order of their ticks, except where several producers
    /// filled at once. So all IDs before a stale one count as stale, and the last ID of
    /// a step tells whether the whole step is.
    pub(crate) fn retire(
        &self,
        stale: impl Fn(Id) -> bool,
        mut dropped: impl FnMut(usize) -> bool,
    ) {
        let is_stale = |slot: &AtomicU64| stale(Id::from_u64(slot.load(Relaxed)));
        let mut left = self.len();
        loop {
            let step = left.min(FLAGS_PER_WORD as usize);
            let (retired, _) = self.take_with(step, |ring, cursor, available| {
                let (first, second) = ring.slots_from(cursor, available);
                if first.iter().chain(second).next_back().is_some_and(is_stale) {
                    return available;
                }
                first
                    .iter()
                    .chain(second)
                    .take_while(|slot| is_stale(slot))
                    .count()
            });
            if retired == 0 || !dropped(retired) {
                return;
            }
            left -= retired;
        }
    }

    /// The taking loop. `read` looks at up to `want` slots from a position on
    /// and says how many of them to take; it runs again if another consumer
    /// was faster. Returns how many were taken, and a lower bound of those left.
    #[inline]
    fn take_with(
        &self,
        want: usize,
        mut read: impl FnMut(&Self, u64, usize) -> usize,
    ) -> (usize, u64) {
        let mut backoff = ContentionBackoff::FIRST;
        loop {
            // The orderings are those of `take_leaving`.
            let cursor = self.counters.cursor.load(Acquire);
            let tail = self.counters.tail.load(Acquire);
            debug_assert!(cursor <= tail || tail == WIPED, "R2");
            let level = tail.wrapping_sub(cursor);
            // A `tail` much newer than `cursor`, or wiped, may lie more than a ring ahead;
            // the exchange will fail, but the slots must not be read twice.
            let available = level.min(want as u64).min(self.capacity() as u64) as usize;
            if available == 0 {
                return (0, level);
            }
            let count = read(self, cursor, available);
            if count == 0 {
                return (0, level);
            }
            let next = cursor + count as u64;
            let exchange = self
                .counters
                .cursor
                .compare_exchange(cursor, next, AcqRel, Relaxed);
            if exchange.is_ok() {
                return (count, level - count as u64);
            }
            backoff = backoff.wait();
        }
    }

    /// The level and the room, such that no take is overlooked: each take
    /// either is counted here, or happens after this call and sees all that
    /// its caller did before.
    ///
    /// Adding 0 is what makes it so. Takes and this are read-modify-writes of
    /// one word, hence in one order: an earlier take is seen, a later one
    /// acquires what was released here.
    pub(crate) fn settled_level(&self) -> Level {
        let cursor = self.counters.cursor.fetch_add(0, AcqRel);
        let tail = self.counters.tail.load(Acquire);
        let promised = self.counters.promised.load(Relaxed);
        Level {
            filled: tail.saturating_sub(cursor),
            room: (cursor + self.capacity() as u64).saturating_sub(promised),
        }
    }

    /// Whether some thread has reserved slots and not published them: until it does, what
    /// others publish after them reads as absent. True for a moment of each push.
    pub(crate) fn is_held_back(&self) -> bool {
        // Relaxed: a hint about another thread, which may go on or stop right after this.
        let tail = self.counters.tail.load(Relaxed);
        self.counters.reserved.load(Relaxed) != tail
    }

    /// Reserves slots as a thread does that is then stopped.
    #[cfg(test)]
    pub(crate) fn hold_back(&self, count: u64) {
        self.counters.promised.fetch_add(count, Relaxed);
        self.counters.reserved.fetch_add(count, Relaxed);
    }

    /// Whether a producer holds a permit, or has reserved slots that are not published.
    pub(crate) fn has_more_to_come(&self) -> bool {
        // `tail` first: a permit that is used up by then is counted in it.
        let tail = self.counters.tail.load(Acquire);
        self.counters.promised.load(Acquire) > tail
    }

    /// The number of IDs taken since the ring was made, retired ones included.
    pub(crate) fn taken(&self) -> u64 {
        // Relaxed: a figure for people.
        let cursor = self.counters.cursor.load(Relaxed);
        cursor.saturating_sub(self.capacity() as u64)
    }

    #[inline]
    fn slot(&self, position: u64) -> &AtomicU64 {
        let index = position as usize & (self.slots.len() - 1);
        &self.slots[index]
    }

    /// The `count` slots from `position` on, in two parts where they wrap.
    #[inline]
    fn slots_from(&self, position: u64, count: usize) -> (&[AtomicU64], &[AtomicU64]) {
        let start = position as usize & (self.slots.len() - 1);
        let to_the_end = &self.slots[start..];
        if count <= to_the_end.len() {
            (&to_the_end[..count], &[])
        } else {
            (to_the_end, &self.slots[..count - to_the_end.len()])
        }
    }
}

impl fmt::Debug for RingBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingBuffer")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish()
    }
}

/// The result of [`RingBuffer::settled_level`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// IDs that can be taken.
    pub(crate) filled: u64,
    /// Slots that no permit covers.
    pub(crate) room: u64,
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod placement {
    use super::*;
    use crate::placement::assert_apart;

    #[test]
    fn counters() {
        assert_apart!(Counters { [cursor] [tail] [reserved] [promised] });
    }
}

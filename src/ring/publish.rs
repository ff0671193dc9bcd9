//! The filling side: room, slots, flags, and the advance of `tail`.
//!
//! The head of `ring.rs` says in which order, and proves that it is right.

use super::error::PushError;
use super::permit::Permit;
use super::{FLAGS_PER_WORD, RingBuffer, WIPED};
use crate::id::Id;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::fence;

impl RingBuffer {
    /// Puts one ID at the end.
    ///
    /// Lock-free, about 20 ns; [`reserve`](Self::reserve) spreads that over many.
    ///
    /// # Errors
    ///
    /// [`PushError`] gives the ID back if the ring is full, or its room promised
    /// to others; always in a forked child.
    pub fn push(&self, id: Id) -> Result<(), PushError> {
        match self.push_batch(&[id]) {
            0 => Err(PushError(id)),
            _ => Ok(()),
        }
    }

    /// Puts as many of `ids` at the end as fit, from the front, and returns how many.
    ///
    /// They follow each other without a gap. Lock-free.
    #[must_use = "IDs that did not fit are still the caller's"]
    pub fn push_batch(&self, ids: &[Id]) -> usize {
        match self.reserve(ids.len()) {
            Some(permit) => permit.push(ids),
            None => 0,
        }
    }

    /// A permit to push up to `want` IDs, or fewer if there is room for fewer;
    /// `None` if the ring is full (or `want` is 0).
    ///
    /// Lock-free. The room is held until the permit is used or dropped; a permit that
    /// is forgotten (`std::mem::forget`) holds it for good.
    pub fn reserve(&self, want: usize) -> Option<Permit<'_>> {
        self.reserve_below(self.fill_limit(), want)
    }

    /// The position that producers may fill up to: `cursor + capacity`.
    ///
    /// A fill reads it once and works towards it: reading `cursor` again would
    /// take its cache line from the consumers each time.
    pub(crate) fn fill_limit(&self) -> u64 {
        // Acquire: pairs with the Release exchange of the take that made the
        // room; its read of the slot happened before what is written next.
        self.counters.cursor.load(Acquire) + self.capacity() as u64
    }

    /// [`reserve`](Self::reserve) against a `fill_limit` that was read before.
    pub(crate) fn reserve_below(&self, fill_limit: u64, want: usize) -> Option<Permit<'_>> {
        // Relaxed throughout: `promised` only counts. What orders the slots is
        // the Acquire in `fill_limit` and the AcqRel on `reserved`.
        let mut promised = self.counters.promised.load(Relaxed);
        loop {
            let count = fill_limit.saturating_sub(promised).min(want as u64);
            if count == 0 || promised == WIPED {
                return None;
            }
            match self.counters.promised.compare_exchange_weak(
                promised,
                promised + count,
                Relaxed,
                Relaxed,
            ) {
                Ok(_) => return Some(Permit::new(self, count as usize)),
                Err(now) => promised = now,
            }
        }
    }

    /// Whether there is room below a `fill_limit` that was read before.
    pub(crate) fn has_room_below(&self, fill_limit: u64) -> bool {
        // Relaxed: a thread that tries to reserve the room finds out.
        self.counters.promised.load(Relaxed) < fill_limit
    }

    /// Writes `ids` into slots of their own and publishes them.
    ///
    /// The caller holds a permit for them. Nothing in here can unwind. Returns
    /// whether the IDs are in the ring: `false` in a forked child.
    pub(super) fn fill(&self, ids: &[Id]) -> bool {
        let count = ids.len() as u64;
        // AcqRel: each producer happens after those that reserved before it
        // and so after the takes that made room for all of them.
        let start = self.counters.reserved.fetch_add(count, AcqRel);
        if start < self.capacity() as u64 {
            // Counting starts at `capacity`: this is a forked child with a permit of
            // its parent. The flags are the parent's, too, and would let old IDs pass.
            return false;
        }
        debug_assert!(
            // With `cursor` wiped the limit is one `capacity`.
            start + count <= self.fill_limit() || self.fill_limit() == self.capacity() as u64,
            "R2: a reserved slot was not yet taken"
        );
        let (first, second) = self.slots_from(start, ids.len());
        let (ids_first, ids_second) = ids.split_at(first.len());
        // Relaxed: published by the Release below.
        for (slot, id) in first.iter().zip(ids_first) {
            slot.store(id.to_u64(), Relaxed);
        }
        for (slot, id) in second.iter().zip(ids_second) {
            slot.store(id.to_u64(), Relaxed);
        }
        self.publish(start, start + count);
        self.advance_tail()
    }

    /// Flips the flags of the positions `start..end`.
    fn publish(&self, start: u64, end: u64) {
        let flags_in_use = self.flags_in_use();
        let mut position = start;
        while position < end {
            let first = position & (flags_in_use - 1);
            let count = (flags_in_use - first).min(end - position);
            let bits = (u64::MAX >> (u64::BITS as u64 - count)) << first;
            // Release: the slots are written (pairs with `ready_from`). A
            // flip, because other producers own other bits of the word.
            self.flags(position).fetch_xor(bits, Release);
            position += count;
        }
    }

    /// Moves `tail` over everything that is published from there on. `false` in a forked child.
    pub(super) fn advance_tail(&self) -> bool {
        // SeqCst: pairs with this very fence in the other producers. The one that
        // passes it second sees the flags of both.
        fence(SeqCst);
        let mut tail = self.counters.tail.load(Acquire);
        loop {
            if tail == WIPED {
                // A signal handler has forked this child in `fill`. The flags are the parent's,
                // and would let it take the parent's IDs.
                return false;
            }
            let ready = self.ready_from(tail);
            if ready == tail {
                return true;
            }
            // Release: the slots below `ready` are written (pairs with the
            // Acquire loads of `tail` in takes). Acquire on failure: the flags
            // up to the new tail are needed no more, those after it are.
            match self
                .counters
                .tail
                .compare_exchange(tail, ready, AcqRel, Acquire)
            {
                Ok(_) => return true,
                Err(now) => tail = now,
            }
        }
    }

    /// The first position at or after `tail` that is not published.
    fn ready_from(&self, tail: u64) -> u64 {
        let flags_in_use = self.flags_in_use();
        let mut position = tail;
        loop {
            // Acquire: pairs with the Release in `publish`.
            let flags = self.flags(position).load(Acquire);
            // The lowest bit of `position / capacity`.
            let round_is_odd = position & self.capacity() as u64 != 0;
            let ready = if round_is_odd { flags } else { !flags };
            let first = position & (flags_in_use - 1);
            let left = flags_in_use - first;
            let run = u64::from((ready >> first).trailing_ones()).min(left);
            position += run;
            if run < left {
                return position;
            }
        }
    }

    fn flags(&self, position: u64) -> &AtomicU64 {
        let index = position as usize & (self.slots.len() - 1);
        &self.published[index / FLAGS_PER_WORD as usize]
    }

    /// Flags in use per word: fewer than 64 only in a ring of fewer slots.
    fn flags_in_use(&self) -> u64 {
        FLAGS_PER_WORD.min(self.capacity() as u64)
    }
}

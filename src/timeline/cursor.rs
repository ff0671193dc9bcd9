//! Where the next claim from a lane begins.
//!
//! The word lies in memory that a forked child reads as zero. So it holds the next
//! position *plus one*, and 0 means that this is a forked child's copy, which has no
//! position to claim. Nothing here leads out of 0. Only this file knows.

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// The word with which a new lane begins.
pub(super) const FIRST: u64 = 1;

/// The next position of a lane, in a word that holds one more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(&'a AtomicU64);

impl<'a> Cursor<'a> {
    #[inline]
    pub(super) fn new(word: &'a AtomicU64) -> Self {
        Self(word)
    }

    /// The next position to be claimed; none in a forked child.
    #[inline]
    pub(super) fn next(self) -> Option<u64> {
        // Acquire: pairs with `reset`. A position that a later `Lane::open` set
        // brings the changed generation with it, and `Lane::still` sees that.
        self.0.load(Acquire).checked_sub(1)
    }

    /// Claims the positions `next..end`, if `next` is still the next one. Else gives
    /// the position that is, as [`next`](Self::next) does; the exchange may also fail
    /// where nothing has changed.
    #[inline]
    pub(super) fn advance(self, next: u64, end: u64) -> Result<(), Option<u64>> {
        // Acquire, also on failure: as in `next`. Release: a consumer that finds the lease
        // used up in `next` finds the room that was reserved before each claim
        // (`Filler::attempt`). That intervals are disjoint rests on the exchange alone.
        match self
            .0
            .compare_exchange_weak(next + 1, end + 1, AcqRel, Acquire)
        {
            Ok(_) => Ok(()),
            Err(word) => Err(word.checked_sub(1)),
        }
    }

    /// Goes to the first position, of a grant that nobody has claimed from. Does nothing in a
    /// forked child.
    pub(super) fn reset(self) {
        self.start_at(0);
    }

    /// Goes to `next`, of a grant that nobody else has claimed from. Does nothing in a forked
    /// child, also if a signal handler forks it in here.
    pub(super) fn start_at(self, next: u64) {
        let word = next.saturating_add(1);
        // Release: pairs with the Acquire in `next` and `advance`, see `Lane::open`.
        // The closure gives no value for 0, and the exchange fails if the word has become 0.
        let _ = self
            .0
            .fetch_update(AcqRel, Relaxed, |now| (now != 0).then_some(word));
    }
}

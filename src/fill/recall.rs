//! Recalling everything that was made: the ring, and what handles took from it.
//!
//! # State
//!
//! One word counts recalls: those under way in its low 16 bits, those finished
//! above.
//!
//! ```text
//!                 begin: + 1                    end: + 2^16 - 1
//!   (finished, 0) ----------> (finished, n > 0) ----------------> (finished + 1, n - 1)
//! ```
//!
//! No value comes back: between two ends the low part only grows, and each end
//! raises the high part. So a word that is unchanged says that nothing began and
//! nothing ended in between.
//!
//! A consumer that takes IDs to keep them ([`Handle`](crate::Handle), or a batch
//! that may be given back) notes the word before it takes them, as a
//! [`RecallMark`]. It issues them while the word is the one noted, and gives them
//! back only if that is so and no recall is under way.
//!
//! # Why nothing survives a recall (S4)
//!
//! A recall begins, retires what is in the ring, and ends. Take IDs that were made
//! before it began, and that a consumer has when it ends or later. They left the
//! ring in one of these ways:
//!
//! * *The mark was noted before the end.* The word has changed since: the consumer
//!   gives the IDs up at its next look. This holds for one that restocks in the
//!   middle of the retiring, too, which is why counting once, at the start, would
//!   not do: its mark would be that of the IDs made afterwards.
//! * *The mark was noted after the end.* The consumer acquired with it what the end
//!   released, the retiring included, so it took IDs that were in the ring after
//!   that. An old one can only have been brought in by a producer that held a
//!   permit when the recall began, or by a consumer that gave it back. Of a fill
//!   and a recall the one whose fence comes second sees the other: either the fill
//!   finds the lanes closed and makes nothing old, or its permit is seen, and the
//!   recall says that it must be called again. Giving back is a fill in this
//!   respect, and looks at the word where a fill looks at the lanes: while a recall
//!   is under way it gives nothing back, and from the beginning on the word is not
//!   the one noted.
//!
//! So once a recall has said that nothing is still to come, no old ID is in the
//! ring, and none in a stock passes the look.

use super::Filler;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::fence;

/// One finished recall, in the word.
const FINISHED: u64 = 1 << 16;

/// Counts recalls. Read by every take of a handle, and hardly ever written.
#[derive(Debug)]
pub(super) struct Recalls(AtomicU64);

/// The count of recalls as it was before some IDs were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecallMark(u64);

impl Recalls {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Whether nothing was recalled since `mark` was noted.
    #[inline]
    pub(super) fn is_unchanged_since(&self, mark: RecallMark) -> bool {
        // Relaxed: a take that runs at the same time as the recall may come
        // before it, and one that comes after it has it from its caller.
        self.0.load(Relaxed) == mark.0
    }

    /// To be noted before IDs are taken that are kept.
    pub(super) fn mark(&self) -> RecallMark {
        // Acquire: pairs with the Release in `end`. What is taken after this was
        // in the ring after that recall.
        RecallMark(self.0.load(Acquire))
    }

    /// Whether IDs taken at `mark` may go back into the ring: nothing was recalled
    /// since, and nothing is being recalled. The caller has passed a SeqCst fence
    /// since it got its permit.
    fn may_put_back(&self, mark: RecallMark) -> bool {
        // Relaxed: ordered by the fences in `put_back` and `recall`.
        let word = self.0.load(Relaxed);
        word == mark.0 && word.is_multiple_of(FINISHED)
    }

    fn begin(&self) {
        // Relaxed: ordered by the fence in `recall`.
        self.0.fetch_add(1, Relaxed);
    }

    fn end(&self) {
        // Release: pairs with the Acquire in `mark`.
        self.0.fetch_add(FINISHED - 1, Release);
    }
}

impl RecallMark {
    /// The mark as a number, for memory that a forked child reads as zero.
    pub(crate) fn to_word(self) -> u64 {
        self.0
    }

    /// The mark of a number from [`to_word`](Self::to_word).
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }
}

impl Filler {
    /// Drops every ID in the ring and in every handle. Returns whether producers
    /// or consumers that were at work have yet to bring in IDs from before;
    /// then it must be called again.
    ///
    /// The caller has closed the lanes that no more IDs are to come from.
    pub(crate) fn recall(&self) -> bool {
        self.recalls.begin();
        // SeqCst: pairs with the fences in `fill` and `put_back`. Of a fill and
        // a recall, the one whose fence comes second sees the other: either the
        // fill finds the lanes closed, or its permit is seen here.
        fence(SeqCst);
        let more = self.ring.has_more_to_come();
        // Only what is there now: where some lanes were left open, they fill on.
        self.ring.retire(
            |_| true,
            |count| {
                self.count_retired(count);
                true
            },
        );
        self.recalls.end();
        more
    }

    /// Puts back what a consumer has not used, and returns how many found room:
    /// none if something was recalled since `mark` was noted, or is just being.
    ///
    /// Where an age limit holds, only what is younger than a period: behind
    /// younger ones it is found that much later when it has grown too old.
    pub(crate) fn put_back(&self, ids: &[crate::Id], mark: RecallMark) -> usize {
        if ids.first().is_some_and(|&oldest| self.is_too_old(oldest)) {
            return 0;
        }
        let Some(permit) = self.ring.reserve(ids.len()) else {
            return 0;
        };
        // SeqCst: pairs with the fence in `recall`, as in `fill`.
        fence(SeqCst);
        if !self.recalls.may_put_back(mark) {
            return 0;
        }
        let pushed = permit.push(ids);
        self.waiters.notify();
        pushed
    }

    /// Whether `id` would outlive the age limit if it went back into the ring.
    fn is_too_old(&self, id: crate::Id) -> bool {
        self.schedule.is_some_and(|schedule| {
            schedule.age_limit().is_some() && {
                let now = self.source.timeline().clock().unix_ms();
                self.source.age(id, now) > schedule.period()
            }
        })
    }

    /// See [`RecallMark`].
    pub(crate) fn recall_mark(&self) -> RecallMark {
        self.recalls.mark()
    }

    /// Whether nothing was recalled since `mark` was noted.
    #[inline]
    pub(crate) fn is_unrecalled(&self, mark: RecallMark) -> bool {
        self.recalls.is_unchanged_since(mark)
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_survives_as_a_number() {
        let recalls = Recalls::new();
        for _ in 0..3 {
            let mark = recalls.mark();
            let word = mark.to_word();
            assert!(recalls.is_unchanged_since(RecallMark::from_word(word)));
            recalls.begin();
            assert!(!recalls.is_unchanged_since(RecallMark::from_word(word)));
            recalls.end();
        }
    }

    #[test]
    fn no_state_of_the_count_comes_back() {
        let recalls = Recalls::new();
        let mut marks = vec![recalls.mark()];
        // Two that overlap, then one alone.
        for step in [Recalls::begin, Recalls::begin, Recalls::end, Recalls::end]
            .into_iter()
            .chain([Recalls::begin as fn(&Recalls), Recalls::end])
        {
            let before = recalls.mark();
            step(&recalls);
            assert!(!recalls.is_unchanged_since(before));
            assert!(!marks.contains(&recalls.mark()));
            marks.push(recalls.mark());
        }
    }

    #[test]
    fn nothing_goes_back_while_a_recall_is_under_way() {
        let recalls = Recalls::new();
        assert!(recalls.may_put_back(recalls.mark()));
        recalls.begin();
        let amid = recalls.mark();
        assert!(recalls.is_unchanged_since(amid), "it may be issued still");
        assert!(!recalls.may_put_back(amid));
        recalls.end();
        assert!(!recalls.may_put_back(amid));
        assert!(recalls.may_put_back(recalls.mark()));
    }
}

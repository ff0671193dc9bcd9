//! Counts recalls: of everything that was made, in the ring and in the stocks that
//! handles took from it.
//!
//! # State
//!
//! One word counts recalls: those in progress in bits 8 to 23, those finished above. The low
//! 8 bits are always 0: stocks of cores keep their level there (`per_core::stocks`). The word
//! starts with one finished recall, so that no mark is 0.
//!
//! ```text
//!                 begin: + 2^8                  end: + 2^24 - 2^8
//!   (finished, 0) ----------> (finished, n > 0) ----------------> (finished + 1, n - 1)
//! ```
//!
//! No value comes back: between two ends the low part only grows, and each end
//! raises the high part. So a word that is unchanged says that nothing began and
//! nothing ended in between.
//!
//! A consumer that takes IDs to keep them (a handle, or a batch that may be given
//! back) notes the word before it takes them, as a [`RecallMark`]; a producer notes it
//! before it makes any. They issue these IDs while the word is the one noted. They
//! insert them into the ring only if the word is the one noted and no recall is under
//! way.
//!
//! A second word counts the threads that are inserting: from before they look at the
//! first until their IDs are published. Nothing in between calls a clock or waits for
//! anybody.
//!
//! # Why nothing survives a recall (S4)
//!
//! A recall begins, retires the IDs in the ring, and ends. Consider IDs that were made
//! before it began, and that a consumer has when it ends or later. They left the
//! ring in one of these ways:
//!
//! * *The mark was noted before the end.* The word has changed since: the consumer
//!   gives the IDs up at its next look. This holds also for one that restocks in the
//!   middle of the retiring. So counting once, at the start, would not do: its mark
//!   would be that of the IDs made afterwards.
//! * *The mark was noted after the end.* With the mark, the consumer acquired what the end
//!   released, the retiring included. So it took IDs that were in the ring after the retiring. An
//!   old one can only have been inserted meanwhile, by a producer that had made it or a consumer
//!   that gave it back, and on a mark from before the end: the IDs that a producer makes on a later
//!   mark are not old. Of the insertion and the recall, the one whose fence comes second sees the
//!   other. Either the mark is no longer the word, and the IDs are given up; or the thread is
//!   counted, and the recall reports that it must be called again; or it is not counted any more,
//!   and the IDs that it published are there to be retired.
//!
//! So once a recall has reported that nothing is still to come, no old ID is in the
//! ring, and none in a stock passes the look. A producer whose clock is stuck keeps
//! no recall waiting: it gives up what it makes when it comes back.
//!
//! Both fences are in `filler::insert`.

use crossbeam_utils::CachePadded;

use crate::per_core::stocks;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// One recall in progress, in the word.
const IN_PROGRESS: u64 = 1 << stocks::LEVEL_BITS;

/// One finished recall, in the word.
const FINISHED: u64 = IN_PROGRESS << 16;

#[derive(Debug)]
pub(super) struct Recalls {
    /// Read by every take of a handle, and hardly ever written.
    word: CachePadded<AtomicU64>,
}

/// Counts the threads that insert IDs into one stripe at this moment.
#[derive(Debug)]
pub(super) struct Insertions(CachePadded<AtomicU64>);

/// A thread that is counted as inserting, until this is dropped.
pub(super) struct Insertion<'a>(&'a Insertions);

impl Drop for Insertion<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `any`. A recall that finds
        // this thread no longer counted finds the IDs that it inserted.
        self.0.0.fetch_sub(1, Release);
    }
}

impl Insertions {
    pub(super) fn new() -> Self {
        Self(CachePadded::new(AtomicU64::new(0)))
    }

    /// Counts this thread as inserting.
    pub(super) fn begin(&self) -> Insertion<'_> {
        // Relaxed: ordered by the fence in `Filler::insert`.
        self.0.fetch_add(1, Relaxed);
        Insertion(self)
    }

    /// Whether any thread is counted as inserting.
    pub(super) fn any(&self) -> bool {
        // Acquire: pairs with the drop of `Insertion`.
        self.0.load(Acquire) > 0
    }
}

/// The count of recalls as it was before some IDs were taken or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecallMark(u64);

impl Recalls {
    pub(super) fn new() -> Self {
        Self {
            // Never 0: that is the mark of memory that was wiped in a forked child.
            word: CachePadded::new(AtomicU64::new(FINISHED)),
        }
    }

    /// Whether nothing was recalled since `mark` was noted.
    #[inline]
    pub(super) fn is_unchanged_since(&self, mark: RecallMark) -> bool {
        // Relaxed: a take that runs at the same time as the recall may come
        // before it, and one that comes after it has it from its caller.
        self.word.load(Relaxed) == mark.0
    }

    /// The mark whose stocks a take may use.
    #[inline]
    pub(super) fn current(&self) -> RecallMark {
        // Relaxed: as in `is_unchanged_since`.
        RecallMark(self.word.load(Relaxed))
    }

    /// The mark to note before IDs are made, or taken to be kept.
    pub(super) fn mark(&self) -> RecallMark {
        // Acquire: pairs with the Release in `end`. IDs that are taken after this were in the ring
        // after that recall. IDs that are made come from no lane closed before it.
        RecallMark(self.word.load(Acquire))
    }

    /// Whether IDs made or taken at `mark` may be inserted: nothing was recalled
    /// since, and nothing is being recalled. The caller has passed a SeqCst fence
    /// since it was counted.
    pub(super) fn admits(&self, mark: RecallMark) -> bool {
        // Relaxed: ordered by the fences in `Filler::insert` and `Filler::recall`.
        let word = self.word.load(Relaxed);
        word == mark.0 && word.is_multiple_of(FINISHED)
    }

    pub(super) fn begin(&self) {
        // Relaxed: ordered by the fence in `Filler::recall`.
        self.word.fetch_add(IN_PROGRESS, Relaxed);
    }

    pub(super) fn end(&self) {
        // Release: pairs with the Acquire in `mark`.
        self.word.fetch_add(FINISHED - IN_PROGRESS, Release);
    }
}

impl RecallMark {
    /// The mark as a number whose low 8 bits are 0, for memory that a forked child reads as zero.
    #[inline]
    pub(crate) fn to_word(self) -> u64 {
        self.0
    }

    /// The mark of a number from [`to_word`](Self::to_word).
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod placement {
    use super::*;
    use crate::placement::assert_apart;

    /// Every take of a handle reads it.
    #[test]
    fn recalls() {
        assert_apart!(Recalls { [word] });
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
    fn nothing_is_inserted_while_a_recall_is_under_way() {
        let recalls = Recalls::new();
        assert!(recalls.admits(recalls.mark()));
        recalls.begin();
        let amid = recalls.mark();
        assert!(recalls.is_unchanged_since(amid), "it may be issued still");
        assert!(!recalls.admits(amid));
        recalls.end();
        assert!(!recalls.admits(amid));
        assert!(recalls.admits(recalls.mark()));
    }

    #[test]
    fn a_thread_is_counted_until_it_has_inserted() {
        let insertions = Insertions::new();
        let [first, second] = [insertions.begin(), insertions.begin()];
        assert!(insertions.any());
        drop(first);
        assert!(insertions.any());
        drop(second);
        assert!(!insertions.any());
    }
}

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
//! [`RecallMark`]; a producer notes it before it makes any. They issue them while
//! the word is the one noted, and bring them into the ring only if that is so and
//! no recall is under way.
//!
//! Whoever brings IDs into the ring is counted from before that look until they are
//! published. Nothing in between calls a clock or waits for anybody.
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
//!   that. An old one can only have been brought in meanwhile, by a producer that
//!   had made it or a consumer that gave it back, and on a mark from before the end:
//!   what a producer makes on a later mark is not old. Of the bringing in and the
//!   recall, the one whose fence comes second sees the other: either the mark is no
//!   longer the word, and what was to be brought in is given up; or the thread is
//!   counted, and the recall says that it must be called again; or it is not counted
//!   any more, and what it published is there to be retired.
//!
//! So once a recall has said that nothing is still to come, no old ID is in the
//! ring, and none in a stock passes the look. A producer whose clock is stuck keeps
//! no recall waiting: what it makes is given up when it comes back.

use crossbeam_utils::CachePadded;

use super::Filler;
use crate::Id;
use crate::ring::Permit;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::fence;
use crate::unwind::catching;

/// One finished recall, in the word.
const FINISHED: u64 = 1 << 16;

/// Counts recalls, and who brings IDs into the ring.
#[derive(Debug)]
pub(super) struct Recalls {
    /// Read by every take of a handle, and hardly ever written.
    word: CachePadded<AtomicU64>,
    /// How many threads are just bringing IDs in.
    bringing: CachePadded<AtomicU64>,
}

/// A thread that is counted as bringing IDs in.
pub(super) struct Bringing<'a>(&'a Recalls);

impl Drop for Bringing<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `recall`. What was brought in is there
        // for one that finds this thread counted no more.
        self.0.bringing.fetch_sub(1, Release);
    }
}

/// The count of recalls as it was before some IDs were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecallMark(u64);

impl Recalls {
    pub(super) fn new() -> Self {
        Self {
            word: CachePadded::new(AtomicU64::new(0)),
            bringing: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// Whether nothing was recalled since `mark` was noted.
    #[inline]
    pub(super) fn is_unchanged_since(&self, mark: RecallMark) -> bool {
        // Relaxed: a take that runs at the same time as the recall may come
        // before it, and one that comes after it has it from its caller.
        self.word.load(Relaxed) == mark.0
    }

    /// To be noted before IDs are taken that are kept, or made.
    pub(super) fn mark(&self) -> RecallMark {
        // Acquire: pairs with the Release in `end`. What is taken after this was
        // in the ring after that recall, and what is made is not of lanes that were
        // closed before it.
        RecallMark(self.word.load(Acquire))
    }

    /// Counts this thread until what this gives is dropped.
    pub(super) fn bringing(&self) -> Bringing<'_> {
        // Relaxed: ordered by the fence in `bring_in`.
        self.bringing.fetch_add(1, Relaxed);
        Bringing(self)
    }

    /// Whether IDs made or taken at `mark` may be brought into the ring: nothing was
    /// recalled since, and nothing is being recalled. The caller has passed a SeqCst
    /// fence since it was counted.
    fn lets_in(&self, mark: RecallMark) -> bool {
        // Relaxed: ordered by the fences in `bring_in` and `recall`.
        let word = self.word.load(Relaxed);
        word == mark.0 && word.is_multiple_of(FINISHED)
    }

    fn begin(&self) {
        // Relaxed: ordered by the fence in `recall`.
        self.word.fetch_add(1, Relaxed);
    }

    fn end(&self) {
        // Release: pairs with the Acquire in `mark`.
        self.word.fetch_add(FINISHED - 1, Release);
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
    /// Drops every ID in the ring and in every handle. Returns whether threads that
    /// are just bringing in IDs may bring in some from before; then it must be
    /// called again.
    ///
    /// The caller has closed the lanes that no more IDs are to come from.
    pub(crate) fn recall(&self) -> bool {
        self.recalls.begin();
        // SeqCst: pairs with the fence in `bring_in`. The one whose fence comes
        // second sees the other: either the mark is found to have passed, or
        // whoever brings in is counted here.
        fence(SeqCst);
        // Acquire: pairs with the drop of `Bringing`.
        let more = self.recalls.bringing.load(Acquire) > 0;
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
    pub(crate) fn put_back(&self, ids: &[Id], mark: RecallMark) -> usize {
        if ids.first().is_some_and(|&oldest| self.is_too_old(oldest)) {
            return 0;
        }
        let Some(permit) = self.ring.reserve(ids.len()) else {
            return 0;
        };
        let pushed = self.bring_in(permit, ids, mark);
        if pushed == 0 {
            // A producer may have gone to sleep, and a consumer, since all the room
            // was promised here.
            self.ask_for_what_is_missing();
            self.wake_waiters();
        }
        pushed
    }

    /// Brings IDs into the ring that were made or taken at `mark`, and returns how
    /// many: none if something was recalled since, or is just being.
    pub(super) fn bring_in(&self, permit: Permit<'_>, ids: &[Id], mark: RecallMark) -> usize {
        let counted = self.recalls.bringing();
        // SeqCst: pairs with the fence in `recall`.
        fence(SeqCst);
        if !self.recalls.lets_in(mark) {
            return 0;
        }
        let pushed = permit.push(ids);
        drop(counted);
        if pushed > 0 {
            self.waiters.notify();
        }
        pushed
    }

    /// Whether `id` would outlive the age limit if it went back into the ring, or that
    /// can't be told: this runs in drops, where a clock must not panic.
    fn is_too_old(&self, id: Id) -> bool {
        let Some(schedule) = self.schedule.filter(|it| it.age_limit().is_some()) else {
            return false;
        };
        let age = catching(|| {
            let now = self.source.timeline().clock().unix_ms();
            self.source.age(id, now)
        });
        age.is_none_or(|age| age > schedule.period())
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
        assert!(recalls.lets_in(recalls.mark()));
        recalls.begin();
        let amid = recalls.mark();
        assert!(recalls.is_unchanged_since(amid), "it may be issued still");
        assert!(!recalls.lets_in(amid));
        recalls.end();
        assert!(!recalls.lets_in(amid));
        assert!(recalls.lets_in(recalls.mark()));
    }
}

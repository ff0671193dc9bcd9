//! Inserting IDs into the stripes, and recalling them.
//!
//! `fill::recall` proves that no inserted ID survives a recall.

use super::Filler;
use crate::fill::recall::RecallMark;
use crate::fill::stripe::Stripe;
use crate::id::Id;
use crate::ring::Permit;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::atomic::fence;
use crate::unwind::catching;

impl Filler {
    /// Drops every ID in the stripes and in every handle. Returns whether threads that
    /// are inserting at this moment may insert IDs from before; then it must be called
    /// again.
    ///
    /// The caller has closed the lanes that no more IDs are to come from.
    pub(crate) fn recall(&self) -> bool {
        self.recalls.begin();
        // SeqCst: pairs with the fence in `insert`. The one whose fence comes
        // second sees the other: either the mark is found to have passed, or
        // the inserting thread is counted here.
        fence(SeqCst);
        let more = self.stripes.iter().any(|stripe| stripe.insertions.any());
        for stripe in self.stripes.iter() {
            // Only the IDs that are there now: where some lanes were left open, fills go on.
            stripe.ring.retire(
                |_| true,
                |count| {
                    stripe.count_retired(count);
                    true
                },
            );
        }
        self.recalls.end();
        more
    }

    /// Puts unused IDs of a consumer back, and returns how many found room: none if
    /// something was recalled since `mark` was noted, or is being recalled.
    ///
    /// With an age limit, only IDs younger than a period go back: behind younger ones
    /// an ID that grows too old is found that much later.
    pub(crate) fn put_back(&self, ids: &[Id], mark: RecallMark) -> usize {
        if ids.first().is_some_and(|&oldest| self.is_too_old(oldest)) {
            return 0;
        }
        let mut left = ids;
        for place in self.stripes.places_from(self.stripes.here()) {
            let stripe = &self.stripes[place];
            let Some(permit) = stripe.ring.reserve(left.len()) else {
                continue;
            };
            let pushed = self.stock(stripe, permit, left, mark);
            if pushed == 0 {
                break;
            }
            left = &left[pushed..];
        }
        ids.len() - left.len()
    }

    /// Inserts IDs that a consumer made or took at `mark` into a stripe, and returns how
    /// many: none if something was recalled since, or is being recalled.
    pub(super) fn stock(
        &self,
        stripe: &Stripe,
        permit: Permit<'_>,
        ids: &[Id],
        mark: RecallMark,
    ) -> usize {
        let pushed = self.insert(stripe, permit, ids, mark);
        if pushed == 0 {
            // A consumer may have gone to sleep since room was promised here.
            self.wake_waiters();
        }
        // R4: a producer may have found no room, and left the fill to this thread, which
        // has had more room than IDs.
        self.note_level(stripe, stripe.ring.settled_level().filled);
        pushed
    }

    /// Inserts IDs that were made or taken at `mark` into a stripe, and returns how
    /// many: none if something was recalled since, or is being recalled.
    pub(super) fn insert(
        &self,
        stripe: &Stripe,
        permit: Permit<'_>,
        ids: &[Id],
        mark: RecallMark,
    ) -> usize {
        let insertion = stripe.insertions.begin();
        // SeqCst: pairs with the fence in `recall`.
        fence(SeqCst);
        if !self.recalls.admits(mark) {
            return 0;
        }
        let pushed = permit.push(ids);
        drop(insertion);
        if pushed > 0 {
            self.waiters.notify();
        }
        pushed
    }

    /// Whether `id` would outlive the age limit if it went back into the ring. Also
    /// `true` if the clock panics: this runs in drops, where nothing may unwind.
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

    /// The mark to note before IDs are taken to be kept.
    pub(crate) fn recall_mark(&self) -> RecallMark {
        self.recalls.mark()
    }

    /// Whether nothing was recalled since `mark` was noted.
    #[inline]
    pub(crate) fn is_unrecalled(&self, mark: RecallMark) -> bool {
        self.recalls.is_unchanged_since(mark)
    }
}

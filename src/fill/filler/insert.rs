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
        // In a forked child, threads that were inserting stay counted for ever.
        more && !self.source.timeline().is_forked()
    }

    /// Puts unused IDs of a consumer back, and returns how many found room: none if
    /// something was recalled since `mark` was noted, or is being recalled.
    ///
    /// With an age limit, only IDs younger than a period go back: behind younger ones
    /// an ID that grows too old is found that much later.
    pub(crate) fn put_back(&self, ids: &[Id], mark: RecallMark) -> usize {
        if self.any_is_too_old(ids) {
            return 0;
        }
        let mut left = ids;
        for place in self.stripes.places_from(self.stripes.here()) {
            let Some(room) = self.reserve(&self.stripes[place], left.len()) else {
                continue;
            };
            let pushed = room.stock(left, mark);
            if pushed == 0 {
                break;
            }
            left = &left[pushed..];
        }
        ids.len() - left.len()
    }

    /// Room in a stripe for up to `want` IDs of a consumer; `None` if there is none.
    pub(super) fn reserve<'a>(
        &'a self,
        stripe: &'a Stripe,
        want: usize,
    ) -> Option<Reservation<'a>> {
        let permit = stripe.ring.reserve(want)?;
        Some(Reservation {
            filler: self,
            stripe,
            len: permit.len(),
            permit: Some(permit),
            stocked: 0,
        })
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
            self.notify_waiters();
        }
        pushed
    }

    /// Whether one of `ids` would outlive the age limit if it went back into a stripe: any
    /// of them, since they may come from several. Also `true` if the clock panics: this
    /// runs in drops, where nothing may unwind.
    fn any_is_too_old(&self, ids: &[Id]) -> bool {
        let Some(schedule) = self.schedule.filter(|it| it.age_limit().is_some()) else {
            return false;
        };
        let now = catching(|| self.source.timeline().clock().unix_ms());
        now.is_none_or(|now| {
            ids.iter()
                .any(|&id| self.source.age(id, now) > schedule.period())
        })
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

/// Room in a stripe that a consumer has reserved, for IDs that it makes, moves or gives back.
///
/// R4: a producer that finds no room meanwhile leaves the fill to this thread, and a consumer
/// may go to sleep because of what is to come. So whatever becomes of the room, also by a
/// panic, the drop looks at the level, and wakes who waits for nothing.
pub(super) struct Reservation<'a> {
    filler: &'a Filler,
    stripe: &'a Stripe,
    len: usize,
    permit: Option<Permit<'a>>,
    stocked: usize,
}

impl Reservation<'_> {
    /// For how many IDs; never 0.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Inserts IDs that were made or taken at `mark`, and returns how many: none if
    /// something was recalled since, or is being recalled.
    pub(super) fn stock(mut self, ids: &[Id], mark: RecallMark) -> usize {
        if let Some(permit) = self.permit.take() {
            self.stocked = self.filler.insert(self.stripe, permit, ids, mark);
        }
        self.stocked
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        drop(self.permit.take());
        // A clock may have forked since. The producers are the parent's.
        if self.filler.source.timeline().is_forked() {
            return;
        }
        if self.stocked == 0 {
            self.filler.wake_waiters();
        }
        let level = self.stripe.ring.settled_level();
        self.filler.note_level(self.stripe, level.filled);
    }
}

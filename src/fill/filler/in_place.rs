//! IDs that a consumer makes itself, and what it puts into its stripe by the way.
//!
//! A claim on the timeline and the set-up of a run of the cipher cost as much as some
//! hundred IDs. So a consumer that makes one makes a *run*: as many as about a microsecond
//! allows, gives out what it was asked for and puts the rest into the stripe of its core,
//! or into the next one that no stopped thread holds back, which would hide them.
//! The rest are IDs like a producer's: made under a permit, so that there is room, and
//! under a recall mark, so that none of them outlives an invalidation.

use super::{Filler, LONGEST_RUN};
use crate::id::Id;
use crate::sync;
use crate::timeline::Refused;

/// A consumer that is asked for this part of a run, a quarter, has shared the cost out well
/// enough, and makes no more: what it put into its stripe would be copied twice. In a model,
/// where a run is two IDs, all of it.
const ENOUGH: usize = sync::size(4, 1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MadeInPlace {
    /// IDs given to the consumer, at least 1.
    pub(crate) given: usize,
    /// IDs put into its stripe.
    pub(crate) stocked: usize,
}

impl Filler {
    /// Makes up to `out.len()` IDs for `out`, which must not be empty, and some more for
    /// a stripe if there is room.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the timeline is at a limit; then none are made.
    pub(crate) fn make_in_place(&self, out: &mut [Id]) -> Result<MadeInPlace, Refused> {
        let is_short = out.len() < self.run / ENOUGH;
        let open = |&place: &usize| !self.stripes[place].ring.is_held_back();
        let room = (self.stripes.places_from(self.stripes.here()))
            .find(|place| is_short && open(place))
            .and_then(|place| self.reserve(&self.stripes[place], self.run - out.len()));
        let Some(room) = room else {
            let given = self.source.mint(out)?;
            return Ok(MadeInPlace { given, stocked: 0 });
        };
        // Before anything is made, see `recall`.
        let mark = self.recalls.mark();
        let mut run = [Id::default(); LONGEST_RUN];
        let made = self.source.mint(&mut run[..out.len() + room.len()])?;
        let given = made.min(out.len());
        let (for_out, for_stripe) = run[..made].split_at(given);
        out[..given].copy_from_slice(for_out);
        let stocked = room.stock(for_stripe, mark);
        self.count_given_up(for_stripe.len() - stocked);
        Ok(MadeInPlace { given, stocked })
    }
}

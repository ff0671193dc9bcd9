//! Keeping the ring full: the policies, the producers, and how they are woken.
//!
//! Three policies decide when: [`PaddingFill`] at the start, [`ThresholdFill`]
//! when a take leaves too few IDs, [`ScheduledFill`] once a period. Any of them can
//! be combined. One or more producer threads do the work.
//!
//! # State
//!
//! `wanted` holds one bit per cause for which a fill is wanted (`requests`).
//!
//! ```text
//!              a take leaves fewer than the threshold
//!   idle ------------------------------------------------> wanted
//!    ^            (first one only: one producer woken)        | a producer
//!    |                                                        v sees the bit
//!    |   full: clear the bit, then look at the level       filling
//!    +--------------------------------------------------------+
//!                      still under the threshold: wanted again
//! ```
//!
//! A producer that has more than a block to make wakes another, which does the same.
//!
//! # One producer that fails, and the others (R3)
//!
//! A producer runs other people's code: a clock, a hook, a subscriber. Where that
//! gets stuck or panics, the producer has taken on a request and perhaps holds a
//! permit, and the others have to go on without it:
//!
//! * A permit is for at most `capacity / (2 x producers)`, and for at least one ID. So
//!   where the ring has two slots for each producer, all permits together hold
//!   half of it, and the other half is there to be filled.
//! * A producer that has got a permit and sees more room wakes another before it makes
//!   anything.
//! * Where the stuck producer holds all the room there was, the bit stays set and takes
//!   ask nobody, until one leaves the ring empty: that take wakes another producer
//!   whatever the bit says, and this producer serves the request and clears the bit.
//! * A panic leaves the bit set and wakes another producer.
//! * All producers share one timetable, see `timetable`.
//!
//! # Why no wake-up is lost (R4)
//!
//! A take that finds the bit set does nothing, trusting that a producer will
//! still look at the level. It will: the producer clears the bit first and
//! then looks with `RingBuffer::settled_level`, which either counts that take,
//! or is seen by it together with the cleared bit. A producer that finds the
//! ring under the threshold but without room leaves the fill to the producer that holds
//! the missing permits, which settles after publishing.
//!
//! `requests` explains how producers sleep and are woken, and `waiters` how consumers
//! wait for them.
//!
//! A fill that is refused by the timeline, or that panics, leaves its bits set
//! and is tried again after a pause, so a broken clock or hook blocks nothing. The
//! pause is never longer than the time to the next scheduled fill, so that age limits
//! are kept.

mod filler;
#[cfg(feature = "loom")]
pub(crate) mod model;
mod policy;
mod producers;
mod recall;
mod requests;
mod stripe;
#[cfg(test)]
mod tests;
mod timetable;
mod waiters;

pub(crate) use self::filler::{FilledWait, Filler, FillerParts, FullHook, MadeInPlace};
pub(crate) use self::policy::FillCause;
pub use self::policy::{
    AssistFill, PaddingFill, PolicyError, RingFull, ScheduledFill, ThresholdFill,
};
pub(crate) use self::producers::Producers;
pub(crate) use self::recall::RecallMark;
pub(crate) use self::stripe::Stripe;
pub(crate) use self::waiters::Waiting;

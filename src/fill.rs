//! Keeping the ring full: when, by whom, and how they are woken.
//!
//! Three policies decide when: [`PaddingFill`] at the start, [`ThresholdFill`]
//! when a take leaves too few, [`ScheduledFill`] from time to time. They can
//! be had apart or together. One or more producer threads do the work. A
//! threshold may move: `adaptive` has the law, `watermark` keeps to it.
//!
//! # State
//!
//! `wanted` holds one bit per cause for which a fill is wanted ([`Requests`]).
//!
//! ```text
//!              a take leaves fewer than the threshold
//!   idle ------------------------------------------------> wanted
//!    ^            (first one only: one producer woken)        | a producer
//!    |                                                        v sees the bit
//!    |   brimful: clear the bit, then look at the level    filling
//!    +--------------------------------------------------------+
//!                      still under the threshold: wanted again
//! ```
//!
//! A producer that has more than a block to make wakes another, and so on.
//!
//! # Why no wake-up is lost (R4)
//!
//! A take that finds the bit set does nothing, trusting that a producer will
//! still look at the level. It will: the producer clears the bit first and
//! then looks with `RingBuffer::settled_level`, which either counts that take,
//! or is seen by it together with the cleared bit. A producer that finds the
//! ring under the threshold but without room leaves it to whoever holds the
//! missing permits; that producer settles after publishing.
//!
//! A producer sleeps in two steps: it says that it is idle, then looks at
//! `wanted` once more. Whoever raises a request does the reverse. Both touch
//! `wanted` with a read-modify-write, so one of them sees the other; and an
//! unparking that comes before the parking is kept by the thread's token. One
//! that is stalled is awake and not idle, so wake-ups go to the others.
//!
//! A fill that is refused by the timeline, or that panics, leaves its bits set
//! and is tried again after a pause, so a broken clock or hook wedges nothing.

mod adaptive;
mod filler;
mod policy;
mod producers;
mod recall;
mod requests;
mod waiters;
mod watermark;

pub(crate) use self::adaptive::{Law, Seen, Targets};
pub(crate) use self::filler::{Filler, FullHook};
pub use self::policy::{
    FillCause, PaddingFill, PolicyError, RingFull, ScheduledFill, ThresholdFill,
};
pub(crate) use self::producers::Producers;
pub(crate) use self::recall::RecallMark;
pub(crate) use self::requests::Requests;

//! Why a grant is refused any change.

use crate::describe::describe;
use crate::lease::block::Epoch;

/// Which comparison of a guarded change failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fence {
    /// The store has never granted the block, or has forgotten it.
    NeverGranted,
    /// The block was granted again since.
    Epoch {
        /// The epoch of the grant at hand.
        held: Epoch,
        /// The epoch of the block's last grant.
        recorded: Epoch,
    },
    /// The end was moved: by a copy of this process, or by a request whose
    /// reply was lost.
    End {
        /// The end that the holder knows.
        known: u64,
        /// The end on record.
        recorded: u64,
    },
    /// The floor has risen above the grant's end. The ticks after it may have
    /// been granted to another holder by a store whose history was lost.
    Floor {
        /// The end that the holder knows.
        known: u64,
        /// The floor.
        floor: u64,
    },
    /// The store was replaced by another, or restored, since the namespace's
    /// last grant. The next grant raises the floor, unless the store is a copy.
    Incarnation,
    /// The store is a tier, and the machine has lost the block to the upstream store,
    /// or gives it up.
    Upstream,
    /// The block's record can't be true, and the block is out of use until it is
    /// repaired.
    Quarantined {
        /// The rule that the record breaks.
        reason: String,
    },
}

describe! {
    Fence;

    Self::NeverGranted => "the store records no grant of it";
    Self::Epoch { held, recorded } => "its last grant has epoch {recorded}, not {held}";
    Self::End { known, recorded } =>
        "its end is at tick {recorded} in the store, and at tick {known} in the request";
    Self::Floor { known, floor } =>
        "its end at tick {known} is below the floor at tick {floor}";
    Self::Incarnation => "the store was replaced or restored";
    Self::Upstream => "this machine no longer holds the block";
    Self::Quarantined { reason } => "it is quarantined until it is repaired: {reason}";
}

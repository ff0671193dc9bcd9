//! Blocks whose record can't be true, and how they come back.
//!
//! # States of a block's record
//! ```text
//! none --acquire--> granted --acquire, renew, release--> granted
//!   \                  |                                    ^
//!    \               damage                                 |
//!     \                v                                    |
//!      `-damage-> quarantined --repair--> released at a mark above all --acquire--'
//! ```
//! Only a repair leads out of quarantine. Meanwhile the block is not chosen, and its grant is
//! neither renewed nor released ([`Fence::Quarantined`]). Its holder uses up the confirmed ticks.
//! All other blocks go on.
//!
//! A record is judged wherever it is read, and only by the fields that decide: the
//! block's number, the epoch and the mark ([`fault`]); and whether it is released has to
//! be readable. The time and the holder are for people, and are left out if they can't
//! be read. A record that is false but possible
//! is not found here, only by what was confirmed (S8).
//!
//! # Why a repaired block is disjoint from all before
//! * **The mark.** By S7 a grant or renewal made at `t`, by the store's clock, ends at
//!   `t + horizon` or before. A repair at `now` puts the mark at
//!   [`floor_over_lost_grants`](StoreRecord::floor_over_lost_grants), or where the
//!   floor or a mark that can still be read lies after that. So it is above all that
//!   was granted, by this server and by one that it has replaced, and the next grant
//!   starts there (S1). As with a lost history this takes the store's clock to be right,
//!   so the caller's must agree with it.
//! * **The epoch.** A grant has at least one tick and begins where the one before has
//!   ended, so an epoch is never above its end. A repair makes the epoch equal to the
//!   mark: it is above every epoch before, and a request that names one of those fails.
//! * **One step.** The record is read, judged and written in one transaction or script,
//!   or under a comparison with the record as read. A record that has changed meanwhile
//!   is judged anew, and one that has become sound is left as it is.
//! * **The namespace.** `horizon`, `failover` and the floor are those of its record. If the record
//!   can't be read, nothing is repaired, nor granted.

use std::fmt;

use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::{Fence, StoreError};
use crate::lease::events;
use crate::lease::namespace::Namespace;
use crate::lease::store::record::StoreRecord;

/// A record of a block that no rule can have left behind. The block is not granted
/// until it was [repaired](crate::lease::LeaseStore::repair).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// The block; none where the record is of none that the namespace has. Nothing is
    /// granted by such a record, and nothing can be repaired: delete it.
    pub block: Option<Block>,
    /// The rule that the record breaks.
    pub reason: String,
}

impl Quarantined {
    /// The record of this block, for a reason.
    pub fn new(block: Block, reason: impl Into<String>) -> Self {
        Self {
            block: Some(block),
            reason: reason.into(),
        }
    }

    /// A record of no block.
    pub fn of_no_block(reason: impl Into<String>) -> Self {
        Self {
            block: None,
            reason: reason.into(),
        }
    }

    /// The answer to a renewal or a release of its grant.
    pub(in crate::lease) fn fence(self, namespace: &Namespace, block: Block) -> StoreError {
        self.log(namespace);
        StoreError::Fenced {
            block,
            fence: Fence::Quarantined {
                reason: self.reason,
            },
        }
    }

    /// Emits an event, once for each block and process.
    pub(in crate::lease) fn log(&self, namespace: &Namespace) {
        let block = self.block.map(Block::index);
        events::block_quarantined(namespace.name(), block, &self.reason);
    }
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Some(block) => write!(f, "block {block}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// What a block's record says, or why that can't be.
pub(in crate::lease) type Judged = Result<BlockState, Quarantined>;

/// Why these numbers are of no block that was granted or never was.
pub(crate) fn fault(namespace: &Namespace, block: u64, epoch: u64, mark: u64) -> Option<String> {
    let (blocks, ticks) = (namespace.blocks(), namespace.layout().ticks());
    if block >= blocks {
        Some(format!(
            "a record is of block {block}, and there are {blocks} blocks"
        ))
    } else if mark > ticks {
        Some(format!(
            "its mark is tick {mark}, and the layout has {ticks} ticks"
        ))
    } else if epoch > mark {
        Some(format!(
            "its grant number (epoch) is {epoch}, but its mark is tick {mark}, which is impossible: \
             each grant moves the mark by at least one tick"
        ))
    } else if epoch == 0 && mark > 0 {
        Some(format!(
            "it was never granted (its epoch is 0), but its mark is tick {mark}"
        ))
    } else {
        None
    }
}

/// `state` unless it can't be true.
pub(in crate::lease) fn judge(namespace: &Namespace, state: BlockState) -> Judged {
    let (block, epoch) = (state.block, state.epoch);
    match fault(namespace, block.index(), epoch.get(), state.hwm_end) {
        None => Ok(state),
        Some(reason) if block.index() < namespace.blocks() => Err(Quarantined::new(block, reason)),
        Some(reason) => Err(Quarantined::of_no_block(reason)),
    }
}

impl StoreRecord {
    /// The state of a block after a repair, at the store's time in ticks: released,
    /// with no holder, and with a mark and an epoch above all that can have been
    /// granted of it; see there. `mark` is the one on record, if that can be read.
    pub fn repaired(&self, now: u64, block: Block, mark: Option<u64>) -> BlockState {
        let ticks = self.namespace.layout().ticks();
        let on_record = mark.filter(|mark| *mark <= ticks).unwrap_or(0);
        let over = self.floor_over_lost_grants(now);
        // No grant ends after the layout.
        let end = over.max(self.floor).max(on_record).min(ticks);
        let mut state = BlockState::new(block, Epoch::new(end), end);
        state.released = true;
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::{Fingerprint, Incarnation, StoreLimits};

    const TICKS: u64 = Layout::RANDFLAKE.ticks();

    fn space() -> Namespace {
        Namespace::new("quarantine", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
    }

    fn judged(block: u64, epoch: u64, mark: u64) -> Judged {
        judge(
            &space(),
            BlockState::new(Block::new(block), Epoch::new(epoch), mark),
        )
    }

    #[test]
    fn records_that_the_rules_leave_behind_are_sound() {
        for (block, epoch, mark) in [(0, 0, 0), (4095, 1, 1), (7, 3, 4711), (7, TICKS, TICKS)] {
            assert!(judged(block, epoch, mark).is_ok(), "{block} {epoch} {mark}");
        }
    }

    #[test]
    fn a_record_that_no_rule_leaves_is_quarantined_with_its_numbers() {
        for (epoch, mark, said) in [
            (1, TICKS + 1, "1073741825"),
            (8, 7, "(epoch) is 8"),
            (0, 9, "mark is tick 9"),
            (u64::MAX, 5, "its mark is tick 5"),
        ] {
            let found = judged(7, epoch, mark).unwrap_err();
            assert_eq!(found.block, Some(Block::new(7)));
            assert!(found.to_string().starts_with("block 7: "), "{found}");
            assert!(found.reason.contains(said), "{found}");
        }
        let found = judged(4096, 1, 1).unwrap_err();
        assert_eq!(found.block, None);
        assert!(found.to_string().contains("block 4096"), "{found}");
    }

    #[test]
    fn a_repair_is_above_lost_grants_the_floor_and_a_legible_mark() {
        let mut record =
            StoreRecord::new(space(), StoreLimits::default(), 5, Incarnation::new("x"));
        let (now, block) = (1_000_000, Block::new(7));
        let over = record.floor_over_lost_grants(now);
        let end = |record: &StoreRecord, mark| {
            let state = record.repaired(now, block, mark);
            assert_eq!((state.block, state.released), (block, true));
            assert_eq!(state.epoch.get(), state.hwm_end);
            assert!(judge(&space(), state.clone()).is_ok());
            state.hwm_end
        };
        assert_eq!(end(&record, None), over);
        assert_eq!(end(&record, Some(3)), over);
        assert_eq!(end(&record, Some(over + 9)), over + 9);
        assert_eq!(end(&record, Some(TICKS)), TICKS);
        assert_eq!(end(&record, Some(TICKS + 1)), over);
        record.floor = over + 5;
        assert_eq!(end(&record, None), over + 5);
        record.floor = TICKS + 9;
        assert_eq!(end(&record, None), TICKS);
    }
}

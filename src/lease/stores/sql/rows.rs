//! Blocks as rows.

use crate::lease::error::StoreError;
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::{self, Judged};
use crate::lease::record::StoreRecord;
use crate::lease::stores::row::from_column;

/// The columns of a block, but for its namespace. All numbers are below 2^63.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) struct BlockRow {
    pub(in crate::lease::stores) block: i64,
    /// 0 as long as the block was never granted.
    pub(in crate::lease::stores) epoch: i64,
    pub(in crate::lease::stores) hwm_end: i64,
    pub(in crate::lease::stores) released: bool,
    pub(in crate::lease::stores) granted_unix_ms: Option<i64>,
    pub(in crate::lease::stores) holder_host: Option<String>,
    pub(in crate::lease::stores) holder_instance: Option<String>,
}

impl BlockRow {
    /// What these columns say of a block, or why they can't.
    pub(in crate::lease::stores) fn judge(self, namespace: &Namespace) -> Judged {
        let mut state = quarantine::of_columns(namespace, self.block, self.epoch, self.hwm_end)?;
        state.released = self.released;
        state.granted_unix_ms = self.granted_unix_ms.and_then(|ms| u64::try_from(ms).ok());
        state.holder = self
            .holder_host
            .zip(self.holder_instance)
            .map(|(host, instance)| Holder::new(host, instance));
        Ok(state)
    }

    /// The mark, if it is a number that can be one.
    pub(super) fn mark(&self) -> Option<u64> {
        u64::try_from(self.hwm_end).ok()
    }
}

/// The lowest marks of blocks that were granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) struct Marks {
    pub(in crate::lease::stores) held: Option<i64>,
    pub(in crate::lease::stores) released: Option<i64>,
}

impl Marks {
    /// The first tick at which any of them can be granted again.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a negative mark.
    pub(super) fn free_from(self, record: &StoreRecord) -> Result<Option<u64>, StoreError> {
        let mark = |mark: Option<i64>| mark.map(|mark| from_column("hwm_end", mark)).transpose();
        Ok(record.first_free_of_marks(mark(self.held)?, mark(self.released)?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::layout::Layout;
    use crate::lease::block::{Block, BlockState, Epoch};
    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::limits::StoreLimits;
    use crate::lease::record::Incarnation;

    fn row() -> BlockRow {
        BlockRow {
            block: 3,
            epoch: 2,
            hwm_end: 700,
            released: true,
            granted_unix_ms: Some(5),
            holder_host: Some("host".into()),
            holder_instance: Some("4711".into()),
        }
    }

    #[test]
    fn a_row_is_a_block() {
        let state = row().judge(&space()).unwrap();
        let mut expected = BlockState::new(Block::new(3), Epoch::new(2), 700);
        expected.released = true;
        expected.granted_unix_ms = Some(5);
        expected.holder = Some(Holder::new("host", "4711"));
        assert_eq!(state, expected);
    }

    fn space() -> Namespace {
        Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
    }

    #[test]
    fn numbers_that_nobody_writes_are_quarantined() {
        type Damage = fn(&mut BlockRow);
        let damages: [(Damage, _, &str); 5] = [
            (|row| row.block = -1, None, "block -1"),
            (|row| row.block = 4096, None, "block 4096"),
            (|row| row.epoch = -1, Some(Block::new(3)), "epoch is -1"),
            (|row| row.hwm_end = -7, Some(Block::new(3)), "is -7"),
            (|row| row.epoch = 701, Some(Block::new(3)), "mark 700"),
        ];
        for (damage, block, said) in damages {
            let mut row = row();
            damage(&mut row);
            let found = row.judge(&space()).unwrap_err();
            assert_eq!(found.block, block, "{found}");
            assert!(found.reason.contains(said), "{found}");
        }
    }

    #[test]
    fn a_time_that_nobody_writes_is_left_out() {
        let mut row = row();
        row.granted_unix_ms = Some(-1);
        assert_eq!(row.judge(&space()).unwrap().granted_unix_ms, None);
    }

    #[test]
    fn what_is_released_is_free_as_soon_as_the_horizon_has_room() {
        let limits = StoreLimits::default().with_horizon(Duration::from_secs(100));
        let record = StoreRecord::new(space(), limits, 0, Incarnation::new("x"));
        let free_from = |held, released| Marks { held, released }.free_from(&record).unwrap();
        assert_eq!(free_from(None, None), None);
        assert_eq!(free_from(Some(500), None), Some(500));
        assert_eq!(free_from(Some(500), Some(590)), Some(491));
        assert_eq!(free_from(Some(400), Some(590)), Some(400));
    }
}

//! Blocks as rows.

use super::super::row::from_column;
use super::super::{Block, BlockState, Epoch, Holder, StoreError, StoreRecord};

/// The columns of a block, but for its namespace. All numbers are below 2^63.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lease) struct BlockRow {
    pub(in crate::lease) block: i64,
    /// 0 as long as the block was never granted.
    pub(in crate::lease) epoch: i64,
    pub(in crate::lease) hwm_end: i64,
    pub(in crate::lease) released: bool,
    pub(in crate::lease) granted_unix_ms: Option<i64>,
    pub(in crate::lease) holder_host: Option<String>,
    pub(in crate::lease) holder_instance: Option<String>,
}

impl BlockRow {
    /// What these columns say.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a negative number.
    pub(in crate::lease) fn into_state(self) -> Result<BlockState, StoreError> {
        let block = Block::new(from_column("block", self.block)?);
        let epoch = Epoch::new(from_column("epoch", self.epoch)?);
        let mut state = BlockState::new(block, epoch, from_column("hwm_end", self.hwm_end)?);
        state.released = self.released;
        state.granted_unix_ms = self
            .granted_unix_ms
            .map(|ms| from_column("granted_unix_ms", ms))
            .transpose()?;
        state.holder = self
            .holder_host
            .zip(self.holder_instance)
            .map(|(host, instance)| Holder::new(host, instance));
        Ok(state)
    }
}

/// The lowest marks of blocks that were granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease) struct Marks {
    pub(in crate::lease) held: Option<i64>,
    pub(in crate::lease) released: Option<i64>,
}

impl Marks {
    /// The first tick at which any of them can be granted again.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a negative mark.
    pub(super) fn free_from(self, record: &StoreRecord) -> Result<Option<u64>, StoreError> {
        let mut first: Option<u64> = None;
        for (mark, released) in [(self.held, false), (self.released, true)] {
            let Some(mark) = mark else { continue };
            let mark = from_column("hwm_end", mark)?;
            let mut block = BlockState::new(Block::new(0), Epoch::FIRST, mark);
            block.released = released;
            let free = record.free_from(&block);
            first = Some(first.map_or(free, |first| first.min(free)));
        }
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::{Fingerprint, Incarnation, Namespace, StoreLimits};
    use super::*;
    use crate::layout::Layout;

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
        let state = row().into_state().unwrap();
        let mut expected = BlockState::new(Block::new(3), Epoch::new(2), 700);
        expected.released = true;
        expected.granted_unix_ms = Some(5);
        expected.holder = Some(Holder::new("host", "4711"));
        assert_eq!(state, expected);
    }

    #[test]
    fn negative_numbers_are_corrupt() {
        let broken: [fn(&mut BlockRow); 4] = [
            |row| row.block = -1,
            |row| row.epoch = -1,
            |row| row.hwm_end = -1,
            |row| row.granted_unix_ms = Some(-1),
        ];
        for damage in broken {
            let mut row = row();
            damage(&mut row);
            let error = row.into_state().unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        }
    }

    #[test]
    fn what_is_released_is_free_as_soon_as_the_horizon_has_room() {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let limits = StoreLimits::default().with_horizon(Duration::from_secs(100));
        let record = StoreRecord::new(space, limits, 0, Incarnation::new("x"));
        let free_from = |held, released| Marks { held, released }.free_from(&record).unwrap();
        assert_eq!(free_from(None, None), None);
        assert_eq!(free_from(Some(500), None), Some(500));
        assert_eq!(free_from(Some(500), Some(590)), Some(491));
        assert_eq!(free_from(Some(400), Some(590)), Some(400));
    }
}

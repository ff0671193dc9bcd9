//! Rows of the stores that keep a record as columns.

use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::{self, Judged};
pub(crate) use crate::lease::row::{RecordRow, corrupt, from_column, to_column};

/// A row of a table, by the places of its columns.
pub(in crate::lease::stores) trait Columns {
    type Error;

    fn integer(&self, place: usize) -> Result<i64, Self::Error>;
    fn text(&self, place: usize) -> Result<String, Self::Error>;
    fn flag(&self, place: usize) -> Result<bool, Self::Error>;
    fn integer_if_any(&self, place: usize) -> Result<Option<i64>, Self::Error>;
    fn text_if_any(&self, place: usize) -> Result<Option<String>, Self::Error>;
}

impl RecordRow {
    /// The columns out of a row that begins with them, in the order of the fields.
    ///
    /// # Errors
    /// Where a column has another type.
    pub(in crate::lease::stores) fn read<C: Columns>(row: &C) -> Result<Self, C::Error> {
        Ok(Self {
            format: row.integer(0)?,
            name: row.text(1)?,
            layout: row.text(2)?,
            block_bits: row.integer(3)?,
            fingerprint: row.text(4)?,
            horizon_ms: row.integer(5)?,
            failover_ms: row.integer(6)?,
            skew_ms: row.integer(7)?,
            floor: row.integer(8)?,
            incarnation: row.text(9)?,
        })
    }
}

/// The columns of a block, but for its namespace. All numbers are below 2^63.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockRow {
    pub(crate) block: i64,
    /// 0 as long as the block was never granted.
    pub(crate) epoch: i64,
    pub(crate) hwm_end: i64,
    pub(crate) released: bool,
    pub(crate) granted_unix_ms: Option<i64>,
    pub(crate) holder_host: Option<String>,
    pub(crate) holder_instance: Option<String>,
}

impl BlockRow {
    /// The columns out of a row that begins with them, in the order of the fields.
    ///
    /// # Errors
    /// Where a column has another type.
    pub(in crate::lease::stores) fn read<C: Columns>(row: &C) -> Result<Self, C::Error> {
        Ok(Self {
            block: row.integer(0)?,
            epoch: row.integer(1)?,
            hwm_end: row.integer(2)?,
            released: row.flag(3)?,
            granted_unix_ms: row.integer_if_any(4)?,
            holder_host: row.text_if_any(5)?,
            holder_instance: row.text_if_any(6)?,
        })
    }

    /// What these columns say of a block, or why they can't.
    pub(crate) fn judge(self, namespace: &Namespace) -> Judged {
        let mut state = quarantine::of_columns(namespace, self.block, self.epoch, self.hwm_end)?;
        state.released = self.released;
        state.granted_unix_ms = self.granted_unix_ms.and_then(|ms| u64::try_from(ms).ok());
        state.holder = self
            .holder_host
            .zip(self.holder_instance)
            .map(|(host, instance)| Holder::new(host, instance));
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::block::{Block, BlockState, Epoch};
    use crate::lease::fingerprint::Fingerprint;

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
}

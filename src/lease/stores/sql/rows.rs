//! The lowest marks of many blocks.

use crate::lease::error::StoreError;
use crate::lease::record::LowestMarks;
use crate::lease::stores::row::from_column;

/// The lowest marks of blocks that were granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) struct Marks {
    pub(in crate::lease::stores) held: Option<i64>,
    pub(in crate::lease::stores) released: Option<i64>,
}

impl Marks {
    /// As ticks.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a negative mark.
    pub(super) fn lowest(self) -> Result<LowestMarks, StoreError> {
        let mark = |mark: Option<i64>| mark.map(|mark| from_column("hwm_end", mark)).transpose();
        Ok(LowestMarks {
            held: mark(self.held)?,
            released: mark(self.released)?,
        })
    }
}

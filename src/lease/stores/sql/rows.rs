//! The lowest marks of many blocks.

use crate::lease::error::StoreError;
use crate::lease::record::StoreRecord;
use crate::lease::stores::row::from_column;

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

    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::limits::StoreLimits;
    use crate::lease::namespace::Namespace;
    use crate::lease::record::Incarnation;

    fn space() -> Namespace {
        Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
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

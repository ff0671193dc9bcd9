//! A record as columns, for stores that keep numbers and texts.
//!
//! Every store writes the same fields under the same names, so that a person who
//! has seen one finds their way in another.

use std::time::Duration;

use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::limits::StoreLimits;
use crate::lease::namespace::Namespace;
use crate::lease::record::{Incarnation, StoreRecord};

/// The version of what is kept. A record in another one is neither read nor changed.
pub(crate) const FORMAT: i64 = 1;

/// The columns of a [`StoreRecord`]. All numbers are below 2^63.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordRow {
    pub(crate) format: i64,
    pub(crate) name: String,
    /// As [`Layout`](crate::Layout) prints and parses it.
    pub(crate) layout: String,
    pub(crate) block_bits: i64,
    /// Thirty-two hexadecimal digits.
    pub(crate) fingerprint: String,
    pub(crate) horizon_ms: i64,
    pub(crate) failover_ms: i64,
    pub(crate) skew_ms: i64,
    pub(crate) floor: i64,
    pub(crate) incarnation: String,
}

impl RecordRow {
    /// The columns of `record`.
    pub(crate) fn new(record: &StoreRecord) -> Self {
        let space = &record.namespace;
        let millis = |limit: Duration| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
        Self {
            format: FORMAT,
            name: space.name().to_owned(),
            layout: space.layout().to_string(),
            block_bits: i64::from(space.block_bits()),
            fingerprint: space.fingerprint().to_string(),
            horizon_ms: millis(record.limits.horizon()),
            failover_ms: millis(record.limits.failover()),
            skew_ms: millis(record.limits.skew()),
            floor: to_column(record.floor),
            incarnation: record.incarnation.as_str().to_owned(),
        }
    }

    /// The record of these columns.
    ///
    /// # Errors
    /// [`StoreError::Format`], and [`StoreError::Corrupt`] for a column that no version
    /// of this crate writes.
    pub(crate) fn into_record(self) -> Result<StoreRecord, StoreError> {
        if self.format != FORMAT {
            return Err(of_another_format(&self.name, self.format));
        }
        self.parse()
    }

    fn parse(self) -> Result<StoreRecord, StoreError> {
        let name = self.name;
        let wrong = |column: &str, value: &str| {
            corrupt(format!("{column} {value:?} of namespace {name:?}"))
        };
        let layout = self
            .layout
            .parse()
            .map_err(|_| wrong("layout", &self.layout))?;
        let fingerprint = parse_fingerprint(&self.fingerprint)
            .ok_or_else(|| wrong("fingerprint", &self.fingerprint))?;
        let namespace = u32::try_from(self.block_bits)
            .ok()
            .and_then(|bits| {
                Namespace::new(name.clone(), &layout, fingerprint)
                    .and_then(|space| space.with_block_bits(bits))
                    .ok()
            })
            .ok_or_else(|| wrong("block_bits", &self.block_bits.to_string()))?;
        let millis =
            |column: &str, value: i64| from_column(column, value).map(Duration::from_millis);
        let limits = StoreLimits::default()
            .with_horizon(millis("horizon_ms", self.horizon_ms)?)
            .with_failover(millis("failover_ms", self.failover_ms)?)
            .with_skew(millis("skew_ms", self.skew_ms)?);
        let floor = from_column("floor", self.floor)?;
        let incarnation = Incarnation::new(self.incarnation);
        Ok(StoreRecord::new(namespace, limits, floor, incarnation))
    }
}

/// The refusal of the record of the namespace with this name, in a format that this version
/// does not write.
pub(crate) fn of_another_format(name: &str, recorded: i64) -> StoreError {
    StoreError::Format {
        namespace: name.to_owned(),
        recorded,
        known: FORMAT,
    }
}

/// A number for a signed column. What is kept is below 2^63 by the trait's rule.
pub(crate) fn to_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number out of a signed column.
///
/// # Errors
/// [`StoreError::Corrupt`] for a negative one.
pub(crate) fn from_column(column: &str, value: i64) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| corrupt(format!("{column} is {value}")))
}

pub(crate) fn corrupt(detail: String) -> StoreError {
    StoreError::Corrupt {
        detail,
        source: None,
    }
}

fn parse_fingerprint(digits: &str) -> Option<Fingerprint> {
    let canonical = |fingerprint: &Fingerprint| fingerprint.to_string() == digits;
    u128::from_str_radix(digits, 16)
        .ok()
        .map(|bits| Fingerprint::from_bytes(bits.to_be_bytes()))
        .filter(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    fn record() -> StoreRecord {
        let space = Namespace::new("a", &Layout::TWITTER, Fingerprint::from_bytes([7; 16]))
            .and_then(|space| space.with_block_bits(3))
            .unwrap();
        let limits = StoreLimits::default().with_skew(Duration::from_millis(123));
        StoreRecord::new(space, limits, 4711, Incarnation::new("x"))
    }

    #[test]
    fn a_record_survives_its_columns() {
        assert_eq!(RecordRow::new(&record()).into_record().unwrap(), record());
    }

    #[test]
    fn a_record_in_another_format_is_refused_with_both() {
        for format in [0, 2] {
            let mut row = RecordRow::new(&record());
            row.format = format;
            let error = row.into_record().unwrap_err();
            assert!(
                matches!(&error, StoreError::Format { namespace, recorded, known: 1 }
                    if namespace == "a" && *recorded == format),
                "{error:?}"
            );
            let text = error.to_string();
            let versions = format!("in format {format}, and this version reads format 1");
            assert!(text.contains(&versions), "{text}");
            assert!(text.contains("at least as new as"), "{text}");
        }
    }

    #[test]
    fn columns_that_nobody_writes_are_corrupt() {
        let row = RecordRow::new(&record());
        let broken: [fn(&mut RecordRow); 6] = [
            |row| row.name = "Not a name".into(),
            |row| row.layout = "31/31/31".into(),
            |row| row.block_bits = 40,
            |row| row.fingerprint = "+7070707070707070707070707070707".into(),
            |row| row.skew_ms = -1,
            |row| row.floor = -1,
        ];
        for (index, damage) in broken.into_iter().enumerate() {
            let mut row = row.clone();
            damage(&mut row);
            let error = row.into_record().unwrap_err();
            assert!(
                matches!(error, StoreError::Corrupt { .. }),
                "{index}: {error}"
            );
        }
    }
}

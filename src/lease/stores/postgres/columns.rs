//! Numbers and texts to and from the server.

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use crate::lease::block::{Block, Epoch};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::stores::row::{FORMAT, RecordRow, corrupt, to_column};
use crate::lease::stores::sql::{BlockRow, Failure};

/// A value, and what the server is to take it for.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// What a guarded statement compares besides its own numbers: the whole
/// namespace, the block and the epoch, as parameters 1 to 7.
pub(super) struct Guard<'a> {
    name: &'a str,
    layout: String,
    block_bits: i64,
    fingerprint: String,
    block: i64,
    epoch: i64,
}

impl<'a> Guard<'a> {
    pub(super) fn new(namespace: &'a Namespace, block: Block, epoch: Epoch) -> Self {
        Self {
            name: namespace.name(),
            layout: namespace.layout().to_string(),
            block_bits: i64::from(namespace.block_bits()),
            fingerprint: namespace.fingerprint().to_string(),
            block: to_column(block.index()),
            epoch: to_column(epoch.get()),
        }
    }

    pub(super) fn parameters(&self) -> [Parameter<'_>; 7] {
        [
            (&self.name, Type::TEXT),
            (&FORMAT, Type::INT8),
            (&self.layout, Type::TEXT),
            (&self.block_bits, Type::INT8),
            (&self.fingerprint, Type::TEXT),
            (&self.block, Type::INT8),
            (&self.epoch, Type::INT8),
        ]
    }
}

pub(super) fn first(rows: Vec<Row>) -> Result<Row, Failure> {
    let nothing = || corrupt("a statement answered with no row".to_owned()).into();
    rows.into_iter().next().ok_or_else(nothing)
}

pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, Failure> {
    row.try_get(index).map_err(|error| {
        StoreError::Corrupt {
            detail: "a column has another type than it was made with".to_owned(),
            source: Some(error.into()),
        }
        .into()
    })
}

pub(super) fn record_row(row: &Row) -> Result<RecordRow, Failure> {
    Ok(RecordRow {
        format: column(row, 0)?,
        name: column(row, 1)?,
        layout: column(row, 2)?,
        block_bits: column(row, 3)?,
        fingerprint: column(row, 4)?,
        horizon_ms: column(row, 5)?,
        failover_ms: column(row, 6)?,
        skew_ms: column(row, 7)?,
        floor: column(row, 8)?,
        incarnation: column(row, 9)?,
    })
}

pub(super) fn block_row(row: &Row) -> Result<BlockRow, Failure> {
    Ok(BlockRow {
        block: column(row, 0)?,
        epoch: column(row, 1)?,
        hwm_end: column(row, 2)?,
        released: column(row, 3)?,
        granted_unix_ms: column(row, 4)?,
        holder_host: column(row, 5)?,
        holder_instance: column(row, 6)?,
    })
}

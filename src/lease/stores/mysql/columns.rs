//! Numbers and texts to and from the server.

use mysql::prelude::FromValue;
use mysql::{Row, Value};

use crate::lease::block::{Block, Epoch};
use crate::lease::namespace::Namespace;
use crate::lease::stores::row::{FORMAT, RecordRow, corrupt, to_column};
use crate::lease::stores::sql::{BlockRow, Failure};

/// What a guarded statement compares besides its own numbers: the whole
/// namespace, the block and the epoch; and the layout's ticks, above which no mark is
/// one.
pub(super) fn guard(namespace: &Namespace, block: Block, epoch: Epoch) -> [Value; 8] {
    [
        namespace.name().into(),
        FORMAT.into(),
        namespace.layout().to_string().into(),
        namespace.block_bits().into(),
        namespace.fingerprint().to_string().into(),
        to_column(block.index()).into(),
        to_column(epoch.get()).into(),
        to_column(namespace.layout().ticks()).into(),
    ]
}

pub(super) fn column<T: FromValue>(row: &Row, index: usize) -> Result<T, Failure> {
    let wrong = || corrupt("a column has another type than it was made with".to_owned()).into();
    match row.get_opt(index) {
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) | None => Err(wrong()),
    }
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
        // A number, of which 0 alone is false.
        released: column::<i64>(row, 3)? != 0,
        granted_unix_ms: column(row, 4)?,
        holder_host: column(row, 5)?,
        holder_instance: column(row, 6)?,
    })
}

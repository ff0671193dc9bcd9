//! The values that a guarded statement compares.

use super::Failure;
use crate::lease::block::{Block, Epoch};
use crate::lease::namespace::Namespace;
use crate::lease::stores::row::{FORMAT, corrupt, to_column};

/// The whole namespace, the block and the epoch, as columns.
#[derive(Clone, Debug)]
pub(in crate::lease::stores) struct Guard {
    pub(in crate::lease::stores) name: String,
    pub(in crate::lease::stores) format: i64,
    pub(in crate::lease::stores) layout: String,
    pub(in crate::lease::stores) block_bits: i64,
    pub(in crate::lease::stores) fingerprint: String,
    pub(in crate::lease::stores) block: i64,
    pub(in crate::lease::stores) epoch: i64,
}

impl Guard {
    pub(in crate::lease::stores) fn new(namespace: &Namespace, block: Block, epoch: Epoch) -> Self {
        Self {
            name: namespace.name().to_owned(),
            format: FORMAT,
            layout: namespace.layout().to_string(),
            block_bits: i64::from(namespace.block_bits()),
            fingerprint: namespace.fingerprint().to_string(),
            block: to_column(block.index()),
            epoch: to_column(epoch.get()),
        }
    }
}

/// Refuses a write of which the server kept less than was written, or found more to
/// change. A rule, a trigger or a policy of the database can drop rows without an error.
pub(in crate::lease::stores) fn expect_rows(rows: u64, expected: u64) -> Result<(), Failure> {
    if rows == expected {
        return Ok(());
    }
    let detail = format!("the database kept {rows} rows of {expected} that were written");
    Err(corrupt(detail).into())
}

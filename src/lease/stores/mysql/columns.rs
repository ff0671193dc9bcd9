//! Numbers and texts to and from the server.

use mysql::prelude::FromValue;
use mysql::{Row, Value};

use crate::lease::block::{Block, Epoch};
use crate::lease::namespace::Namespace;
use crate::lease::stores::row::{Columns, corrupt, to_column};
use crate::lease::stores::sql::{Failure, Guard};

/// The values that a guarded statement compares besides its own numbers, and the
/// layout's ticks, above which no mark is one.
pub(super) fn guard(namespace: &Namespace, block: Block, epoch: Epoch) -> [Value; 8] {
    let guard = Guard::new(namespace, block, epoch);
    [
        guard.name.into(),
        guard.format.into(),
        guard.layout.into(),
        guard.block_bits.into(),
        guard.fingerprint.into(),
        guard.block.into(),
        guard.epoch.into(),
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

impl Columns for Row {
    type Error = Failure;

    fn integer(&self, place: usize) -> Result<i64, Failure> {
        column(self, place)
    }

    fn text(&self, place: usize) -> Result<String, Failure> {
        column(self, place)
    }

    /// A number, of which 0 alone is false.
    fn flag(&self, place: usize) -> Result<bool, Failure> {
        self.integer(place).map(|number| number != 0)
    }

    fn integer_if_any(&self, place: usize) -> Result<Option<i64>, Failure> {
        column(self, place)
    }

    fn text_if_any(&self, place: usize) -> Result<Option<String>, Failure> {
        column(self, place)
    }
}

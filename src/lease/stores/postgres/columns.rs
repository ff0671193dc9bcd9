//! Numbers and texts to and from the server.

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use crate::lease::error::StoreError;
use crate::lease::stores::row::{Columns, corrupt};
use crate::lease::stores::sql::{Failure, Guard};

/// A value, and its type for the server.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The values that a guarded statement compares besides its own numbers, as parameters
/// 1 to 7.
pub(super) fn guard_parameters(guard: &Guard) -> [Parameter<'_>; 7] {
    [
        (&guard.name, Type::TEXT),
        (&guard.format, Type::INT8),
        (&guard.layout, Type::TEXT),
        (&guard.block_bits, Type::INT8),
        (&guard.fingerprint, Type::TEXT),
        (&guard.block, Type::INT8),
        (&guard.epoch, Type::INT8),
    ]
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

impl Columns for Row {
    type Error = Failure;

    fn integer(&self, place: usize) -> Result<i64, Failure> {
        column(self, place)
    }

    fn text(&self, place: usize) -> Result<String, Failure> {
        column(self, place)
    }

    fn flag(&self, place: usize) -> Result<bool, Failure> {
        column(self, place)
    }

    fn integer_if_any(&self, place: usize) -> Result<Option<i64>, Failure> {
        column(self, place)
    }

    fn text_if_any(&self, place: usize) -> Result<Option<String>, Failure> {
        column(self, place)
    }
}

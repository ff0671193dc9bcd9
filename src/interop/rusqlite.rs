//! `INTEGER` of SQLite, which has 64 bits.

use ::rusqlite::Result;
use ::rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::id::{Id, IdLike};

macro_rules! as_integer {
    ([$($kind:tt)*] $Id:ty) => {
        impl<$($kind)*> ToSql for $Id {
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(self.as_plain().to_i64()))
            }
        }

        impl<$($kind)*> FromSql for $Id {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let number = i64::column_result(value)?;
                Ok(Self::from_plain(Id::from_i64(number)))
            }
        }
    };
}

for_each_key!(as_integer);

//! `BigInt` in each backend of Diesel.
//!
//! The types themselves derive everything that Diesel can derive.

use ::diesel::backend::Backend;
use ::diesel::deserialize::{self, FromSql};
use ::diesel::serialize::{self, Output, ToSql};
use ::diesel::sql_types::BigInt;

use crate::id::{Id, IdLike};

macro_rules! as_bigint {
    ([$($kind:tt)*] $Id:ty) => {
        impl<DB: Backend, $($kind)*> ToSql<BigInt, DB> for $Id
        where
            i64: ToSql<BigInt, DB>,
        {
            fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, DB>) -> serialize::Result {
                self.as_plain().as_i64().to_sql(out)
            }
        }

        impl<DB: Backend, $($kind)*> FromSql<BigInt, DB> for $Id
        where
            i64: FromSql<BigInt, DB>,
        {
            fn from_sql(raw: DB::RawValue<'_>) -> deserialize::Result<Self> {
                let number = i64::from_sql(raw)?;
                Ok(Self::from_plain(Id::from_i64(number)))
            }
        }
    };
}

for_each_key!(as_bigint);

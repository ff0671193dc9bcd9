//! `BIGINT` in the `postgres` and `tokio-postgres` drivers.

use std::error::Error;

use ::postgres_types::private::BytesMut;
use ::postgres_types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use crate::id::{Id, IdLike};

macro_rules! as_int8 {
    ([$($kind:tt)*] $Id:ty) => {
        impl<$($kind)*> ToSql for $Id {
            fn to_sql(
                &self,
                kind: &Type,
                buffer: &mut BytesMut,
            ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
                self.as_plain().to_i64().to_sql(kind, buffer)
            }

            accepts!(INT8);
            to_sql_checked!();
        }

        impl<'a, $($kind)*> FromSql<'a> for $Id {
            fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
                let number = i64::from_sql(kind, raw)?;
                Ok(Self::from_plain(Id::from_i64(number)))
            }

            accepts!(INT8);
        }
    };
}

for_each_key!(as_int8);

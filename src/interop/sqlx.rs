//! `BIGINT` in each database of SQLx that has it, with whichever driver.

use ::sqlx::ValueRef;
use ::sqlx::database::Database;
use ::sqlx::decode::Decode;
use ::sqlx::encode::{Encode, IsNull};
use ::sqlx::error::{BoxDynError, UnexpectedNullError};
#[cfg(feature = "sqlx-postgres")]
use ::sqlx::postgres::{PgHasArrayType, PgTypeInfo};
use ::sqlx::types::Type;

use crate::id::{Id, IdLike};

macro_rules! as_bigint {
    ([$($kind:tt)*] $Id:ty) => {
        impl<DB: Database, $($kind)*> Type<DB> for $Id
        where
            i64: Type<DB>,
        {
            fn type_info() -> DB::TypeInfo {
                <i64 as Type<DB>>::type_info()
            }

            fn compatible(info: &DB::TypeInfo) -> bool {
                <i64 as Type<DB>>::compatible(info)
            }
        }

        impl<'q, DB: Database, $($kind)*> Encode<'q, DB> for $Id
        where
            i64: Encode<'q, DB>,
        {
            fn encode_by_ref(
                &self,
                buffer: &mut <DB as Database>::ArgumentBuffer,
            ) -> Result<IsNull, BoxDynError> {
                <i64 as Encode<'q, DB>>::encode(self.as_plain().to_i64(), buffer)
            }

            fn produces(&self) -> Option<DB::TypeInfo> {
                <i64 as Encode<'q, DB>>::produces(&self.as_plain().to_i64())
            }
        }

        impl<'r, DB: Database, $($kind)*> Decode<'r, DB> for $Id
        where
            i64: Decode<'r, DB>,
        {
            fn decode(value: <DB as Database>::ValueRef<'r>) -> Result<Self, BoxDynError> {
                // As a plain number, SQLx reads SQLite's null as 0, which is an ID.
                if value.is_null() {
                    return Err(Box::new(UnexpectedNullError));
                }
                let number = <i64 as Decode<'r, DB>>::decode(value)?;
                Ok(Self::from_plain(Id::from_i64(number)))
            }
        }

        /// `BIGINT[]`.
        #[cfg(feature = "sqlx-postgres")]
        impl<$($kind)*> PgHasArrayType for $Id {
            fn array_type_info() -> PgTypeInfo {
                <i64 as PgHasArrayType>::array_type_info()
            }
        }
    };
}

for_each_key!(as_bigint);

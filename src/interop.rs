//! IDs in other libraries, each behind a feature of its name.
//!
//! In databases an ID is a `BIGINT` with the same 64 bits, signed, as
//! [`Id::to_i64`](crate::id::Id::to_i64) has it.

/// `$implement!([generics] type)` for each type that names a row inside.
///
/// A `PublicId` is none: a query for it would find nothing, or the row of another key.
#[allow(unused_macros, reason = "for some features alone")]
macro_rules! for_each_key {
    ($implement:ident) => {
        $implement!([] crate::id::Id);
        $implement!([T: crate::typed_id::IdKind] crate::typed_id::TypedId<T>);
    };
}

/// The same for each type that is [`IdLike`](crate::id::IdLike).
#[allow(unused_macros, reason = "for some features alone")]
macro_rules! for_each_id {
    ($implement:ident) => {
        for_each_key!($implement);
        $implement!([] crate::facade::PublicId);
    };
}

#[cfg(feature = "diesel")]
mod diesel;
#[cfg(feature = "postgres-types")]
mod postgres_types;
#[cfg(feature = "rusqlite")]
mod rusqlite;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "sqlx")]
mod sqlx;

//! IDs that the compiler and the text keep apart by what they name.

mod error;
mod prefix;
mod text;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::id::{Id, IdLike, Sealed};

pub use self::error::ParseTypedIdError;

/// The kind of thing that a [`TypedId`] names: a type of yours that stands for users, orders, ...
///
/// The type itself is never made; an empty struct or enum does.
///
/// # Examples
///
/// ```
/// enum Order {}
///
/// impl ringflake::IdKind for Order {
///     const PREFIX: &'static str = "order";
/// }
/// ```
pub trait IdKind {
    /// The beginning of the text of such an ID, without the `_` that follows.
    ///
    /// It has 1 to 63 of the characters `a-z`, `0-9` and `_`, begins with a letter
    /// and does not end in `_`. That is what
    /// [TypeID](https://github.com/jetify-com/typeid/tree/main/spec) allows, with
    /// digits besides, and without the empty one. The build of a program that uses
    /// another one fails.
    ///
    /// ```compile_fail,E0080
    /// enum User {}
    ///
    /// impl ringflake::IdKind for User {
    ///     const PREFIX: &'static str = "User";
    /// }
    ///
    /// ringflake::TypedId::<User>::from_id(ringflake::Id::from_u64(1));
    /// ```
    const PREFIX: &'static str;
}

/// An [`Id`] that names a `T`, whose text says so: `user_3ip9iuvinajdb`.
///
/// A function that takes a `TypedId<User>` can't be given a `TypedId<Order>`, and
/// neither can a text: reading it refuses every other prefix. In memory and in
/// databases it is the [`Id`], and `T` is only a name: a `TypedId<T>` is `Copy`,
/// `Send` and `Sync` whatever `T` is.
///
/// The text is the kind's [prefix](IdKind::PREFIX), a `_`, and the
/// [text of the ID](Id#impl-Display-for-Id). With the `serde` feature, a `TypedId`
/// is that text in human-readable formats, and a `u64` in binary ones.
///
/// # Examples
///
/// ```
/// use ringflake::{Id, IdKind, TypedId};
///
/// enum User {}
///
/// impl IdKind for User {
///     const PREFIX: &'static str = "user";
/// }
///
/// let id = Id::from_u64(12_037_510_499_902_272_547);
/// let user = TypedId::<User>::from_id(id);
/// assert_eq!(user.to_string(), "user_ae3ek0mnbbd13");
/// assert_eq!("user_ae3ek0mnbbd13".parse(), Ok(user));
/// assert_eq!(user.id(), id);
///
/// let error = "order_ae3ek0mnbbd13".parse::<TypedId<User>>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the prefix is \"order\", but \"user\" is expected before the last '_'",
/// );
/// ```
#[cfg_attr(
    feature = "diesel",
    derive(diesel::deserialize::FromSqlRow, diesel::expression::AsExpression),
    diesel(sql_type = diesel::sql_types::BigInt)
)]
#[repr(transparent)]
pub struct TypedId<T> {
    id: Id,
    // As a function's result, `T` bears on no auto trait, and may be of a longer
    // lifetime than is asked for.
    kind: PhantomData<fn() -> T>,
}

impl<T: IdKind> TypedId<T> {
    /// Says that `id` names a `T`. Costs nothing.
    ///
    /// There is no `From<Id>`: an `into()` would name whatever is asked for, and kinds could be
    /// mixed up after all. To take one: `ids.take().map(TypedId::from_id)`.
    #[doc(alias = "new")]
    #[doc(alias = "take_typed")]
    #[inline]
    pub const fn from_id(id: Id) -> Self {
        const { prefix::check(T::PREFIX) }
        Self {
            id,
            kind: PhantomData,
        }
    }
}

impl<T> TypedId<T> {
    /// The ID, without what it names.
    #[doc(alias = "into_inner")]
    #[inline]
    pub const fn id(self) -> Id {
        self.id
    }
}

// Derived, each of these would ask the same of `T`.

impl<T> Clone for TypedId<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TypedId<T> {}

impl<T> PartialEq for TypedId<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<T> Eq for TypedId<T> {}

impl<T> PartialOrd for TypedId<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for TypedId<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.cmp(&other.id)
    }
}

impl<T> Hash for TypedId<T> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Without the prefix, which a `T` that is no [`IdKind`] lacks.
impl<T> fmt::Debug for TypedId<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypedId({})", self.id)
    }
}

impl<T> From<TypedId<T>> for Id {
    #[inline]
    fn from(typed: TypedId<T>) -> Self {
        typed.id
    }
}

impl<T: IdKind> Sealed for TypedId<T> {}

impl<T: IdKind> IdLike for TypedId<T> {
    const PREFIX: &'static str = T::PREFIX;

    fn from_plain(id: Id) -> Self {
        Self::from_id(id)
    }

    fn as_plain(&self) -> &Id {
        &self.id
    }
}

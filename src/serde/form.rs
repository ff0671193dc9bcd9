//! The forms that an ID can have: text, and two numbers.

use std::fmt;
use std::marker::PhantomData;

use ::serde::de::{Error, Visitor};
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{Id, IdLike};

/// One form, whatever the format is.
pub(crate) trait Form {
    fn serialize<I: IdLike, S: Serializer>(id: &I, serializer: S) -> Result<S::Ok, S::Error>;

    fn deserialize<'de, I: IdLike, D: Deserializer<'de>>(deserializer: D) -> Result<I, D::Error>;
}

pub(crate) enum Text {}
pub(crate) enum Signed {}
pub(crate) enum Unsigned {}

impl Form for Text {
    fn serialize<I: IdLike, S: Serializer>(id: &I, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    fn deserialize<'de, I: IdLike, D: Deserializer<'de>>(deserializer: D) -> Result<I, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

/// Reads the text in place, and says in an error which prefix was expected.
struct TextVisitor<I>(PhantomData<I>);

impl<I: IdLike> Visitor<'_> for TextVisitor<I> {
    type Value = I;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ID as a base32hex string")?;
        match I::PREFIX {
            "" => Ok(()),
            prefix => write!(f, " after \"{prefix}_\""),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<I, E> {
        text.parse().map_err(E::custom)
    }
}

impl Form for Signed {
    fn serialize<I: IdLike, S: Serializer>(id: &I, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(id.as_plain().to_i64())
    }

    fn deserialize<'de, I: IdLike, D: Deserializer<'de>>(deserializer: D) -> Result<I, D::Error> {
        let number = i64::deserialize(deserializer)?;
        Ok(I::from_plain(Id::from_i64(number)))
    }
}

impl Form for Unsigned {
    fn serialize<I: IdLike, S: Serializer>(id: &I, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(id.as_plain().to_u64())
    }

    fn deserialize<'de, I: IdLike, D: Deserializer<'de>>(deserializer: D) -> Result<I, D::Error> {
        let number = u64::deserialize(deserializer)?;
        Ok(I::from_plain(Id::from_u64(number)))
    }
}

pub(crate) struct InForm<I, F>(I, PhantomData<F>);

impl<I: IdLike, F: Form> InForm<I, F> {
    pub(crate) fn new(id: I) -> Self {
        Self(id, PhantomData)
    }

    pub(crate) fn into_inner(self) -> I {
        self.0
    }
}

impl<I: IdLike, F: Form> Serialize for InForm<I, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        F::serialize(&self.0, serializer)
    }
}

impl<'de, I: IdLike, F: Form> Deserialize<'de> for InForm<I, F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        F::deserialize(deserializer).map(Self::new)
    }
}

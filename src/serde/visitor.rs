//! Reads one form, and says what it expected in place of another.

use std::fmt;
use std::marker::PhantomData;

use ::serde::de::{Error, Unexpected, Visitor};

use crate::id::{Id, IdLike};

pub(super) struct TextVisitor<I>(PhantomData<I>);

impl<I> TextVisitor<I> {
    pub(super) const NEW: Self = Self(PhantomData);
}

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

/// Formats that tell signed from unsigned numbers by their sign alone, as JSON, visit
/// either. So both are taken, as far as the number is in the range of this form.
pub(super) struct SignedVisitor;

impl Visitor<'_> for SignedVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an ID as a signed number, {} to {}", i64::MIN, i64::MAX)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Id, E> {
        Ok(Id::from_i64(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Id, E> {
        match i64::try_from(number) {
            Ok(number) => Ok(Id::from_i64(number)),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }
}

/// As [`SignedVisitor`], for numbers from zero on.
pub(super) struct UnsignedVisitor;

impl Visitor<'_> for UnsignedVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an ID as an unsigned number, 0 to {}", u64::MAX)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Id, E> {
        Ok(Id::from_u64(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Id, E> {
        match u64::try_from(number) {
            Ok(number) => Ok(Id::from_u64(number)),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }
}

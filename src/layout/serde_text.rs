//! The text form in every format: a layout is configuration, read by people.

use std::fmt;

use ::serde::de::{Error, Visitor};
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Layout;

impl Serialize for Layout {
    /// As [`Display`](fmt::Display) writes it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Layout {
    /// As [`FromStr`](std::str::FromStr) reads it, the name of a preset included.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(SpecVisitor)
    }
}

struct SpecVisitor;

impl Visitor<'_> for SpecVisitor {
    type Value = Layout;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a layout as \"time/node/sequence@epoch/tick\" or the name of a preset")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Layout, E> {
        text.parse().map_err(E::custom)
    }
}

//! The text form in every format: a layout is configuration, read by people.

use ::serde::de::Error;
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Layout;

impl Serialize for Layout {
    /// As [`Display`](std::fmt::Display) writes it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Layout {
    /// As [`FromStr`](std::str::FromStr) reads it, the name of a preset included.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

//! Text for people, a number for machines.

use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::serde::form::{Form, Text, Unsigned};

macro_rules! text_or_number {
    ([$($kind:tt)*] $Id:ty) => {
        impl<$($kind)*> Serialize for $Id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    Text::serialize(self, serializer)
                } else {
                    Unsigned::serialize(self, serializer)
                }
            }
        }

        impl<'de, $($kind)*> Deserialize<'de> for $Id {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    Text::deserialize(deserializer)
                } else {
                    Unsigned::deserialize(deserializer)
                }
            }
        }
    };
}

for_each_id!(text_or_number);

//! JSON Schema: the text that the feature `serde` writes.

use std::borrow::Cow;

use ::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::schema;

macro_rules! as_text {
    ([$($kind:tt)*] $Id:ty) => {
        impl<$($kind)*> JsonSchema for $Id {
            fn schema_name() -> Cow<'static, str> {
                schema::name::<Self>().into()
            }

            fn schema_id() -> Cow<'static, str> {
                format!("ringflake::{}", schema::name::<Self>()).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": schema::DESCRIPTION,
                    "pattern": schema::pattern::<Self>(),
                    "examples": [schema::example::<Self>()],
                })
            }
        }
    };
}

for_each_id!(as_text);

//! OpenAPI: the text that the feature `serde` writes.

use std::borrow::Cow;

use ::utoipa::openapi::RefOr;
use ::utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use ::utoipa::{PartialSchema, ToSchema};

use super::schema;

macro_rules! as_text {
    ([$($kind:tt)*] $Id:ty) => {
        impl<$($kind)*> PartialSchema for $Id {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .description(Some(schema::DESCRIPTION))
                    .pattern(Some(schema::pattern::<Self>()))
                    .examples([schema::example::<Self>()])
                    .into()
            }
        }

        impl<$($kind)*> ToSchema for $Id {
            fn name() -> Cow<'static, str> {
                schema::name::<Self>().into()
            }
        }
    };
}

for_each_id!(as_text);

//! How an ID is serialized, said for one field: `#[serde(with = "...")]`.
//!
//! Without it, [`Id`](crate::Id) and [`TypedId`](crate::TypedId) are text in
//! human-readable formats and a `u64` in binary ones. Each of these modules is one form
//! in every format, and its module `option` is the same for an `Option`, in which `None`
//! is null. The form of another module is refused.
//!
//! | module | form |
//! |---|---|
//! | [`as_text`] | the text that `Display` writes |
//! | [`as_i64`] | a signed number with the same 64 bits, as `BIGINT` |
//! | [`as_u64`] | an unsigned number |
//!
//! # Examples
//!
//! ```
//! use ringflake::Id;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Row {
//!     #[serde(with = "ringflake::serde::as_i64")]
//!     id: Id,
//!     #[serde(with = "ringflake::serde::as_text::option")]
//!     parent: Option<Id>,
//! }
//!
//! let row = Row { id: Id::from_u64(u64::MAX), parent: Some(Id::from_u64(32)) };
//! let json = serde_json::to_string(&row)?;
//! assert_eq!(json, r#"{"id":-1,"parent":"10"}"#);
//! assert_eq!(serde_json::from_str::<Row>(&json)?.id, row.id);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! A field that serde buffers, by `flatten` or in an untagged or internally tagged enum, is
//! read back as a text is, whatever the format. In a binary one, choose a form for it.

pub(crate) mod form;

macro_rules! mode {
    ($(#[$doc:meta])* $mode:ident: $form:ident) => {
        $(#[$doc])*
        pub mod $mode {
            use ::serde::{Deserializer, Serializer};

            use crate::serde::form::{Form, $form};
            use crate::id::IdLike;

            /// Writes the ID in this form.
            ///
            /// # Errors
            ///
            /// Only those of the serializer.
            pub fn serialize<I: IdLike, S: Serializer>(
                id: &I,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                $form::serialize(id, serializer)
            }

            /// Reads an ID in this form.
            ///
            /// # Errors
            ///
            /// When it is of another form, and those of the deserializer.
            pub fn deserialize<'de, I: IdLike, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<I, D::Error> {
                $form::deserialize(deserializer)
            }

            /// The same for an `Option`, in which `None` is null.
            ///
            /// A field that may be missing needs `#[serde(default)]` besides.
            pub mod option {
                use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

                use crate::serde::form::{$form, InForm};
                use crate::id::IdLike;

                /// Writes the ID in this form, or null.
                ///
                /// # Errors
                ///
                /// Only those of the serializer.
                pub fn serialize<I: IdLike, S: Serializer>(
                    id: &Option<I>,
                    serializer: S,
                ) -> Result<S::Ok, S::Error> {
                    id.map(InForm::<I, $form>::new).serialize(serializer)
                }

                /// Reads an ID in this form, or null.
                ///
                /// # Errors
                ///
                /// When it is of another form, and those of the deserializer.
                pub fn deserialize<'de, I: IdLike, D: Deserializer<'de>>(
                    deserializer: D,
                ) -> Result<Option<I>, D::Error> {
                    let id = Option::<InForm<I, $form>>::deserialize(deserializer)?;
                    Ok(id.map(InForm::into_inner))
                }
            }
        }
    };
}

mode! {
    /// A signed number with the same 64 bits, in every format: what SQL's `BIGINT` holds.
    ///
    /// Half of all IDs of 64 bits are negative. In JSON, JavaScript reads most of them as another
    /// number, as it does with [`as_u64`].
    as_i64: Signed
}

mode! {
    /// The text that `Display` writes, in every format.
    as_text: Text
}

mode! {
    /// An unsigned number, in every format.
    ///
    /// JavaScript has no such numbers above 2<sup>53</sup>: its `JSON.parse` takes nearly
    /// every ID for another one, without an error. Use [`as_text`] where
    /// a browser may read it.
    as_u64: Unsigned
}

//! What a schema says of an ID, in whichever language.

use crate::id::{Id, IdLike};

/// The name of the schema. Schemas of two kinds need two names.
pub(super) fn name<I: IdLike>() -> String {
    match (I::NAME, I::PREFIX) {
        (name, "") => name.to_owned(),
        (name, prefix) => format!("{name}_{prefix}"),
    }
}

/// The regular expression of the texts, no others.
pub(super) fn pattern<I: IdLike>() -> String {
    let digits = "(0|[1-9a-v][0-9a-v]{0,11}|[1-9a-f][0-9a-v]{12})";
    match I::PREFIX {
        "" => format!("^{digits}$"),
        prefix => format!("^{prefix}_{digits}$"),
    }
}

pub(super) const DESCRIPTION: &str = "A 64-bit ID, as a number in base32hex.";

/// A text of one.
pub(super) fn example<I: IdLike>() -> String {
    I::from_plain(Id::from_u64(12_037_510_499_902_272_547)).to_string()
}

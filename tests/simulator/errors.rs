//! What becomes of a request without a reply.

use ringflake::lease::StoreError;

/// It was not carried out.
pub(crate) fn unavailable() -> StoreError {
    let source = "no way to the store".into();
    StoreError::Unavailable { source }
}

/// Nobody knows.
pub(crate) fn ambiguous() -> StoreError {
    let (operation, source) = ("a simulated request", "no reply".into());
    StoreError::Ambiguous { operation, source }
}

//! What becomes of a request without a reply.

use ringflake::lease::StoreError;
use ringflake::lease::protocol::{Answer, Request};

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

pub(crate) fn refuse(request: &Request, error: StoreError) -> Answer {
    match request {
        Request::Acquire(_) => Answer::Acquired(Err(error)),
        Request::Renew(_) => Answer::Renewed(Err(error)),
        Request::Release { .. } => Answer::Released(Err(error)),
        _ => Answer::Checked(Err(error)),
    }
}

//! What becomes of a request without a reply.

use std::fmt;

use ringflake::lease::StoreError;
use ringflake::lease::protocol::{Answer, Request};

/// It was not carried out.
pub(crate) fn unavailable(request: &Request) -> Answer {
    let source = Box::new(NoReply);
    refuse(request, StoreError::Unavailable { source })
}

/// Nobody knows.
pub(crate) fn ambiguous(request: &Request) -> Answer {
    let (operation, source) = ("a simulated request", Box::new(NoReply));
    refuse(request, StoreError::Ambiguous { operation, source })
}

fn refuse(request: &Request, error: StoreError) -> Answer {
    match request {
        Request::Acquire(_) => Answer::Acquired(Err(error)),
        Request::Renew(_) => Answer::Renewed(Err(error)),
        Request::Release { .. } => Answer::Released(Err(error)),
        _ => Answer::Checked(Err(error)),
    }
}

#[derive(Debug)]
struct NoReply;

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no reply")
    }
}

impl std::error::Error for NoReply {}

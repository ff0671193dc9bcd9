//! Transactions, of which there are none.
//!
//! ```text
//!             MULTI, refused
//! Outside ------------------> Within: all is refused, and nothing is taken
//!    ^                           |
//!    +---------------------------+
//!      EXEC or DISCARD, refused; RESET
//! ```
//!
//! Clients send all of a transaction at once, as `pipeline()` of redis-py and `multi()` of
//! ioredis do. Were its `INCR`s answered behind a `MULTI` that is refused, they would take
//! IDs that its client never sees. The state is the session's, so that it holds wherever
//! turns and reads cut what a client has sent.

use super::call::Flow;
use crate::resp::context::{Refusal, WorkerContext};
use crate::resp::reply::Replies;
use crate::resp::session::Session;

/// What to do instead.
const NONE: &str = "there are no transactions here, and between MULTI and EXEC or DISCARD \
                    nothing is taken: send a pipeline without MULTI (redis-py: \
                    pipeline(transaction=False); ioredis: pipeline())";

/// Answers a command that belongs to a transaction or stands within one.
pub(super) fn refuse(
    session: &mut Session,
    name: &[u8],
    context: &WorkerContext,
    replies: &mut Replies<'_>,
) -> Option<Flow> {
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let is_end = is("exec") || is("discard");
    if session.is_in_transaction {
        // As in Redis, these two are no part of it.
        if is("reset") || is("quit") {
            return None;
        }
    } else if !(is_end || is("multi") || is("watch") || is("unwatch")) {
        return None;
    } else if !context.knows(session.token.as_deref()) {
        replies.error(Refusal::UNKNOWN.code, Refusal::UNKNOWN.why);
        return Some(Flow::Done);
    }
    // Clients take the reason from what was refused before, or from here.
    let is_aborted = session.is_in_transaction && is("exec");
    replies.error(if is_aborted { "EXECABORT" } else { "ERR" }, NONE);
    session.is_in_transaction = !is_end && (session.is_in_transaction || is("multi"));
    Some(Flow::Done)
}

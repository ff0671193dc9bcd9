//! Queueing the requests of a transaction, and running them.

use super::commands::{self, Flow};
use super::context::{Missing, WorkerContext};
use super::decode::{Arguments, Decoded, Decoder, Words};
use super::reply::{Rejection, Replies};
use super::session::Session;
use super::transaction::Transaction;
use super::turn::plain_take;
use crate::access::Role;

/// Maximum requests that are not takes. Takes of one name run as a batch.
const COMMANDS: usize = 1024;

/// Maximum bytes of the reply to `EXEC`, where its requests are not takes.
const REPLY_BYTES: usize = 4 << 20;

impl Session {
    /// Queues a request of the open transaction, and replies whether that was possible.
    pub(super) fn enqueue(
        &mut self,
        request: &[u8],
        words: &Words<'_>,
        context: &WorkerContext,
        replies: &mut Replies<'_>,
    ) {
        let limits = &context.shared.setup.limits;
        let checked = commands::check_queued(self, words, context);
        let Some(transaction) = &mut self.transaction else {
            return;
        };
        let queued = checked.and_then(|more| {
            let over = |most: usize, what: &str| {
                let why = format!("a transaction has at most {most} {what}: use several");
                Err(Rejection::of(why))
            };
            if transaction.replies.saturating_add(more) > limits.count {
                return over(limits.count, "IDs and replies");
            }
            let is_command = commands::taken_name(words).is_none();
            if is_command && transaction.commands == COMMANDS {
                return over(COMMANDS, "requests that are not takes");
            }
            if transaction.bytes.len() + request.len() > limits.request_bytes {
                return over(limits.request_bytes, "bytes");
            }
            transaction.replies += more;
            transaction.commands += usize::from(is_command);
            transaction.push(request);
            Ok(())
        });
        match queued {
            Ok(()) => replies.simple("QUEUED"),
            Err(rejection) => {
                // Nothing of it will run.
                **transaction = Transaction {
                    is_aborted: true,
                    ..Transaction::default()
                };
                replies.reject(&rejection);
            }
        }
    }

    /// `EXEC`.
    pub(super) fn execute(
        &mut self,
        context: &mut WorkerContext,
        replies: &mut Replies<'_>,
    ) -> Flow {
        let Some(transaction) = self.transaction.take() else {
            replies.error("ERR", "EXEC without MULTI");
            return Flow::Done;
        };
        if transaction.is_aborted {
            let why = "Transaction discarded because of previous errors.";
            replies.error("EXECABORT", why);
            return Flow::Done;
        }
        let mut missing = None;
        for (request, _) in transaction.requests() {
            let arguments = decode(request);
            let words = arguments.as_ref().map(|arguments| arguments.of(request));
            let Some(name) = words.and_then(|words| commands::taken_name(&words)) else {
                continue;
            };
            // The rights may have changed since it was queued.
            missing = match context.rejection(Role::Take, self.token()) {
                Some(rejection) => Some(Missing::Rejected(rejection)),
                // The IDs are counted when they are taken.
                None => self.find_to_take(name, 1, 0, context).err().or(missing),
            };
            // Nothing is opened for a transaction that is refused.
            if let Some(Missing::Rejected(_)) = missing {
                break;
            }
        }
        match missing {
            Some(Missing::Open(name)) => {
                self.transaction = Some(transaction);
                return Flow::Open(name);
            }
            Some(Missing::Rejected(rejection)) => {
                let Rejection { code, why, .. } = rejection;
                let why = format_args!("Transaction discarded because of: {code} {why}");
                replies.error("EXECABORT", why);
                return Flow::Done;
            }
            None => {}
        }
        replies.array(transaction.queue.iter().map(|queued| queued.count).sum());
        for (request, count) in transaction.requests() {
            let Some(arguments) = decode(request) else {
                continue;
            };
            if let Some((name, form)) = plain_take(&arguments, request) {
                let name = &request[name.0..name.1];
                if self.take(name, form, count, context, replies).is_none() {
                    continue;
                }
            }
            for _ in 0..count {
                if replies.bytes.len() > REPLY_BYTES {
                    replies.error("ERR", "the reply of this transaction is too long");
                    continue;
                }
                let words = arguments.of(request);
                if let Flow::Open(_) = commands::run(self, &words, context, replies) {
                    // The rights of the client have changed meanwhile.
                    replies.error("TRYAGAIN", "the namespace is not open yet");
                }
            }
        }
        Flow::Done
    }
}

/// A request was decoded before it was queued, so this does not fail.
fn decode(request: &[u8]) -> Option<Arguments> {
    match Decoder::new(request.len()).decode(request) {
        Ok(Decoded::Request(arguments, _)) => Some(arguments),
        _ => None,
    }
}

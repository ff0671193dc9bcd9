//! One client's requests, in order, as bytes in and bytes out. No socket is here.
//!
//! ```text
//!           +----------------------------------------------------------------+
//!           v                                                                |
//! input --> decode --> a take of the run's name and form: one more in the run|
//!              |       anything else: the run is taken as one batch, then it |
//!              |                                                             |
//!              |       in a transaction, which is refused: no take, but a command
//!              |
//!              +--> the turn's budget is spent, or no request is there as a whole
//!                       the run is taken, and the turn ends
//! ```
//!
//! A *run* is what a client has pipelined: takes of one namespace, one after the other. All
//! of them cost one `take_batch`, and their replies stand in the order of the requests,
//! since nothing else is answered before the run is.

use super::commands::{self, Flow};
use super::context::{Missing, WorkerContext};
use super::decode::{Arguments, Decoded};
use super::reply::{Errors, Form, Replies, refuse_take};
use super::session::Session;
use crate::access::Role;
use crate::proxy_protocol;

/// Requests that a client has answered in one turn; then it is the next one's.
pub(super) const REQUESTS: usize = 512;

/// Bytes of replies, after which a turn ends.
pub(super) const REPLY_BYTES: usize = 64 << 10;

/// What the connection does after a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextAction {
    /// All requests that are there as a whole are answered.
    Input,
    /// There may be more to answer, after other connections had their turns.
    Turn,
    /// The request in front needs this namespace, which is to be opened.
    Open(String),
    /// The replies, to a failed authentication, are to be sent after a while.
    Delay,
    /// The connection is to be closed at once: it is lost or timed out, or must get no reply.
    Drop,
    /// The connection is to be closed once the client has these replies.
    Close,
}

struct Run {
    /// Where the first of them begins in the input.
    from: usize,
    /// The namespace's name in the input.
    name: (usize, usize),
    form: Form,
    count: usize,
    /// The last of them in the input.
    last: (usize, usize),
}

impl Session {
    /// Answers requests in the front of `input`, as many as are due in one turn. Says how
    /// many bytes are done with; the others are to be there again in the next call.
    pub(super) fn turn(
        &mut self,
        input: &[u8],
        context: &mut WorkerContext,
        output: &mut Vec<u8>,
    ) -> (usize, NextAction) {
        let mut replies = Replies {
            bytes: output,
            protocol: self.protocol,
            errors: Errors::default(),
        };
        let ended = self.requests(input, context, &mut replies);
        context.count_errors(replies.errors);
        ended
    }

    fn requests(
        &mut self,
        input: &[u8],
        context: &mut WorkerContext,
        replies: &mut Replies<'_>,
    ) -> (usize, NextAction) {
        if !self.has_begun {
            // An answer to such a header would shift all replies by one.
            match starts_proxy_header(input) {
                Some(true) => return (input.len(), NextAction::Drop),
                None => return (0, NextAction::Input),
                Some(false) => self.has_begun = true,
            }
        }
        let mut at = 0;
        let mut run: Option<Run> = None;
        let mut budget = REQUESTS;
        let next = loop {
            if budget == 0 || replies.bytes.len() >= REPLY_BYTES {
                break NextAction::Turn;
            }
            budget -= 1;
            let rest = &input[at..];
            // A pipeline is often one request again and again, and is decoded once then.
            if let Some(run) = &mut run
                && let last = &input[run.last.0..run.last.1]
                && rest.starts_with(last)
            {
                run.count += 1;
                at += last.len();
                continue;
            }
            match self.decoder.decode(rest) {
                Ok(Decoded::Request(arguments, used)) => {
                    // A take in a transaction is queued. A run ends before the command that
                    // begins one.
                    let plain = match self.transaction {
                        None => plain_take(&arguments, rest),
                        Some(_) => None,
                    };
                    if let Some((name, form)) = plain {
                        let name = (at + name.0, at + name.1);
                        if let Some(run) = &mut run
                            && run.form == form
                            && input[run.name.0..run.name.1] == input[name.0..name.1]
                        {
                            run.count += 1;
                            run.last = (at, at + used);
                            at += used;
                            continue;
                        }
                        if let Some(stop) = self.take_run(&mut run, input, context, replies) {
                            return stop;
                        }
                        run = Some(Run {
                            from: at,
                            name,
                            form,
                            count: 1,
                            last: (at, at + used),
                        });
                        at += used;
                        continue;
                    }
                    if let Some(stop) = self.take_run(&mut run, input, context, replies) {
                        return stop;
                    }
                    match self.command(&arguments, &rest[..used], context, replies) {
                        Flow::Done => at += used,
                        Flow::Open(name) => break NextAction::Open(name),
                        Flow::Delay => {
                            at += used;
                            break NextAction::Delay;
                        }
                        Flow::Close => {
                            at += used;
                            break NextAction::Close;
                        }
                    }
                }
                Ok(Decoded::Nothing(used)) => at += used,
                Ok(Decoded::Part) => break NextAction::Input,
                Err(malformed) => {
                    if let Some(stop) = self.take_run(&mut run, input, context, replies) {
                        return stop;
                    }
                    context.count_requests(1);
                    replies.error("ERR", malformed);
                    return (input.len(), NextAction::Close);
                }
            }
        };
        match self.take_run(&mut run, input, context, replies) {
            Some(stop) => stop,
            None => (at, next),
        }
    }

    /// Takes the run, if there is one. If its namespace is to be opened first, the turn ends
    /// with that.
    fn take_run(
        &mut self,
        run: &mut Option<Run>,
        input: &[u8],
        context: &mut WorkerContext,
        replies: &mut Replies<'_>,
    ) -> Option<(usize, NextAction)> {
        let run = run.take()?;
        let name = &input[run.name.0..run.name.1];
        let Some(name) = self.take(name, run.form, run.count, context, replies) else {
            context.count_requests(run.count);
            return None;
        };
        // Requests behind it are decoded again.
        self.decoder.forget();
        Some((run.from, NextAction::Open(name)))
    }

    /// Takes `count` IDs, each as the reply to a request of its own. Returns the name of the
    /// namespace if it has to be opened first.
    pub(super) fn take(
        &mut self,
        name: &[u8],
        form: Form,
        count: usize,
        context: &mut WorkerContext,
        replies: &mut Replies<'_>,
    ) -> Option<String> {
        let found = match self.check_right(Role::Take, context) {
            Ok(()) => self.find_to_take(name, count, 1, context),
            Err(rejection) => Err(Missing::Rejected(rejection)),
        };
        let allowed = match found {
            Ok(allowed) => allowed,
            Err(missing) => return missing.refuse(count, replies),
        };
        let (ids, error) = context.take(allowed.namespace, allowed.requests);
        for &id in ids {
            replies.id(id, form);
        }
        if let Some(error) = error {
            for _ in ids.len()..allowed.requests {
                refuse_take(replies, error);
            }
        }
        if let Err(rejection) = allowed.others {
            for _ in allowed.requests..count {
                replies.reject(&rejection);
            }
        }
        None
    }

    fn command(
        &mut self,
        arguments: &Arguments,
        request: &[u8],
        context: &mut WorkerContext,
        replies: &mut Replies<'_>,
    ) -> Flow {
        let words = arguments.of(request);
        let flow = if self.transaction.is_some() && !commands::runs_at_once(&words) {
            self.enqueue(request, &words, context, replies);
            Flow::Done
        } else {
            commands::run(self, &words, context, replies)
        };
        if !matches!(flow, Flow::Open(_)) {
            context.count_requests(1);
        }
        flow
    }
}

/// Whether the input of a connection starts with a header of the PROXY protocol; `None` if there is
/// not enough input to decide.
fn starts_proxy_header(input: &[u8]) -> Option<bool> {
    const STARTS: [&[u8]; 2] = [proxy_protocol::V1, proxy_protocol::V2];
    if STARTS.iter().any(|start| input.starts_with(start)) {
        return Some(true);
    }
    match STARTS.iter().any(|start| start.starts_with(input)) {
        true => None,
        false => Some(false),
    }
}

/// The place of the name and the form, if a request takes one ID.
pub(super) fn plain_take(arguments: &Arguments, request: &[u8]) -> Option<((usize, usize), Form)> {
    let word = |index| {
        let (from, to) = arguments.place(index)?;
        Some(&request[from..to])
    };
    let form = match arguments.len() {
        2 => {
            let command = word(0)?;
            if command.eq_ignore_ascii_case(b"incr") {
                Form::Integer
            } else if command.eq_ignore_ascii_case(b"lpop") {
                Form::Decimal
            } else {
                return None;
            }
        }
        // As some clients write an `INCR`.
        3 if word(0)?.eq_ignore_ascii_case(b"incrby") && word(2)? == b"1" => Form::Integer,
        _ => return None,
    };
    Some((arguments.place(1)?, form))
}

#[cfg(test)]
mod tests;

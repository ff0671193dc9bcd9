//! One client's requests, in order, as bytes in and bytes out. No socket is here.
//!
//! ```text
//!           +----------------------------------------------------------------+
//!           v                                                                |
//! input --> decode --> a take of the run's name and form: one more in the run|
//!              |       anything else: the run is taken as one batch, then it |
//!              |                                                             |
//!              +--> the turn's budget is spent, or no request is there as a whole
//!                       the run is taken, and the turn ends
//! ```
//!
//! A *run* is what a client has pipelined: takes of one namespace, one after the other. All
//! of them cost one `take_batch`, and their replies stand in the order of the requests,
//! since nothing else is answered before the run is.
//!
//! A reply of more IDs than a turn may write is an [`Answer`]: its IDs are taken step by
//! step, a step a turn, and then written so. No request behind it is looked at before.

use ringflake::{Id, TakeError};

use super::commands;
use super::decode::{Arguments, Decoded, Decoder, Malformed};
use super::desk::{Desk, Lookup, Met, OpenFailure};
use super::reply::{Form, Protocol, Replies};
use crate::access::Role;

/// Requests that a client has answered in one turn; then it is the next one's.
pub(super) const REQUESTS: usize = 512;

/// Bytes of replies, after which a turn ends.
pub(super) const REPLY_BYTES: usize = 64 << 10;

/// IDs that are taken or written in one step. Some 50 KiB of replies.
pub(super) const STEP: usize = 2_048;

/// What a client has said of itself, and what it waits for.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) peer: String,
    pub(super) protocol: Protocol,
    pub(super) token: Option<Box<[u8]>>,
    pub(super) name: String,
    pub(super) library: [String; 2],
    decoder: Decoder,
    answer: Option<Box<Answer>>,
    /// The namespace that was to be opened for the request in front.
    failed: Option<(String, OpenFailure)>,
}

/// What a turn has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// All requests that are there as a whole are answered.
    Input,
    /// There may be more to answer.
    Turn,
    /// The request in front needs this namespace, which is to be opened.
    Open(String),
    /// The client is to be left once it has these replies.
    Close,
}

/// What a command has come to.
#[derive(Debug)]
pub(super) enum Flow {
    /// It is answered.
    Done,
    /// It can't be answered before this is opened.
    Open(String),
    /// It will be answered in steps.
    Answer(Box<Answer>),
    /// It is answered, and nothing after it will be.
    Close,
}

/// A reply of many IDs.
#[derive(Debug)]
pub(super) struct Answer {
    namespace: Met,
    form: Form,
    ids: Vec<Id>,
    /// How many are still to be taken.
    left: usize,
    /// How many were written; `None` before the header.
    written: Option<usize>,
    /// What was set aside in [`Desk::held`].
    pub(super) held: usize,
}

/// Takes that follow each other.
struct Run {
    /// Where the first of them begins in the input.
    from: usize,
    /// The namespace's name in the input.
    name: (usize, usize),
    form: Form,
    count: usize,
}

impl Session {
    pub(super) fn new(number: u64, peer: String, request_bytes: usize) -> Self {
        Self {
            number,
            peer,
            protocol: Protocol::default(),
            token: None,
            name: String::new(),
            library: Default::default(),
            decoder: Decoder::new(request_bytes),
            answer: None,
            failed: None,
        }
    }

    /// The request in front can't be answered: its namespace was not opened.
    pub(super) fn open_failed(&mut self, name: String, failure: OpenFailure) {
        self.failed = Some((name, failure));
    }

    /// Whether a reply is not written as a whole.
    pub(super) fn is_answering(&self) -> bool {
        self.answer.is_some()
    }

    /// Gives up what is set aside for it. What was taken for it is lost.
    pub(super) fn end(&mut self, desk: &mut Desk) {
        if let Some(answer) = self.answer.take() {
            desk.held -= answer.held;
        }
    }

    /// Answers requests in the front of `input`, as many as are due in one turn. Says how
    /// many bytes are done with; the others are to be there again in the next call.
    pub(super) fn turn(
        &mut self,
        input: &[u8],
        desk: &mut Desk,
        output: &mut Vec<u8>,
    ) -> (usize, Next) {
        let mut replies = Replies {
            bytes: output,
            protocol: self.protocol,
            errors: 0,
        };
        let ended = self.requests(input, desk, &mut replies);
        desk.count_errors(replies.errors);
        ended
    }

    fn requests(
        &mut self,
        input: &[u8],
        desk: &mut Desk,
        replies: &mut Replies<'_>,
    ) -> (usize, Next) {
        if let Some(answer) = &mut self.answer {
            if !answer.step(replies, desk) {
                return (0, Next::Turn);
            }
            self.end(desk);
        }
        let mut at = 0;
        let mut run: Option<Run> = None;
        let mut budget = REQUESTS;
        let next = loop {
            if budget == 0 || replies.bytes.len() >= REPLY_BYTES {
                break Next::Turn;
            }
            budget -= 1;
            let rest = &input[at..];
            match self.decoder.decode(rest) {
                Ok(Decoded::Request(arguments, used)) => {
                    let plain = plain_take(&arguments, rest);
                    if let Some((name, form)) = plain {
                        let name = (at + name.0, at + name.1);
                        if let Some(run) = &mut run
                            && run.form == form
                            && input[run.name.0..run.name.1] == input[name.0..name.1]
                        {
                            run.count += 1;
                            at += used;
                            continue;
                        }
                        if let Some(stop) = self.take_run(&mut run, input, desk, replies) {
                            return stop;
                        }
                        run = Some(Run {
                            from: at,
                            name,
                            form,
                            count: 1,
                        });
                        at += used;
                        continue;
                    }
                    if let Some(stop) = self.take_run(&mut run, input, desk, replies) {
                        return stop;
                    }
                    match self.command(&arguments, &rest[..used], desk, replies) {
                        Flow::Done => at += used,
                        Flow::Open(name) => break Next::Open(name),
                        Flow::Answer(answer) => {
                            at += used;
                            self.answer = Some(answer);
                            break Next::Turn;
                        }
                        Flow::Close => {
                            at += used;
                            break Next::Close;
                        }
                    }
                }
                Ok(Decoded::Nothing(used)) => at += used,
                Ok(Decoded::Part) => break Next::Input,
                Err(malformed) => {
                    if let Some(stop) = self.take_run(&mut run, input, desk, replies) {
                        return stop;
                    }
                    desk.count_requests(1);
                    replies.error("ERR", malformed);
                    return (input.len(), Next::Close);
                }
            }
        };
        match self.take_run(&mut run, input, desk, replies) {
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
        desk: &mut Desk,
        replies: &mut Replies<'_>,
    ) -> Option<(usize, Next)> {
        let run = run.take()?;
        let name = &input[run.name.0..run.name.1];
        if let Some(refusal) = desk.refusal(Role::Take, self.token.as_deref()) {
            for _ in 0..run.count {
                replies.error(refusal.code, refusal.why);
            }
            desk.count_requests(run.count);
            return None;
        }
        let namespace = match self.find(name, desk) {
            Ok(namespace) => namespace,
            Err(Missing::Open(name)) => {
                // What was decoded behind it is decoded again.
                self.decoder.forget();
                return Some((run.from, Next::Open(name)));
            }
            Err(Missing::Failed(failure)) => {
                for _ in 0..run.count {
                    replies.error(failure.code(), &failure);
                }
                desk.count_requests(run.count);
                return None;
            }
        };
        let (ids, error) = desk.take(namespace, run.count);
        for &id in ids {
            replies.id(id, run.form);
        }
        let answered = ids.len();
        if let Some(error) = error {
            for _ in answered..run.count {
                refuse_take(replies, error);
            }
        }
        desk.count_requests(run.count);
        None
    }

    /// The namespace of a request.
    pub(super) fn find(&mut self, name: &[u8], desk: &mut Desk) -> Result<Met, Missing> {
        match desk.find(name) {
            Lookup::Made(namespace) => Ok(namespace),
            Lookup::Impossible(failure) => Err(Missing::Failed(failure)),
            Lookup::Unknown(name) => match self.failed.take_if(|(failed, _)| failed == name) {
                Some((_, failure)) => Err(Missing::Failed(failure)),
                None => Err(Missing::Open(name.to_owned())),
            },
        }
    }

    fn command(
        &mut self,
        arguments: &Arguments,
        request: &[u8],
        desk: &mut Desk,
        replies: &mut Replies<'_>,
    ) -> Flow {
        let flow = commands::run(self, &arguments.of(request), desk, replies);
        if !matches!(flow, Flow::Open(_)) {
            desk.count_requests(1);
        }
        flow
    }
}

/// Why there is no namespace for a request.
#[derive(Debug)]
pub(super) enum Missing {
    /// It has to be opened first.
    Open(String),
    Failed(OpenFailure),
}

impl Answer {
    pub(super) fn new(namespace: Met, form: Form, count: usize) -> Box<Self> {
        Box::new(Self {
            namespace,
            form,
            ids: Vec::with_capacity(count),
            left: count,
            written: None,
            held: count,
        })
    }

    /// Takes some of its IDs or writes some, and says whether that was all.
    fn step(&mut self, replies: &mut Replies<'_>, desk: &mut Desk) -> bool {
        if self.left > 0 {
            let (ids, error) = desk.take(self.namespace, self.left.min(STEP));
            self.ids.extend_from_slice(ids);
            self.left -= ids.len();
            match error {
                None => return false,
                // Those that there are will be the answer.
                Some(_) if !self.ids.is_empty() => self.left = 0,
                Some(error) => {
                    refuse_take(replies, error);
                    return true;
                }
            }
        }
        let written = *self.written.get_or_insert_with(|| {
            replies.array(self.ids.len());
            0
        });
        let to = self.ids.len().min(written + STEP);
        for &id in &self.ids[written..to] {
            replies.id(id, self.form);
        }
        self.written = Some(to);
        to == self.ids.len()
    }
}

/// The reply to a take that gave nothing.
pub(super) fn refuse_take(replies: &mut Replies<'_>, error: TakeError) {
    match error.retry_after() {
        Some(after) => replies.error(
            "TRYAGAIN",
            format_args!("{error} (retry in {} ms)", after.as_millis().max(1)),
        ),
        None => replies.error("ERR", error),
    }
}

/// The place of the name and the form, if a request takes one ID.
fn plain_take(arguments: &Arguments, request: &[u8]) -> Option<((usize, usize), Form)> {
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

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Protocol error: ")?;
        match *self {
            Self::ArrayLength => f.write_str("invalid multibulk length"),
            Self::BulkLength => f.write_str("invalid bulk length"),
            Self::NotBulk(byte) => write!(f, "expected '$', got '{}'", byte.escape_ascii()),
            Self::BulkEnd => f.write_str("a string does not end where its length says"),
            Self::TooLong { most } => write!(f, "a request has at most {most} bytes"),
            Self::Http => f.write_str("this is not HTTP, but the protocol of Redis"),
        }
    }
}

#[cfg(test)]
mod tests;

//! The arguments and the result that all commands share.

use crate::access::Role;
use crate::resp::context::WorkerContext;
use crate::resp::reply::{Rejection, Replies};
use crate::resp::session::Session;

pub(super) struct Call<'a, 'r> {
    pub(super) name: &'static str,
    pub(super) session: &'a mut Session,
    /// Those after the command's name.
    pub(super) arguments: &'a [&'a [u8]],
    pub(super) context: &'a mut WorkerContext,
    pub(super) replies: &'a mut Replies<'r>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    /// Some right, whichever.
    AnyRight,
    Right(Role),
}

pub(super) struct Command {
    pub(super) name: &'static str,
    /// As Redis counts: with the name, and negative where more may follow.
    pub(super) arity: i8,
    pub(super) needs: Needs,
    /// The arguments and the purpose; empty for commands that client libraries send by themselves.
    pub(super) usage: &'static str,
    pub(super) run: fn(Call<'_, '_>) -> Flow,
}

pub(super) const fn command(
    name: &'static str,
    arity: i8,
    needs: Needs,
    usage: &'static str,
    run: fn(Call<'_, '_>) -> Flow,
) -> Command {
    Command {
        name,
        arity,
        needs,
        usage,
        run,
    }
}

#[derive(Debug)]
pub(in crate::resp) enum Flow {
    Done,
    /// It can't be answered before this is opened.
    Open(String),
    /// It failed to authenticate. The reply waits for a while.
    Delay,
    /// It is answered, and nothing after it will be.
    Close,
}

/// Text of a client in an error, without what would end its line, and not all of a long one.
pub(super) struct Quoted<'a>(pub(super) &'a [u8]);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.0[..self.0.len().min(64)];
        write!(f, "'{}'", shown.escape_ascii())
    }
}

impl Call<'_, '_> {
    pub(super) fn refuse(self, why: impl std::fmt::Display) -> Flow {
        self.replies.error("ERR", why);
        Flow::Done
    }

    pub(super) fn reject(self, rejection: Rejection) -> Flow {
        self.replies.reject(&rejection);
        Flow::Done
    }

    pub(super) fn ok(self) -> Flow {
        self.replies.simple("OK");
        Flow::Done
    }
}

/// A number as Redis reads one.
pub(super) fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

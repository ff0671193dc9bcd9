//! The commands, each with its name, its arguments and the right that it needs.

mod client;
mod connection;
mod ids;
mod info;

use super::decode::Words;
use super::desk::{Desk, Refusal};
use super::reply::Replies;
use super::session::{Flow, Session};
use crate::access::Role;

/// What a command is given.
pub(super) struct Call<'a, 'r> {
    pub(super) session: &'a mut Session,
    /// Those after the command's name.
    pub(super) arguments: &'a [&'a [u8]],
    pub(super) desk: &'a mut Desk,
    pub(super) replies: &'a mut Replies<'r>,
}

/// What a client needs for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Some right, whichever.
    AnyRight,
    Right(Role),
}

struct Command {
    name: &'static str,
    /// As Redis counts: with the name, and negative where more may follow.
    arity: i8,
    needs: Needs,
    /// What follows the name, and what it is for; empty for what clients do on their own.
    usage: &'static str,
    run: fn(Call<'_, '_>) -> Flow,
}

const fn command(
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

const TAKE: Needs = Needs::Right(Role::Take);
const INSPECT: Needs = Needs::Right(Role::Inspect);
const ADMIN: Needs = Needs::Right(Role::Admin);

#[rustfmt::skip]
static COMMANDS: [Command; 20] = [
    command("INCR", 2, TAKE, "name: an ID as an integer; it is unique, and not greater than the one before", ids::incr),
    command("INCRBY", 3, TAKE, "name 1: as INCR", ids::incr),
    command("LPOP", -2, TAKE, "name [count]: IDs as strings of decimal digits, which JavaScript reads exactly", ids::lpop),
    command("RINGFLAKE.TAKE", -3, TAKE, "name count [FORMAT decimal|unsigned|text|integer]: IDs in a form of your choice", ids::take),
    command("RINGFLAKE.INSPECT", -3, INSPECT, "name id [FORMAT decimal|text]: the tick, time, node and sequence of an ID", ids::inspect),
    command("RINGFLAKE.STATS", -1, ADMIN, "[name]: the figures of one namespace, or of all that are open", info::stats),
    command("RINGFLAKE.HELP", 1, Needs::AnyRight, ": these lines", info::help),
    command("PING", -1, Needs::AnyRight, "", connection::ping),
    command("ECHO", 2, Needs::AnyRight, "", connection::echo),
    command("HELLO", -1, Needs::Nothing, "", connection::hello),
    command("AUTH", -2, Needs::Nothing, "", connection::auth),
    command("CLIENT", -2, Needs::AnyRight, "", client::client),
    command("COMMAND", -1, Needs::AnyRight, "", info::command),
    command("CONFIG", -2, Needs::AnyRight, "", info::config),
    command("INFO", -1, Needs::AnyRight, "", info::info),
    command("SELECT", 2, Needs::AnyRight, "", connection::select),
    command("RESET", 1, Needs::Nothing, "", connection::reset),
    command("QUIT", -1, Needs::Nothing, "", connection::quit),
    command("READONLY", 1, Needs::AnyRight, "", connection::ok),
    command("READWRITE", 1, Needs::AnyRight, "", connection::ok),
];

/// Text of a client in an error, without what would end its line, and not all of a long one.
struct Quoted<'a>(&'a [u8]);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.0[..self.0.len().min(64)];
        write!(f, "'{}'", shown.escape_ascii())
    }
}

pub(super) fn run(
    session: &mut Session,
    words: &Words<'_>,
    desk: &mut Desk,
    replies: &mut Replies<'_>,
) -> Flow {
    let (name, arguments) = words.split();
    let Some(command) = by_name(name) else {
        replies.error(
            "ERR",
            format_args!(
                "unknown command {}; this is a server of unique IDs: INCR name, LPOP name count, \
                 RINGFLAKE.HELP",
                Quoted(name)
            ),
        );
        return Flow::Done;
    };
    let refusal = match command.needs {
        Needs::Nothing => None,
        Needs::AnyRight => (!desk.knows(session.token.as_deref())).then_some(Refusal::UNKNOWN),
        Needs::Right(role) => desk.refusal(role, session.token.as_deref()),
    };
    if let Some(Refusal { code, why }) = refusal {
        replies.error(code, why);
        return Flow::Done;
    }
    let most = usize::from(command.arity.unsigned_abs()) - 1;
    let fits = if command.arity < 0 {
        // No command has more than are kept.
        words.len() >= most && words.len() == arguments.len()
    } else {
        words.len() == most
    };
    if !fits {
        let name = command.name.to_ascii_lowercase();
        replies.error(
            "ERR",
            format_args!("wrong number of arguments for '{name}' command"),
        );
        return Flow::Done;
    }
    (command.run)(Call {
        session,
        arguments,
        desk,
        replies,
    })
}

fn by_name(name: &[u8]) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

impl Call<'_, '_> {
    /// An answer of one error.
    fn refuse(self, why: impl std::fmt::Display) -> Flow {
        self.replies.error("ERR", why);
        Flow::Done
    }

    fn ok(self) -> Flow {
        self.replies.simple("OK");
        Flow::Done
    }
}

/// A number as Redis reads one.
fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

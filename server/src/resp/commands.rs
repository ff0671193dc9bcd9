//! The commands, each with its name, its arguments and the right that it needs.

mod call;
mod client;
mod cluster;
mod connection;
mod ids;
mod info;

pub(super) use self::call::Flow;
use self::call::{Call, Command, Needs, Quoted, command};
use self::ids::Take;
use super::context::WorkerContext;
use super::decode::Words;
use super::reply::{Rejection, Replies};
use super::session::Session;
use crate::access::Role;

const TAKE: Needs = Needs::Right(Role::Take);
const INSPECT: Needs = Needs::Right(Role::Inspect);
const ADMIN: Needs = Needs::Right(Role::Admin);

#[rustfmt::skip]
static COMMANDS: [Command; 28] = [
    command("INCR", 2, TAKE, "name: an ID as an integer; it is unique, and not always greater than the one before", ids::take),
    command("INCRBY", 3, TAKE, "name 1: as INCR", ids::take),
    command("LPOP", -2, TAKE, "name [count]: IDs as strings of decimal digits, which JavaScript reads exactly", ids::take),
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
    command("MULTI", 1, Needs::AnyRight, "", connection::multi),
    command("EXEC", 1, Needs::AnyRight, "", connection::exec),
    command("DISCARD", 1, Needs::AnyRight, "", connection::discard),
    command("WATCH", -2, Needs::AnyRight, "", connection::watch),
    command("UNWATCH", 1, Needs::AnyRight, "", connection::ok),
    command("CLUSTER", -2, Needs::AnyRight, "", cluster::cluster),
    command("SENTINEL", -2, Needs::AnyRight, "", cluster::sentinel),
    command("ROLE", 1, Needs::AnyRight, "", cluster::role),
    command("READONLY", 1, Needs::AnyRight, "", connection::ok),
    command("READWRITE", 1, Needs::AnyRight, "", connection::ok),
];

/// The command of that name, in whichever case.
fn by_name(name: &[u8]) -> Option<&'static Command> {
    let mut all = COMMANDS.iter();
    all.find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

/// Whether a request runs during a transaction and is not queued.
pub(super) fn runs_at_once(words: &Words<'_>) -> bool {
    let name = words.split().0;
    ["exec", "discard", "multi", "watch", "reset", "quit"]
        .iter()
        .any(|command| name.eq_ignore_ascii_case(command.as_bytes()))
}

/// The name of the namespace from which a request takes IDs.
pub(super) fn taken_name<'a>(words: &Words<'a>) -> Option<&'a [u8]> {
    let (name, arguments) = words.split();
    let command = by_name(name)?;
    (command.needs == TAKE).then(|| arguments.first().copied())?
}

/// How many replies a request may have in a transaction, each ID counted as one.
pub(super) fn check_queued(
    session: &Session,
    words: &Words<'_>,
    context: &WorkerContext,
) -> Result<usize, Rejection> {
    let command = check(session, words, context)?;
    if command.needs == Needs::Nothing {
        return Err(Rejection::of(format!(
            "{} is not allowed in a transaction",
            command.name
        )));
    }
    if command.needs != TAKE {
        return Ok(1);
    }
    // `EXEC` opens the namespaces of takes, so a take that would be refused must not be queued.
    let most = context.shared.setup.limits.count;
    let take = Take::read(command.name, words.split().1, most)?;
    Ok(take.count.unwrap_or(1).max(1))
}

/// The command of a request, if this client may run it so.
fn check(
    session: &Session,
    words: &Words<'_>,
    context: &WorkerContext,
) -> Result<&'static Command, Rejection> {
    let (name, arguments) = words.split();
    let Some(command) = by_name(name) else {
        return Err(Rejection::of(format!(
            "unknown command {}; this is a server of unique IDs: INCR name, LPOP name count, \
             RINGFLAKE.HELP",
            Quoted(name)
        )));
    };
    let token = session.token();
    match command.needs {
        Needs::Nothing => {}
        Needs::AnyRight if context.shared.knows(token) => {}
        Needs::AnyRight => return Err(Rejection::UNAUTHENTICATED),
        Needs::Right(role) => session.check_right(role, context)?,
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
        return Err(Rejection::of(format!(
            "wrong number of arguments for '{name}' command"
        )));
    }
    Ok(command)
}

pub(super) fn run(
    session: &mut Session,
    words: &Words<'_>,
    context: &mut WorkerContext,
    replies: &mut Replies<'_>,
) -> Flow {
    match check(session, words, context) {
        Ok(command) => (command.run)(Call {
            name: command.name,
            session,
            arguments: words.split().1,
            context,
            replies,
        }),
        Err(rejection) => {
            replies.reject(&rejection);
            Flow::Done
        }
    }
}

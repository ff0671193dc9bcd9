//! The commands, each with its name, its arguments and the right that it needs.

mod call;
mod client;
mod connection;
mod ids;
mod info;
mod transaction;

pub(super) use self::call::Flow;
use self::call::{Call, Command, Needs, Quoted, by_name, command};
use super::context::{Refusal, WorkerContext};
use super::decode::Words;
use super::reply::Replies;
use super::session::Session;
use crate::access::Role;

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

pub(super) fn run(
    session: &mut Session,
    words: &Words<'_>,
    context: &mut WorkerContext,
    replies: &mut Replies<'_>,
) -> Flow {
    let (name, arguments) = words.split();
    if let Some(flow) = transaction::refuse(session, name, context, replies) {
        return flow;
    }
    let Some(command) = by_name(&COMMANDS, name) else {
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
        Needs::AnyRight => (!context.knows(session.token.as_deref())).then_some(Refusal::UNKNOWN),
        Needs::Right(role) => context.refusal(role, session.token.as_deref()),
    };
    if let Some(refusal) = refusal {
        if let Needs::Right(role) = command.needs {
            session.log_refusal(role, refusal, context);
        }
        replies.error(refusal.code, refusal.why);
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
        commands: &COMMANDS,
        context,
        replies,
    })
}

//! The commands about a connection itself.

use super::call::{Call, Flow, Quoted, number};
use super::client;
use super::info::REDIS_VERSION;
use crate::resp::reply::{Protocol, Rejection};

pub(super) fn ping(call: Call<'_, '_>) -> Flow {
    match *call.arguments {
        [] => call.replies.simple("PONG"),
        [message] => call.replies.bulk(message),
        _ => return call.refuse("wrong number of arguments for 'ping' command"),
    }
    Flow::Done
}

pub(super) fn echo(call: Call<'_, '_>) -> Flow {
    call.replies
        .bulk(call.arguments.first().copied().unwrap_or(&[]));
    Flow::Done
}

pub(super) fn ok(call: Call<'_, '_>) -> Flow {
    call.ok()
}

pub(super) fn multi(call: Call<'_, '_>) -> Flow {
    if call.session.transaction.is_some() {
        return call.refuse("MULTI calls can not be nested");
    }
    call.session.transaction = Some(Box::default());
    call.ok()
}

pub(super) fn exec(call: Call<'_, '_>) -> Flow {
    call.session.execute(call.context, call.replies)
}

pub(super) fn discard(call: Call<'_, '_>) -> Flow {
    match call.session.transaction.take() {
        Some(_) => call.ok(),
        None => call.refuse("DISCARD without MULTI"),
    }
}

/// No ID changes, so there is nothing to watch.
pub(super) fn watch(call: Call<'_, '_>) -> Flow {
    match call.session.transaction {
        Some(_) => call.refuse("WATCH inside MULTI is not allowed"),
        None => call.ok(),
    }
}

pub(super) fn select(call: Call<'_, '_>) -> Flow {
    match call.arguments.first().and_then(|index| number(index)) {
        // A namespace is the same in each of them.
        Some(0..=15) => call.ok(),
        Some(_) => call.refuse("DB index is out of range: it is 0 to 15"),
        None => call.refuse("invalid DB index"),
    }
}

pub(super) fn quit(call: Call<'_, '_>) -> Flow {
    call.replies.simple("OK");
    Flow::Close
}

pub(super) fn reset(call: Call<'_, '_>) -> Flow {
    call.session.authenticate(None, &call.context.shared);
    call.session.name.clear();
    call.session.transaction = None;
    call.session.protocol = Protocol::default();
    call.replies.protocol = Protocol::default();
    call.replies.simple("RESET");
    Flow::Done
}

/// The token is the password; a user's name says nothing here.
pub(super) fn auth(call: Call<'_, '_>) -> Flow {
    let ([token] | [_, token]) = *call.arguments else {
        return call.refuse("wrong number of arguments for 'auth' command");
    };
    if call.context.shared.knows(Some(token)) {
        call.session.authenticate(Some(token), &call.context.shared);
        call.ok()
    } else {
        wrong_token(call)
    }
}

fn wrong_token(call: Call<'_, '_>) -> Flow {
    call.replies.error(
        "WRONGPASS",
        "invalid username-password pair or user is disabled.",
    );
    let session = call.session;
    call.context
        .count_auth_failure(session.client, &session.peer);
    Flow::Delay
}

/// `HELLO [2|3 [AUTH user token] [SETNAME name]]`. All of it happens, or nothing.
pub(super) fn hello(call: Call<'_, '_>) -> Flow {
    let mut protocol = call.session.protocol;
    let mut rest = call.arguments;
    if let [version, more @ ..] = rest {
        rest = more;
        protocol = match number(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            _ => {
                call.replies
                    .error("NOPROTO", "unsupported protocol version: it is 2 or 3");
                return Flow::Done;
            }
        };
    }
    let (mut token, mut name) = (None, None);
    loop {
        rest = match *rest {
            [] => break,
            [word, _, given, ref more @ ..] if word.eq_ignore_ascii_case(b"auth") => {
                token = Some(given);
                more
            }
            [word, given, ref more @ ..] if word.eq_ignore_ascii_case(b"setname") => {
                name = Some(given);
                more
            }
            [word, ..] => {
                return call.refuse(format_args!(
                    "syntax error in HELLO option {}",
                    Quoted(word)
                ));
            }
        };
    }
    match token {
        Some(token) if !call.context.shared.knows(Some(token)) => return wrong_token(call),
        None if !call.context.shared.knows(call.session.token()) => {
            call.replies.error(
                Rejection::UNAUTHENTICATED.code,
                "HELLO must be called with the client already authenticated, otherwise the HELLO \
                 <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                 select the RESP protocol version at the same time",
            );
            return Flow::Done;
        }
        _ => {}
    }
    if let Some(name) = name {
        match client::checked_name(name) {
            Some(name) => call.session.name = name.to_owned(),
            None => return call.refuse(client::BAD_NAME),
        }
    }
    if let Some(token) = token {
        call.session.authenticate(Some(token), &call.context.shared);
    }
    call.session.protocol = protocol;
    call.replies.protocol = protocol;
    let replies = call.replies;
    replies.map(7);
    // The client-side cache of redis-py accepts no other name. `INFO` has the server's own.
    replies.pair("server", "redis");
    replies.pair("version", REDIS_VERSION);
    replies.pair("mode", call.context.shared.mode());
    replies.pair("role", "master");
    replies.figure("proto", i64::from(protocol.number()));
    replies.figure("id", call.session.number.cast_signed());
    replies.bulk(b"modules");
    replies.array(0);
    Flow::Done
}

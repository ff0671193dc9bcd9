//! The commands that give IDs, and the one that takes an ID apart.

use super::call::{Call, Flow, Quoted, number};
use crate::access::Role;
use crate::resp::reply::{Form, refuse_take};

/// Maximum bytes of an ID in a reply, with its header and line ends.
const ID_BYTES: usize = 27;

/// `INCR name` and `INCRBY name 1` are takes of a run, so what comes here is refused.
pub(super) fn incr(call: Call<'_, '_>) -> Flow {
    call.refuse(
        "an ID is unique and not counted, so the only increment is 1: for several IDs use LPOP \
         name count",
    )
}

pub(super) fn lpop(call: Call<'_, '_>) -> Flow {
    // Without a count it is a take of a run.
    let [name, count] = *call.arguments else {
        return call.refuse("wrong number of arguments for 'lpop' command");
    };
    take_many(call, name, count, Form::Decimal)
}

pub(super) fn take(call: Call<'_, '_>) -> Flow {
    match *call.arguments {
        [name, count] => take_many(call, name, count, Form::default()),
        [name, count, word, form] if word.eq_ignore_ascii_case(b"format") => {
            match Form::by_name(form) {
                Some(form) => take_many(call, name, count, form),
                None => unknown_form(call, form),
            }
        }
        _ => syntax(call, "name count [FORMAT decimal|unsigned|text|integer]"),
    }
}

fn syntax(call: Call<'_, '_>, expected: &str) -> Flow {
    call.refuse(format_args!("syntax error: expected {expected}"))
}

fn unknown_form(call: Call<'_, '_>, form: &[u8]) -> Flow {
    call.refuse(format_args!(
        "unknown format {}: it is decimal, unsigned, text or integer",
        Quoted(form)
    ))
}

fn take_many(call: Call<'_, '_>, name: &[u8], count: &[u8], form: Form) -> Flow {
    let most = call.context.shared.limits.count;
    let count = number(count).and_then(|count| usize::try_from(count).ok());
    let Some(count) = count.filter(|&count| count <= most) else {
        return call.refuse(format_args!("the count is out of range: it is 0 to {most}"));
    };
    let (session, context, replies) = (call.session, call.context, call.replies);
    let namespace = match session.find_to_take(name, 1, count, context) {
        Ok(allowed) => allowed.namespace,
        Err(missing) => return missing.refuse(1, replies).map_or(Flow::Done, Flow::Open),
    };
    let (ids, error) = context.take(namespace, count);
    match error {
        Some(error) if ids.is_empty() => refuse_take(replies, error),
        // Fewer than asked for, as a list that has no more.
        _ => {
            replies.bytes.reserve(ids.len() * ID_BYTES);
            replies.array(ids.len());
            for &id in ids {
                replies.id(id, form);
            }
        }
    }
    Flow::Done
}

pub(super) fn inspect(call: Call<'_, '_>) -> Flow {
    let (name, id, form) = match *call.arguments {
        [name, id] => (name, id, Form::default()),
        [name, id, word, form] if word.eq_ignore_ascii_case(b"format") => {
            match Form::by_name(form) {
                Some(form) => (name, id, form),
                None => return unknown_form(call, form),
            }
        }
        _ => return syntax(call, "name id [FORMAT decimal|text]"),
    };
    let Some(id) = form.read(id) else {
        return call.refuse(
            "this is no ID: write it as INCR and LPOP do, in decimal digits, or as text with \
             FORMAT text",
        );
    };
    let (session, context, replies) = (call.session, call.context, call.replies);
    // First, so that a limited token does not learn which other namespaces there are.
    let used = context.name_of(name);
    let used = String::from_utf8_lossy(&used);
    let (_, spent) = session.spend(Role::Inspect, &used, 1, 1, context);
    // A look does not begin a namespace.
    let namespace = match spent.and_then(|()| session.find_made(name, context)) {
        Ok(namespace) => namespace,
        Err(rejection) => {
            replies.reject(&rejection);
            return Flow::Done;
        }
    };
    match context.namespace(namespace).generator.inspect(id) {
        Ok(parts) => {
            let parts = [
                ("tick", parts.tick),
                ("unix_ms", parts.unix_ms),
                ("node", parts.node),
                ("sequence", parts.sequence),
            ];
            replies.map(parts.len());
            for (name, number) in parts {
                replies.bulk(name.as_bytes());
                replies.integer(number.cast_signed());
            }
        }
        Err(error) => replies.error("ERR", error),
    }
    Flow::Done
}

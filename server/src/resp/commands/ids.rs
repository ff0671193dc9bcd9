//! The commands that give IDs, and the one that takes an ID apart.

use super::call::{Call, Flow, Quoted, number};
use crate::access::Role;
use crate::resp::reply::{Form, Rejection, refuse_take};

/// Maximum bytes of an ID in a reply, with its header and line ends.
const ID_BYTES: usize = 27;

pub(super) struct Take<'a> {
    name: &'a [u8],
    /// `None` for one ID that is not in a list.
    pub(super) count: Option<usize>,
    form: Form,
}

impl<'a> Take<'a> {
    /// Reads the arguments of this command, or says why it takes no IDs. Costs no I/O.
    pub(super) fn read(
        command: &str,
        arguments: &[&'a [u8]],
        most: usize,
    ) -> Result<Self, Rejection> {
        let (name, count, form) = match (command, arguments) {
            ("INCR", [name]) => (name, None, Form::Integer),
            ("INCRBY", [name, increment]) if *increment == b"1" => (name, None, Form::Integer),
            ("LPOP", [name]) => (name, None, Form::Decimal),
            ("LPOP" | "RINGFLAKE.TAKE", [name, count]) => (name, Some(count), Form::default()),
            ("RINGFLAKE.TAKE", [name, count, word, form])
                if word.eq_ignore_ascii_case(b"format") =>
            {
                let form = Form::by_name(form).ok_or_else(|| unknown_form(form))?;
                (name, Some(count), form)
            }
            ("RINGFLAKE.TAKE", _) => {
                return Err(syntax("name count [FORMAT decimal|unsigned|text|integer]"));
            }
            ("LPOP", _) => {
                return Err(Rejection::of(
                    "wrong number of arguments for 'lpop' command",
                ));
            }
            _ => {
                return Err(Rejection::of(
                    "an ID is unique and not counted, so the only increment is 1: for several IDs \
                     use LPOP name count",
                ));
            }
        };
        let read = |text: &&[u8]| {
            let count = number(text).and_then(|count| usize::try_from(count).ok());
            count.filter(|&count| count <= most).ok_or_else(|| {
                Rejection::of(format!("the count is out of range: it is 0 to {most}"))
            })
        };
        Ok(Self {
            name,
            count: count.map(read).transpose()?,
            form,
        })
    }
}

fn syntax(expected: &str) -> Rejection {
    Rejection::of(format!("syntax error: expected {expected}"))
}

fn unknown_form(form: &[u8]) -> Rejection {
    Rejection::of(format!(
        "unknown format {}: it is decimal, unsigned, text or integer",
        Quoted(form)
    ))
}

pub(super) fn take(call: Call<'_, '_>) -> Flow {
    let (session, context, replies) = (call.session, call.context, call.replies);
    let most = context.shared.setup.limits.count;
    let Take { name, count, form } = match Take::read(call.name, call.arguments, most) {
        Ok(take) => take,
        Err(rejection) => {
            replies.reject(&rejection);
            return Flow::Done;
        }
    };
    let Some(count) = count else {
        let opening = session.take(name, form, 1, context, replies);
        return opening.map_or(Flow::Done, Flow::Open);
    };
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
                None => return call.reject(unknown_form(form)),
            }
        }
        _ => return call.reject(syntax("name id [FORMAT decimal|text]")),
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
                replies.figure(name, number.cast_signed());
            }
        }
        Err(error) => replies.error("ERR", error),
    }
    Flow::Done
}

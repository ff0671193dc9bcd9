//! `CLIENT`, as far as clients send it on their own.

use super::call::{Call, Flow, Quoted, number};
use crate::resp::session::Session;

pub(super) const BAD_NAME: &str =
    "Client names cannot contain spaces, newlines or special characters.";

/// A name is kept for as long as its connection, and no more of it than this.
const NAME_BYTES: usize = 64;

/// The stored part of a name. A long name is cut and not refused: Redis has no limit, and no
/// client should fail because of its name.
pub(super) fn checked_name(name: &[u8]) -> Option<&str> {
    let is_printable = name.iter().all(u8::is_ascii_graphic);
    let kept = &name[..name.len().min(NAME_BYTES)];
    is_printable.then(|| std::str::from_utf8(kept).ok())?
}

/// Whether these are the options of `CLIENT TRACKING ON`, in lower case.
fn are_of_tracking(options: &[&[u8]]) -> bool {
    match options {
        [] => true,
        [b"bcast" | b"optin" | b"optout" | b"noloop", rest @ ..] => are_of_tracking(rest),
        [b"prefix", _, rest @ ..] => are_of_tracking(rest),
        [b"redirect", id, rest @ ..] => number(id).is_some() && are_of_tracking(rest),
        _ => false,
    }
}

pub(super) fn client(call: Call<'_, '_>) -> Flow {
    let arguments = call.arguments;
    let lower: Vec<_> = arguments
        .iter()
        .map(|word| word.to_ascii_lowercase())
        .collect();
    let lower: Vec<&[u8]> = lower.iter().map(Vec::as_slice).collect();
    match lower[..] {
        [b"id"] => {
            call.replies.integer(call.session.number.cast_signed());
            Flow::Done
        }
        [b"getname"] => {
            match call.session.name.as_str() {
                "" => call.replies.null(),
                name => call.replies.bulk(name.as_bytes()),
            }
            Flow::Done
        }
        [b"setname", _] => set_name(call, arguments[1], |session| &mut session.name),
        [b"setinfo", b"lib-name", _] => {
            set_name(call, arguments[2], |session| &mut session.library[0])
        }
        [b"setinfo", b"lib-ver", _] => {
            set_name(call, arguments[2], |session| &mut session.library[1])
        }
        // Others are nobody's business, so a list has this one.
        [b"info" | b"list", ..] => {
            let session = &*call.session;
            let line = format!(
                "id={} addr={} name={} db=0 resp={} lib-name={} lib-ver={}\n",
                session.number,
                session.peer,
                session.name,
                session.protocol.number(),
                session.library[0],
                session.library[1],
            );
            call.replies.bulk(line.as_bytes());
            Flow::Done
        }
        [b"no-evict" | b"no-touch", b"on" | b"off"]
        | [b"reply", b"on"]
        | [b"caching", b"yes" | b"no"] => call.ok(),
        // redis-py and others ask to be told of failovers. There are none.
        [b"maint_notifications", b"on" | b"off", ..] => call.ok(),
        // Nothing that is read here may be cached, so nothing is ever to be said of it.
        [b"tracking", b"on" | b"off", ref options @ ..] if are_of_tracking(options) => call.ok(),
        _ => call.refuse(format_args!(
            "unknown subcommand or wrong arguments of {}: CLIENT has ID, GETNAME, SETNAME, \
             SETINFO, INFO, LIST, TRACKING and CACHING here",
            Quoted(arguments.first().unwrap_or(&&[][..]))
        )),
    }
}

/// Keeps a name, if it can be one.
fn set_name(call: Call<'_, '_>, name: &[u8], place: fn(&mut Session) -> &mut String) -> Flow {
    match checked_name(name) {
        Some(name) => {
            name.clone_into(place(call.session));
            call.ok()
        }
        None => call.refuse(BAD_NAME),
    }
}

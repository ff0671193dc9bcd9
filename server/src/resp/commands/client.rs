//! `CLIENT`, as far as clients send it on their own.

use super::call::{Call, Flow, Quoted, number};

pub(super) const BAD_NAME: &str =
    "Client names cannot contain spaces, newlines or special characters.";

/// A name is kept for as long as its connection, and no more of it than this.
const NAME_BYTES: usize = 64;

/// What is kept of a name. A long one is cut and not refused: Redis has no limit, and for the
/// sake of its name no client is to fail.
pub(super) fn checked_name(name: &[u8]) -> Option<&str> {
    let is_printable = name.iter().all(u8::is_ascii_graphic);
    let kept = &name[..name.len().min(NAME_BYTES)];
    is_printable.then(|| std::str::from_utf8(kept).ok())?
}

/// Whether these are the options of `CLIENT TRACKING ON`.
fn are_of_tracking(mut options: &[&[u8]]) -> bool {
    let is = |word: &[u8], expected: &[&str]| {
        let mut expected = expected.iter();
        expected.any(|expected| word.eq_ignore_ascii_case(expected.as_bytes()))
    };
    loop {
        options = match *options {
            [] => return true,
            [word, ref rest @ ..] if is(word, &["bcast", "optin", "optout", "noloop"]) => rest,
            [word, _, ref rest @ ..] if is(word, &["prefix"]) => rest,
            [word, id, ref rest @ ..] if is(word, &["redirect"]) && number(id).is_some() => rest,
            _ => return false,
        };
    }
}

pub(super) fn client(call: Call<'_, '_>) -> Flow {
    let arguments = call.arguments;
    let is = |word: &[u8], expected: &str| word.eq_ignore_ascii_case(expected.as_bytes());
    match *arguments {
        [word] if is(word, "id") => {
            call.replies.integer(call.session.number.cast_signed());
            Flow::Done
        }
        [word] if is(word, "getname") => {
            match call.session.name.as_str() {
                "" => call.replies.null(),
                name => call.replies.bulk(name.as_bytes()),
            }
            Flow::Done
        }
        [word, name] if is(word, "setname") => match checked_name(name) {
            Some(name) => {
                call.session.name = name.to_owned();
                call.ok()
            }
            None => call.refuse(BAD_NAME),
        },
        [word, which, value] if is(word, "setinfo") => {
            let place = usize::from(is(which, "lib-ver"));
            if place == 0 && !is(which, "lib-name") {
                return call.refuse(format_args!("Unrecognized option {}", Quoted(which)));
            }
            match checked_name(value) {
                Some(value) => {
                    call.session.library[place] = value.to_owned();
                    call.ok()
                }
                None => call.refuse(BAD_NAME),
            }
        }
        // Others are nobody's business, so a list has this one.
        [word, ..] if is(word, "info") || is(word, "list") => {
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
        [word, switch]
            if (is(word, "no-evict") || is(word, "no-touch"))
                && (is(switch, "on") || is(switch, "off")) =>
        {
            call.ok()
        }
        [word, switch] if is(word, "reply") && is(switch, "on") => call.ok(),
        // Nothing that is read here may be cached, so nothing is ever to be said of it.
        [word, switch, ref options @ ..]
            if is(word, "tracking")
                && (is(switch, "on") || is(switch, "off"))
                && are_of_tracking(options) =>
        {
            call.ok()
        }
        [word, switch] if is(word, "caching") && (is(switch, "yes") || is(switch, "no")) => {
            call.ok()
        }
        // redis-py and others ask to be told of failovers. There are none.
        [word, switch, ..]
            if is(word, "maint_notifications") && (is(switch, "on") || is(switch, "off")) =>
        {
            call.ok()
        }
        [word, ..] => call.refuse(format_args!(
            "unknown subcommand or wrong arguments of {}: CLIENT has ID, GETNAME, SETNAME, \
             SETINFO, INFO, LIST, TRACKING and CACHING here",
            Quoted(word)
        )),
        [] => Flow::Done,
    }
}

//! `CLIENT`, as far as clients send it on their own.

use super::call::{Call, Flow, Quoted};

pub(super) const BAD_NAME: &str =
    "Client names cannot contain spaces, newlines or special characters, or more than 64 bytes.";

/// A name is kept for as long as its connection, so it has a limit.
const NAME_BYTES: usize = 64;

pub(super) fn checked_name(name: &[u8]) -> Option<&str> {
    let printable = name.iter().all(u8::is_ascii_graphic);
    if printable && name.len() <= NAME_BYTES {
        std::str::from_utf8(name).ok()
    } else {
        None
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
        [word, switch] if is(word, "tracking") && is(switch, "off") => call.ok(),
        [word, ..] => call.refuse(format_args!(
            "unknown subcommand {}: CLIENT has ID, GETNAME, SETNAME, SETINFO, INFO and LIST here",
            Quoted(word)
        )),
        [] => Flow::Done,
    }
}

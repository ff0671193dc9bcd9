//! The commands that say what the server is and has done.

use std::fmt::Write as _;

use super::call::{Call, Command, Flow, Needs, Quoted};
use super::{COMMANDS, by_name};
use crate::access::Role;
use crate::counters::{open, total};
use crate::namespaces::Namespace;
use crate::resp::reply::Replies;

/// The Redis whose protocol this is. `HELLO` and `INFO` say it, since clients choose by it what
/// they send; the server's own version is `ringflake_version` of `INFO`.
pub(super) const REDIS_VERSION: &str = "7.4.0";

pub(super) fn help(call: Call<'_, '_>) -> Flow {
    let lines = COMMANDS.iter().filter(|command| !command.usage.is_empty());
    call.replies.array(lines.clone().count());
    for Command { name, usage, .. } in lines {
        let space = if usage.starts_with(':') { "" } else { " " };
        call.replies
            .bulk(format!("{name}{space}{usage}").as_bytes());
    }
    Flow::Done
}

/// Redis's own tools send it before they begin. There is nothing to set.
pub(super) fn config(call: Call<'_, '_>) -> Flow {
    match *call.arguments {
        [word, ref names @ ..] if !names.is_empty() && word.eq_ignore_ascii_case(b"get") => {
            let known = names.iter().filter_map(|&name| {
                let value = match name.to_ascii_lowercase().as_slice() {
                    b"save" => "",
                    b"appendonly" => "no",
                    _ => return None,
                };
                Some((name, value))
            });
            call.replies.map(known.clone().count());
            for (name, value) in known {
                call.replies.pair(name, value);
            }
            Flow::Done
        }
        _ => call.refuse("nothing can be set here: the server has a file for its configuration"),
    }
}

pub(super) fn command(call: Call<'_, '_>) -> Flow {
    let replies = call.replies;
    match *call.arguments {
        [] => {
            replies.array(COMMANDS.len());
            for command in &COMMANDS {
                describe(command, replies);
            }
        }
        [word] if word.eq_ignore_ascii_case(b"count") => replies.integer(COMMANDS.len() as i64),
        [word, ref names @ ..] if word.eq_ignore_ascii_case(b"info") => {
            replies.array(names.len());
            for name in names {
                match by_name(name) {
                    Some(command) => describe(command, replies),
                    None => replies.null(),
                }
            }
        }
        [word, ref names @ ..] if word.eq_ignore_ascii_case(b"docs") => {
            let is_asked = |command: &&Command| {
                let mut names = names.iter();
                names.len() == 0
                    || names.any(|name| command.name.as_bytes().eq_ignore_ascii_case(name))
            };
            let asked = COMMANDS.iter().filter(is_asked);
            replies.map(asked.clone().count());
            for command in asked {
                replies.bulk(command.name.to_ascii_lowercase().as_bytes());
                replies.map(2);
                replies.pair("summary", command.usage);
                replies.pair("group", "generic");
            }
        }
        [word, ..] => {
            replies.error(
                "ERR",
                format_args!(
                    "unknown subcommand {}: COMMAND has COUNT, INFO and DOCS here",
                    Quoted(word)
                ),
            );
        }
    }
    Flow::Done
}

/// As Redis 6 describes a command: what a client needs to send it to the right place.
fn describe(command: &Command, replies: &mut Replies<'_>) {
    let has_key = matches!(command.needs, Needs::Right(Role::Take | Role::Inspect));
    replies.array(7);
    replies.bulk(command.name.to_ascii_lowercase().as_bytes());
    replies.integer(i64::from(command.arity));
    replies.array(1);
    replies.simple("fast");
    for _ in ["first", "last", "step"] {
        replies.integer(i64::from(has_key));
    }
    // Its ACL categories, which redis-py's cluster client reads.
    replies.array(0);
}

pub(super) fn info(call: Call<'_, '_>) -> Flow {
    let sections = call.arguments;
    let is_asked = |section: &str| {
        let all = ["all", "everything", "default", section];
        let is_one = |word: &&[u8]| {
            all.iter()
                .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        sections.is_empty() || sections.iter().any(is_one)
    };
    let mut text = String::new();
    // Into a string, which can't fail.
    if is_asked("server") {
        let up = call.context.shared.started.elapsed().as_secs();
        let _ = write!(
            text,
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:{}\r\n\
             server_name:ringflake\r\nringflake_version:{}\r\nprocess_id:{}\r\n\
             uptime_in_seconds:{up}\r\nloading:0\r\n\r\n",
            call.context.shared.mode(),
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
        );
    }
    let rejection = call.context.rejection(Role::Admin, call.session.token());
    if rejection.is_none() {
        let shared = &call.context.shared;
        let counters = &shared.setup.counters;
        if is_asked("clients") {
            let _ = write!(
                text,
                "# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\n\r\n",
                open(counters),
                shared.setup.limits.connections,
            );
        }
        if is_asked("stats") {
            let _ = write!(
                text,
                "# Stats\r\ntotal_connections_received:{}\r\nrejected_connections:{}\r\n\
                 total_commands_processed:{}\r\ntotal_error_replies:{}\r\nids_sent:{}\r\n\r\n",
                total(counters, |of| &of.accepted),
                total(counters, |of| &of.turned_away),
                total(counters, |of| &of.requests),
                total(counters, |of| &of.errors),
                total(counters, |of| &of.ids),
            );
        }
    }
    if is_asked("replication") {
        text.push_str("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n");
    }
    if is_asked("cluster") {
        let is_enabled = u8::from(call.context.shared.announced.is_some());
        let _ = write!(text, "# Cluster\r\ncluster_enabled:{is_enabled}\r\n\r\n");
    }
    call.replies.bulk(text.as_bytes());
    Flow::Done
}

pub(super) fn stats(call: Call<'_, '_>) -> Flow {
    match *call.arguments {
        [] => {
            let all = call.context.all();
            call.replies.map(all.len());
            for namespace in &all {
                call.replies.bulk(namespace.name.as_bytes());
                figures(namespace, call.replies);
            }
        }
        [name] => match call.session.find_made(name, call.context) {
            Ok(namespace) => figures(call.context.namespace(namespace), call.replies),
            Err(rejection) => call.replies.reject(&rejection),
        },
        _ => return call.refuse("wrong number of arguments for 'ringflake.stats' command"),
    }
    Flow::Done
}

fn figures(namespace: &Namespace, replies: &mut Replies<'_>) {
    let stats = namespace.generator.stats();
    let milliseconds =
        |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let figures = [
        ("level", stats.level as u64),
        ("capacity", stats.capacity as u64),
        ("issued", stats.issued),
        ("in_place", stats.in_place),
        ("empties", stats.empties),
        ("refusals", stats.refusals),
        ("retired", stats.retired),
        ("borrowed_ms", milliseconds(stats.borrowed)),
        ("borrow_limit_ms", milliseconds(stats.borrow_limit)),
        ("lease_end_unix_ms", stats.lease_end_unix_ms),
    ];
    replies.map(figures.len() + 1);
    for (name, figure) in figures {
        replies.figure(name, i64::try_from(figure).unwrap_or(i64::MAX));
    }
    replies.figure("ready", i64::from(namespace.readiness().is_ok()));
}

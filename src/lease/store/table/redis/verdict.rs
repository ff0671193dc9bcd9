//! The meaning of a driver's error for the request.

use redis::{ErrorKind, RedisError};

use crate::lease::store::table::failure::{Failure, Verdict};

/// The verdict on a script that was sent.
///
/// A server's error reply means that the script did not run, or that it ended before it wrote a
/// value: it reads all that it needs first, and Redis checks memory, role and replicas at the
/// first write. The codes are listed nevertheless, so that an unknown code counts as unknown.
fn verdict(error: &RedisError) -> Verdict {
    if matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse) {
        return Failure::Unknown;
    }
    match error.code() {
        Some("WRONGTYPE") => |cause| {
            let detail = "a key of ringflake has another type in Redis";
            Failure::corrupt(detail, Some(cause))
        },
        Some(
            "ASK" | "BUSY" | "CLUSTERDOWN" | "CROSSSLOT" | "DENIED" | "LOADING" | "MASTERDOWN"
            | "MISCONF" | "MOVED" | "NOAUTH" | "NOPERM" | "NOREPLICAS" | "NOSCRIPT" | "OOM"
            | "READONLY" | "TRYAGAIN" | "WRONGPASS",
        ) => Failure::NotDone,
        // NOPERM within a script, before Redis 7.2. The script's keys were checked when it was
        // called, and the user lacks the command for all of them.
        Some("ERR")
            if error
                .detail()
                .is_some_and(|it| it.starts_with(NO_PERMISSION)) =>
        {
            Failure::NotDone
        }
        _ => Failure::Unknown,
    }
}

const NO_PERMISSION: &str = "The user executing the script can't run this command";

/// The failure of a script.
pub(super) fn failure(error: RedisError) -> Failure {
    verdict(&error)(error.into())
}

/// The failure of a command before any script.
pub(super) fn refused(error: RedisError) -> Failure {
    match error.code() {
        Some("NOAUTH") => Failure::Denied(error.into()),
        _ => Failure::not_done(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::lease::store::table::failure::name_of;

    fn reply(line: &str) -> RedisError {
        let bytes = format!("-{line}\r\n").into_bytes();
        match redis::parse_redis_value(&bytes).unwrap() {
            redis::Value::ServerError(error) => error.into(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_but_a_refusal_that_is_known_is_unknown() {
        for (line, expected) in [
            (
                "READONLY You can't write against a read only replica.",
                "NotDone",
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                "NotDone",
            ),
            (
                "NOPERM this user has no permissions to run the 'evalsha' command",
                "NotDone",
            ),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                "Refused",
            ),
            (
                "ERR The user executing the script can't run this command or subcommand \
                 script: 231e3f, on @user_script:152.",
                "NotDone",
            ),
            ("ERR Error running script", "Unknown"),
            ("EXECABORT aborted", "Unknown"),
            ("NEWCODE what is this", "Unknown"),
        ] {
            assert_eq!(name_of(verdict(&reply(line))), expected, "{line}");
        }
        for kind in [
            io::ErrorKind::TimedOut,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::UnexpectedEof,
        ] {
            let error = RedisError::from(io::Error::from(kind));
            assert_eq!(name_of(verdict(&error)), "Unknown", "{error}");
        }
        let garbage = redis::parse_redis_value(b"*1\r\n?").unwrap_err();
        assert_eq!(name_of(verdict(&garbage)), "Unknown");
    }
}

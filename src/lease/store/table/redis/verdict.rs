//! The meaning of a driver's error for the request.

use redis::{ErrorKind, RedisError};

use crate::lease::store::table::session::{Failure, Verdict};

/// The verdict on a script that was sent.
///
/// A server's error reply means that the script did not run, or that it ended before it wrote a
/// value: it reads all that it needs first, and Redis checks memory, role and replicas at the
/// first write. The codes are listed nevertheless, so that an unknown code counts as unknown.
fn verdict(error: &RedisError) -> Verdict {
    if matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse) {
        return Verdict::Unknown;
    }
    match error.code() {
        Some("WRONGTYPE") => Verdict::Corrupt,
        Some(
            "ASK" | "BUSY" | "CLUSTERDOWN" | "CROSSSLOT" | "DENIED" | "LOADING" | "MASTERDOWN"
            | "MISCONF" | "MOVED" | "NOAUTH" | "NOPERM" | "NOREPLICAS" | "NOSCRIPT" | "OOM"
            | "READONLY" | "TRYAGAIN" | "WRONGPASS",
        ) => Verdict::NotDone,
        _ => Verdict::Unknown,
    }
}

/// The failure of a script.
pub(super) fn failure(error: RedisError) -> Failure {
    match verdict(&error) {
        Verdict::Corrupt => Failure::corrupt(
            "a key of ringflake has another type in Redis",
            Some(error.into()),
        ),
        verdict => Failure::of(verdict, error.into()),
    }
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

    fn reply(line: &str) -> RedisError {
        let bytes = format!("-{line}\r\n").into_bytes();
        match redis::parse_redis_value(&bytes).unwrap() {
            redis::Value::ServerError(error) => error.into(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_server_refuses_was_not_done() {
        for line in [
            "READONLY You can't write against a read only replica.",
            "LOADING Redis is loading the dataset in memory",
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "NOSCRIPT No matching script. Please use EVAL.",
            "MISCONF Errors writing to the AOF file: No space left on device",
            "NOREPLICAS Not enough good replicas to write.",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "NOAUTH Authentication required.",
            "NOPERM this user has no permissions to run the 'evalsha' command",
            "WRONGPASS invalid username-password pair or user is disabled.",
            "MOVED 3999 127.0.0.1:6381",
            "ASK 3999 127.0.0.1:6381",
            "CLUSTERDOWN Hash slot not served",
            "CROSSSLOT Keys in request don't hash to the same slot",
            "TRYAGAIN Multiple keys request during rehashing of slot",
        ] {
            assert_eq!(verdict(&reply(line)), Verdict::NotDone, "{line}");
        }
    }

    #[test]
    fn keys_of_another_kind_are_corrupt() {
        let line = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(verdict(&reply(line)), Verdict::Corrupt);
    }

    #[test]
    fn all_else_is_unknown() {
        for kind in [
            io::ErrorKind::TimedOut,
            io::ErrorKind::WouldBlock,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::BrokenPipe,
            io::ErrorKind::UnexpectedEof,
        ] {
            let error = RedisError::from(io::Error::from(kind));
            assert_eq!(verdict(&error), Verdict::Unknown, "{error}");
        }
        for line in [
            "ERR Error running script",
            "EXECABORT aborted",
            "NEWCODE what is this",
        ] {
            assert_eq!(verdict(&reply(line)), Verdict::Unknown, "{line}");
        }
        let garbage = redis::parse_redis_value(b"*1\r\n?").unwrap_err();
        assert_eq!(verdict(&garbage), Verdict::Unknown);
    }
}

//! The meaning of a failure for the request.

use std::io;

use crate::lease::store::table::failure::{Failure, Verdict};

/// The verdict on a refusal by etcd: a code of gRPC and a message. [`Failure::Again`] is for a
/// token that has expired.
///
/// Codes that mean "not done" come from checks before a request is proposed to the cluster, or
/// after it was applied without effect. All others may come from a member that waited in vain for
/// the cluster's decision.
pub(super) fn of_refusal(code: u64, message: &str) -> Verdict {
    const INVALID_ARGUMENT: u64 = 3;
    const NOT_FOUND: u64 = 5;
    const PERMISSION_DENIED: u64 = 7;
    /// No space left, or too many requests.
    const RESOURCE_EXHAUSTED: u64 = 8;
    const FAILED_PRECONDITION: u64 = 9;
    const OUT_OF_RANGE: u64 = 11;
    const UNIMPLEMENTED: u64 = 12;
    /// The alarm CORRUPT.
    const DATA_LOSS: u64 = 15;
    const UNAUTHENTICATED: u64 = 16;

    match code {
        UNAUTHENTICATED => Failure::Again,
        INVALID_ARGUMENT if message.contains("revision of auth store is old") => Failure::Again,
        INVALID_ARGUMENT
            if message.contains("invalid user ID or password")
                || message.contains("user name is empty") =>
        {
            Failure::Denied
        }
        INVALID_ARGUMENT | NOT_FOUND | PERMISSION_DENIED | RESOURCE_EXHAUSTED
        | FAILED_PRECONDITION | OUT_OF_RANGE | UNIMPLEMENTED | DATA_LOSS => Failure::NotDone,
        _ => Failure::Unknown,
    }
}

/// The verdict on a reply that is not etcd's, by its HTTP status: from a server
/// without the gateway, or a proxy before it.
pub(super) fn of_status(status: u16) -> Verdict {
    if (300..500).contains(&status) {
        Failure::NotDone
    } else {
        Failure::Unknown
    }
}

/// The verdict on a failure of the connection.
pub(super) fn of_transport(error: &ureq::Error) -> Verdict {
    use ureq::{Error, Timeout};

    match error {
        Error::HostNotFound
        | Error::ConnectionFailed
        | Error::TlsRequired
        | Error::BadUri(_)
        | Error::Http(_)
        | Error::Timeout(Timeout::Resolve | Timeout::Connect) => Failure::NotDone,
        Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => Failure::NotDone,
        _ => Failure::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use ureq::Timeout;

    use super::*;
    use crate::lease::store::table::failure::name_of;

    #[test]
    fn all_but_a_refusal_that_is_known_is_unknown() {
        for (code, message, verdict) in [
            (
                3,
                "etcdserver: too many operations in txn request",
                "NotDone",
            ),
            (3, "etcdserver: user name is empty", "Denied"),
            (3, "etcdserver: revision of auth store is old", "Again"),
            (8, "etcdserver: mvcc: database space exceeded", "NotDone"),
            (16, "etcdserver: invalid auth token", "Again"),
            (2, "unknown", "Unknown"),
            (4, "context deadline exceeded", "Unknown"),
            (14, "etcdserver: leader changed", "Unknown"),
            (99, "what is this", "Unknown"),
        ] {
            assert_eq!(
                name_of(of_refusal(code, message)),
                verdict,
                "{code} {message}"
            );
        }
        for (status, verdict) in [(404, "NotDone"), (200, "Unknown"), (502, "Unknown")] {
            assert_eq!(name_of(of_status(status)), verdict, "{status}");
        }
        let io = |kind| ureq::Error::Io(io::Error::from(kind));
        for (error, verdict) in [
            (ureq::Error::HostNotFound, "NotDone"),
            (ureq::Error::Timeout(Timeout::Connect), "NotDone"),
            (io(io::ErrorKind::ConnectionRefused), "NotDone"),
            (ureq::Error::Timeout(Timeout::Global), "Unknown"),
            (io(io::ErrorKind::ConnectionReset), "Unknown"),
            (io(io::ErrorKind::UnexpectedEof), "Unknown"),
        ] {
            assert_eq!(name_of(of_transport(&error)), verdict, "{error}");
        }
    }
}

//! The meaning of a failure for the request.

use std::io;

use crate::lease::store::table::failure::Verdict;

/// The verdict on a refusal by etcd: a code of gRPC and a message. [`Verdict::Again`] is for a
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
        UNAUTHENTICATED => Verdict::Again,
        INVALID_ARGUMENT if message.contains("revision of auth store is old") => Verdict::Again,
        INVALID_ARGUMENT
            if message.contains("invalid user ID or password")
                || message.contains("user name is empty") =>
        {
            Verdict::Denied
        }
        INVALID_ARGUMENT | NOT_FOUND | PERMISSION_DENIED | RESOURCE_EXHAUSTED
        | FAILED_PRECONDITION | OUT_OF_RANGE | UNIMPLEMENTED | DATA_LOSS => Verdict::NotDone,
        _ => Verdict::Unknown,
    }
}

/// The verdict on a reply that is not etcd's, by its HTTP status: from a server
/// without the gateway, or a proxy before it.
pub(super) fn of_status(status: u16) -> Verdict {
    if (300..500).contains(&status) {
        Verdict::NotDone
    } else {
        Verdict::Unknown
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
        | Error::Timeout(Timeout::Resolve | Timeout::Connect) => Verdict::NotDone,
        Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => Verdict::NotDone,
        _ => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use ureq::Timeout;

    use super::*;

    #[test]
    fn all_but_a_refusal_that_is_known_is_unknown() {
        for (code, message, verdict) in [
            (
                3,
                "etcdserver: too many operations in txn request",
                Verdict::NotDone,
            ),
            (3, "etcdserver: user name is empty", Verdict::Denied),
            (
                3,
                "etcdserver: revision of auth store is old",
                Verdict::Again,
            ),
            (
                8,
                "etcdserver: mvcc: database space exceeded",
                Verdict::NotDone,
            ),
            (16, "etcdserver: invalid auth token", Verdict::Again),
            (2, "unknown", Verdict::Unknown),
            (4, "context deadline exceeded", Verdict::Unknown),
            (14, "etcdserver: leader changed", Verdict::Unknown),
            (99, "what is this", Verdict::Unknown),
        ] {
            assert_eq!(of_refusal(code, message), verdict, "{code} {message}");
        }
        for (status, verdict) in [
            (404, Verdict::NotDone),
            (200, Verdict::Unknown),
            (502, Verdict::Unknown),
        ] {
            assert_eq!(of_status(status), verdict, "{status}");
        }
        let io = |kind| ureq::Error::Io(io::Error::from(kind));
        for (error, verdict) in [
            (ureq::Error::HostNotFound, Verdict::NotDone),
            (ureq::Error::Timeout(Timeout::Connect), Verdict::NotDone),
            (io(io::ErrorKind::ConnectionRefused), Verdict::NotDone),
            (ureq::Error::Timeout(Timeout::Global), Verdict::Unknown),
            (io(io::ErrorKind::ConnectionReset), Verdict::Unknown),
            (io(io::ErrorKind::UnexpectedEof), Verdict::Unknown),
        ] {
            assert_eq!(of_transport(&error), verdict, "{error}");
        }
    }
}

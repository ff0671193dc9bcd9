//! What one client may cost.

use std::time::Duration;

/// Limits of both protocols. Each has its bounds, outside of which a [`Config`](crate::Config) is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Open connections, of each protocol.
    pub connections: usize,
    /// Those of one client: an address, or a user on a Unix socket.
    pub connections_per_client: usize,
    /// IDs that one request may ask for, at most 65,536: a client that needs more asks again.
    pub count: usize,
    /// Bytes of one request of the Redis protocol.
    pub request_bytes: usize,
    /// From the first byte of a request to its last, and the same again for its answer.
    pub request_time: Duration,
    /// How long a connection may be silent between requests, and a plain one of the Redis
    /// protocol before its first.
    pub idle_time: Duration,
    /// Namespaces that clients may begin, where they may.
    pub namespaces: usize,
}

/// The slowest reader of an answer that is not closed, beside `request_time`.
pub(crate) const LEAST_BYTES_PER_SECOND: u64 = 1 << 20;

/// The most IDs of an answer. It is built whole, so this bounds its memory and the time that
/// it keeps a thread busy.
pub(crate) const MAX_COUNT: usize = 1 << 16;

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            connections_per_client: 20_000,
            count: MAX_COUNT,
            request_bytes: 64 << 10,
            request_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(300),
            namespaces: 64,
        }
    }
}

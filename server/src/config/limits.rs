//! The limits, each with its default and its range.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::ConfigError;
use super::settings::LimitSettings;

/// Limits on connections and requests, for both protocols. [`LimitSettings`] says what each limit is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    pub(crate) connections_per_client: usize,
    pub(crate) count: usize,
    pub(crate) request_bytes: usize,
    pub(crate) request_time: Duration,
    pub(crate) idle_time: Duration,
    pub(crate) namespaces: usize,
}

/// The slowest reader of an answer that is not closed, beside `request_time`.
pub(crate) const LEAST_BYTES_PER_SECOND: u64 = 1 << 20;

/// The most IDs of an answer. It is built whole, so this bounds its memory and the time that
/// it keeps a thread busy.
const MAX_COUNT: usize = 1 << 16;

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_client: 10_000,
            count: MAX_COUNT,
            request_bytes: 64 << 10,
            request_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(300),
            namespaces: 64,
        }
    }
}

const TIME: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(86_400);

/// The default, where `settings` say nothing.
pub(super) fn read(settings: LimitSettings) -> Result<Limits, ConfigError> {
    let mut limits = Limits::default();
    // No client has more than all.
    let connections = settings.connections.unwrap_or(limits.connections);
    limits.connections_per_client = limits.connections_per_client.min(connections);
    // Bytes: from a usual request to more than any list of IDs needs. Namespaces: each has rings
    // and threads of its own.
    #[rustfmt::skip]
    let numbers = [
        ("connections", settings.connections, &mut limits.connections, 1..=1 << 20),
        ("connections-per-client", settings.connections_per_client, &mut limits.connections_per_client, 1..=connections),
        ("count", settings.count, &mut limits.count, 1..=MAX_COUNT),
        ("request-bytes", settings.request_bytes, &mut limits.request_bytes, 1024..=1 << 24),
        ("namespaces", settings.namespaces, &mut limits.namespaces, 1..=4096),
    ];
    let refused = |key, reason| Err(ConfigError::value(format!("limits.{key}"), reason));
    for (key, given, limit, range) in numbers {
        *limit = given.unwrap_or(*limit);
        if !range.contains(limit) {
            let (least, most) = range.into_inner();
            return refused(
                key,
                format!("{limit} is out of range: give {least} to {most}"),
            );
        }
    }
    let (request, idle) = (&mut limits.request_time, &mut limits.idle_time);
    for (key, given, limit) in [
        ("request-time", settings.request_time, request),
        ("idle-time", settings.idle_time, idle),
    ] {
        *limit = given.unwrap_or(*limit);
        if !TIME.contains(limit) {
            return refused(key, "it is out of range: give 10ms to 24h".to_owned());
        }
    }
    Ok(limits)
}

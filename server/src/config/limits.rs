//! The limits, each in its range.

use std::ops::RangeInclusive;
use std::time::Duration;

use ringflake::lease::MAX_ACQUIRE;

use super::error::ConfigError;
use super::settings::LimitSettings;
use crate::limits::{Limits, MAX_COUNT};

const MOST_CONNECTIONS: usize = 1 << 20;

/// From a head of usual length to more than any list of IDs needs.
const REQUEST_BYTES: RangeInclusive<usize> = 1024..=1 << 24;

const COUNT: RangeInclusive<usize> = 1..=MAX_COUNT;

/// Each has rings and threads of its own.
const NAMESPACES: RangeInclusive<usize> = 1..=4096;

/// As many as a store gives in one step.
const LEASES: RangeInclusive<usize> = 1..=MAX_ACQUIRE as usize;

const LEASES_PER_MINUTE: RangeInclusive<usize> = 1..=1 << 20;

const TIME: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(86_400);

/// The default, where `settings` say nothing.
pub(super) fn read(settings: LimitSettings) -> Result<Limits, ConfigError> {
    let LimitSettings {
        connections,
        connections_per_client,
        count,
        request_bytes,
        request_time,
        idle_time,
        namespaces,
        leases,
        leases_per_minute,
    } = settings;
    let default = Limits::default();
    let connections = number(
        "connections",
        connections.unwrap_or(default.connections),
        1..=MOST_CONNECTIONS,
    )?;
    Ok(Limits {
        connections,
        connections_per_client: number(
            "connections-per-client",
            // No client has more than all.
            connections_per_client.unwrap_or(default.connections_per_client.min(connections)),
            1..=connections,
        )?,
        count: number("count", count.unwrap_or(default.count), COUNT)?,
        request_bytes: number(
            "request-bytes",
            request_bytes.unwrap_or(default.request_bytes),
            REQUEST_BYTES,
        )?,
        request_time: time("request-time", request_time.unwrap_or(default.request_time))?,
        idle_time: time("idle-time", idle_time.unwrap_or(default.idle_time))?,
        namespaces: number(
            "namespaces",
            namespaces.unwrap_or(default.namespaces),
            NAMESPACES,
        )?,
        leases: number("leases", leases.unwrap_or(default.leases), LEASES)?,
        leases_per_minute: number(
            "leases-per-minute",
            leases_per_minute.unwrap_or(default.leases_per_minute),
            LEASES_PER_MINUTE,
        )?,
    })
}

fn number(key: &str, given: usize, range: RangeInclusive<usize>) -> Result<usize, ConfigError> {
    if range.contains(&given) {
        return Ok(given);
    }
    let (least, most) = range.into_inner();
    Err(ConfigError::value(
        format!("limits.{key}"),
        format!("{given} is out of range: give {least} to {most}"),
    ))
}

fn time(key: &str, given: Duration) -> Result<Duration, ConfigError> {
    match TIME.contains(&given) {
        true => Ok(given),
        false => Err(ConfigError::value(
            format!("limits.{key}"),
            "it is out of range: give 10ms to 24h",
        )),
    }
}

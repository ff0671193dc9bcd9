//! The events of a generator's leases; the table of all events is in [`crate::events`].

use std::error::Error;
use std::time::Duration;

use crate::events::Throttle;
use crate::lease::client::failure::StoreFailure;
use crate::lease::client::protocol::{Change, Request};
use crate::lease::error::StoreError;

pub(super) fn changed(namespace: &str, change: &Change) {
    match change {
        Change::Opened(grant) => {
            tracing::debug!(target: "ringflake", namespace, %grant, "lease acquired");
        }
        Change::Extended(grant) => {
            tracing::trace!(target: "ringflake", namespace, %grant, "lease extended");
        }
        Change::Closed(grant) => {
            tracing::debug!(target: "ringflake", namespace, %grant, "lease closed");
        }
        Change::Revoked(grant) => {
            tracing::warn!(target: "ringflake", namespace, %grant, "lease given up");
        }
        Change::Expired { since_unix_ms } => {
            tracing::error!(target: "ringflake", namespace, since_unix_ms, "leases ended");
        }
        Change::Revived => {
            tracing::info!(target: "ringflake", namespace, "leases in force again");
        }
    }
}

fn name_of(request: &Request) -> &'static str {
    match request {
        Request::Acquire(_) => "acquire",
        Request::Renew(_) => "renew",
        Request::Release { .. } => "release",
        Request::Check { .. } => "check",
    }
}

pub(super) fn store_asked(namespace: &str, request: &Request, took: Duration) {
    let micros = took.as_micros() as u64;
    tracing::trace!(target: "ringflake", namespace, request = name_of(request), micros, "lease store asked");
}

pub(super) fn store_failed(
    throttle: &Throttle,
    namespace: &str,
    request: &Request,
    error: &StoreError,
) {
    if let Some(suppressed) = throttle.admit() {
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        tracing::warn!(
            target: "ringflake",
            namespace, request = name_of(request), %error, cause, suppressed, "lease store failed"
        );
    }
}

pub(super) fn store_recovered(namespace: &str, failure: StoreFailure) {
    let since_unix_ms = failure.since_unix_ms;
    tracing::info!(target: "ringflake", namespace, since_unix_ms, "lease store recovered");
}

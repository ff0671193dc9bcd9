//! `GET /metrics`, in Prometheus' text format.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::problem::Problem;
use super::{auth, negotiate};
use crate::access::Role;
use crate::front::{Durations, FrontCounters};
use crate::namespaces::Namespace;
use crate::status::Front;
use crate::sublease::Counts;

/// The text format of Prometheus.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A counter of fronts: its name, what it counts, and where it is.
type Counter = (&'static str, &'static str, fn(&FrontCounters) -> &AtomicU64);

const COUNTERS: [Counter; 6] = [
    (
        "connections_accepted",
        "Connections that were accepted.",
        |of| &of.accepted,
    ),
    (
        "connections_turned_away",
        "Connections that were closed at once, since there were too many.",
        |of| &of.turned_away,
    ),
    (
        "connections_closed",
        "Connections that have ended, of the accepted.",
        |of| &of.closed,
    ),
    ("requests", "Requests that were answered.", |of| {
        &of.requests
    }),
    (
        "auth_failures",
        "HTTP requests whose token is missing or unknown, and failed AUTH and HELLO commands.",
        |of| &of.auth_failures,
    ),
    ("ids", "IDs that were sent.", |of| &of.ids),
];

/// Answers with all metrics.
pub(super) async fn metrics(State(app): State<Arc<App>>, head: Parts) -> Result<Response, Problem> {
    auth::require(&*app.rights, &head, Role::Admin)?;
    negotiate::require(&head.headers, "text/plain")?;
    let namespaces = app.namespaces.all();
    let mut text = app.metrics.render(&namespaces);
    // It writes to a disk.
    let checked = Arc::clone(&app.namespaces);
    let data_dir = tokio::task::spawn_blocking(move || checked.can_begin());
    let data_dir = data_dir.await.unwrap_or(Some(false));
    of_readiness(&app, &namespaces, data_dir, &mut text);
    of_fronts(&app.fronts, &mut text);
    of_leases(app.subleases.counts(), &mut text);
    Ok(([(CONTENT_TYPE, TEXT)], text).into_response())
}

/// Whether the server and its namespaces can issue IDs.
fn of_readiness(
    app: &App,
    namespaces: &[Arc<Namespace>],
    data_dir: Option<bool>,
    text: &mut String,
) {
    let each: Vec<bool> = namespaces.iter().map(|it| it.readiness().is_ok()).collect();
    let all = data_dir != Some(false) && !app.drain.has_begun() && each.iter().all(|ready| *ready);
    let help = "Whether the server answers requests for IDs: every namespace can issue them, and \
                clients can begin those that they may begin.";
    gauge(text, "ready", help, [(String::new(), f64::from(all))]);
    let help = "Whether the namespace can issue IDs.";
    let each = namespaces.iter().zip(each).map(|(namespace, ready)| {
        // Names of namespaces have no character that needs an escape.
        let label = format!("{{namespace=\"{}\"}}", namespace.name);
        (label, f64::from(ready))
    });
    gauge(text, "namespace_ready", help, each);
    let data_dir = data_dir.map(|ready| (String::new(), f64::from(ready)));
    gauge(
        text,
        "data_dir_ready",
        "Whether the data directory can be written.",
        data_dir,
    );
    let (open, limit) = app.namespaces.count();
    gauge(
        text,
        "namespaces",
        "Namespaces that are open.",
        [(String::new(), open as f64)],
    );
    let help = "How many namespaces may be open, those of the configuration included.";
    gauge(
        text,
        "namespaces_limit",
        help,
        [(String::new(), limit as f64)],
    );
    let expires = app
        .certificate
        .as_ref()
        .and_then(|tls| tls.expires_unix_seconds());
    let expires = expires.map(|expires| (String::new(), expires as f64));
    let help = "When the TLS certificate expires, in Unix seconds.";
    gauge(text, "certificate_expiry_timestamp_seconds", help, expires);
}

fn gauge(
    text: &mut String,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (String, f64)>,
) {
    let mut values = values.into_iter().peekable();
    if values.peek().is_some() {
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "# HELP ringflake_server_{name} {help}\n# TYPE ringflake_server_{name} gauge"
        );
    }
    for (labels, value) in values {
        let _ = writeln!(text, "ringflake_server_{name}{labels} {value}");
    }
}

/// The counters of the fronts.
fn of_fronts(fronts: &[(&'static str, Vec<Arc<FrontCounters>>)], text: &mut String) {
    for (name, help, counter) in COUNTERS {
        let name = format!("ringflake_server_{name}_total");
        // Writing to a text does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
        for (front, counters) in fronts {
            let each = counters.iter().map(|counters| counter(counters));
            let value: u64 = each.map(|count| count.load(Ordering::Relaxed)).sum();
            let _ = writeln!(text, "{name}{{front=\"{front}\"}} {value}");
        }
    }
    let open = fronts.iter().map(|(front, threads)| {
        let open = Front::of(front, threads.iter().map(|thread| &**thread)).open();
        (format!("{{front=\"{front}\"}}"), open as f64)
    });
    gauge(text, "connections", "Open connections.", open);
    of_errors(fronts, text);
    of_durations(fronts, text);
}

/// Errors by their kind.
fn of_errors(fronts: &[(&'static str, Vec<Arc<FrontCounters>>)], text: &mut String) {
    let name = "ringflake_server_request_errors_total";
    let _ = writeln!(
        text,
        "# HELP {name} Requests that were answered with an error.\n# TYPE {name} counter"
    );
    for (front, threads) in fronts {
        let sum = |count: fn(&FrontCounters) -> &AtomicU64| -> u64 {
            let each = threads.iter().map(|of| count(of).load(Ordering::Relaxed));
            each.sum()
        };
        // The parts first, so that the whole is not less.
        let (denied, unavailable) = (sum(|of| &of.denied), sum(|of| &of.unavailable));
        let invalid = sum(|of| &of.errors).saturating_sub(denied + unavailable);
        for (kind, value) in [
            ("denied", denied),
            ("invalid", invalid),
            ("unavailable", unavailable),
        ] {
            let _ = writeln!(text, "{name}{{front=\"{front}\",kind=\"{kind}\"}} {value}");
        }
    }
}

/// How long responses took.
fn of_durations(fronts: &[(&'static str, Vec<Arc<FrontCounters>>)], text: &mut String) {
    let name = "ringflake_server_request_duration_seconds";
    let _ = writeln!(
        text,
        "# HELP {name} Time to answer a request that has arrived.\n# TYPE {name} histogram"
    );
    for (front, threads) in fronts {
        let mut buckets = [0; 9];
        let each = threads.iter().map(|of| of.durations.add_to(&mut buckets));
        let seconds: f64 = each.sum();
        let bounds = Durations::BOUNDS.map(|bound| bound.to_string());
        let bounds = bounds.iter().map(String::as_str).chain(["+Inf"]);
        let mut count = 0;
        for (bound, bucket) in bounds.zip(buckets) {
            count += bucket;
            let _ = writeln!(
                text,
                "{name}_bucket{{front=\"{front}\",le=\"{bound}\"}} {count}"
            );
        }
        let _ = writeln!(
            text,
            "{name}_sum{{front=\"{front}\"}} {seconds}\n{name}_count{{front=\"{front}\"}} {count}"
        );
    }
}

/// What became of the leases of clients.
fn of_leases(counts: &Counts, text: &mut String) {
    for (name, help, count) in [
        ("given", "Leases that were given to clients.", &counts.given),
        ("renewed", "Renewals of leases of clients.", &counts.renewed),
        (
            "released",
            "Leases that clients have given back.",
            &counts.released,
        ),
        (
            "refused",
            "Requests about leases that were not done.",
            &counts.refused,
        ),
    ] {
        let name = format!("ringflake_server_leases_{name}_total");
        let count = count.load(Ordering::Relaxed);
        let _ = writeln!(
            text,
            "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::front::add_shared;

    #[test]
    fn each_protocol_has_its_counters() {
        let resp: Vec<Arc<FrontCounters>> = vec![Arc::default(), Arc::default()];
        for (thread, errors) in resp.iter().zip([3, 5]) {
            thread.errors.store(errors, Ordering::Relaxed);
            thread.denied.store(2, Ordering::Relaxed);
        }
        resp[0].unavailable.store(1, Ordering::Relaxed);
        let http = Arc::new(FrontCounters::default());
        http.ids.store(7, Ordering::Relaxed);
        http.accepted.store(9, Ordering::Relaxed);
        http.closed.store(4, Ordering::Relaxed);
        for milliseconds in [0, 2, 2, 20_000] {
            let duration = Duration::from_millis(milliseconds);
            http.durations.record(duration, 1, add_shared);
        }
        let mut text = String::new();
        of_fronts(&[("http", vec![http]), ("resp", resp)], &mut text);
        for line in [
            "# TYPE ringflake_server_ids_total counter",
            "ringflake_server_ids_total{front=\"http\"} 7",
            "ringflake_server_ids_total{front=\"resp\"} 0",
            "# TYPE ringflake_server_connections gauge",
            "ringflake_server_connections{front=\"http\"} 5",
            "ringflake_server_request_errors_total{front=\"resp\",kind=\"denied\"} 4",
            "ringflake_server_request_errors_total{front=\"resp\",kind=\"invalid\"} 3",
            "ringflake_server_request_errors_total{front=\"resp\",kind=\"unavailable\"} 1",
            "# TYPE ringflake_server_request_duration_seconds histogram",
            "ringflake_server_request_duration_seconds_bucket{front=\"http\",le=\"0.0001\"} 1",
            "ringflake_server_request_duration_seconds_bucket{front=\"http\",le=\"0.003\"} 3",
            "ringflake_server_request_duration_seconds_bucket{front=\"http\",le=\"10\"} 3",
            "ringflake_server_request_duration_seconds_bucket{front=\"http\",le=\"+Inf\"} 4",
            "ringflake_server_request_duration_seconds_sum{front=\"http\"} 20.004",
            "ringflake_server_request_duration_seconds_count{front=\"http\"} 4",
        ] {
            assert!(
                text.lines().any(|own| own == line),
                "{line} is not in\n{text}"
            );
        }
    }
}

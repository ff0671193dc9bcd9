//! `GET /metrics`, in Prometheus' text format.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use ringflake::metrics::Publisher;

use super::app::App;
use super::problem::Problem;
use super::{auth, negotiate};
use crate::access::Role;
use crate::front::FrontCounters;
use crate::namespaces::Namespace;
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
        "request_errors",
        "Requests that were answered with an error.",
        |of| &of.errors,
    ),
    ("ids", "IDs that were sent.", |of| &of.ids),
];

/// Buckets of renewal durations in seconds: from a local file to a busy store far away.
const RENEW_SECONDS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// The metrics of all namespaces, in a recorder that nothing else writes to.
pub(super) struct NamespaceMetrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    /// By namespace. Locked while all are published, so that each renewal is recorded once.
    publishers: Mutex<HashMap<String, Publisher>>,
}

impl NamespaceMetrics {
    pub(super) fn new() -> Result<Self, BuildError> {
        let durations = Matcher::Suffix("_duration_seconds".to_owned());
        let builder = PrometheusBuilder::new();
        let builder = builder.set_buckets_for_metric(durations, &RENEW_SECONDS)?;
        let recorder = builder.build_recorder();
        // Namespaces have theirs, but a server may have no namespace for days, and the alert
        // RingflakeAbsent fires while nobody exports this.
        metrics::with_local_recorder(&recorder, || {
            metrics::gauge!("ringflake_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1);
        });
        Ok(Self {
            handle: recorder.handle(),
            recorder,
            publishers: Mutex::default(),
        })
    }

    /// The metrics of these namespaces in Prometheus' text format.
    pub(super) fn render(&self, namespaces: &[Arc<Namespace>]) -> String {
        let publishers = self.publishers.lock();
        let mut publishers = publishers.unwrap_or_else(PoisonError::into_inner);
        for namespace in namespaces {
            let name = namespace.name.as_str();
            if !publishers.contains_key(name) {
                let publisher = Publisher::new(&namespace.generator);
                let publisher = publisher.with_labels([("namespace", name)]);
                publishers.insert(name.to_owned(), publisher);
            }
        }
        metrics::with_local_recorder(&self.recorder, || {
            for publisher in publishers.values() {
                publisher.publish();
            }
        });
        self.handle.render()
    }
}

/// Answers with all metrics.
pub(super) async fn metrics(State(app): State<Arc<App>>, head: Parts) -> Result<Response, Problem> {
    auth::require(&*app.rights, &head, Role::Admin)?;
    negotiate::require(&head.headers, "text/plain")?;
    let namespaces = app.namespaces.all();
    let mut text = app.metrics.render(&namespaces);
    of_readiness(&namespaces, &mut text);
    // It writes to a disk.
    let checked = Arc::clone(&app.namespaces);
    let data_dir = tokio::task::spawn_blocking(move || checked.can_begin());
    if let Ok(Some(ready)) = data_dir.await {
        of_data_dir(ready, &mut text);
    }
    of_fronts(&app.fronts, &mut text);
    of_leases(app.subleases.counts(), &mut text);
    Ok(([(CONTENT_TYPE, TEXT)], text).into_response())
}

/// Which namespaces can issue IDs.
fn of_readiness(namespaces: &[Arc<Namespace>], text: &mut String) {
    let name = "ringflake_server_ready";
    // Writing to a text does not fail. A name of a namespace needs no escape.
    let _ = writeln!(
        text,
        "# HELP {name} Whether IDs can be issued at this moment.\n# TYPE {name} gauge"
    );
    for namespace in namespaces {
        let ready = u8::from(namespace.readiness().is_ok());
        let _ = writeln!(text, "{name}{{namespace=\"{}\"}} {ready}", namespace.name);
    }
}

/// Whether clients can begin namespaces, where they may.
fn of_data_dir(ready: bool, text: &mut String) {
    let name = "ringflake_server_data_dir_ready";
    let _ = writeln!(
        text,
        "# HELP {name} Whether the data directory can be written.\n# TYPE {name} gauge\n{name} {}",
        u8::from(ready)
    );
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
    use super::*;

    #[test]
    fn a_counter_is_given_for_each_front() {
        let resp: Vec<Arc<FrontCounters>> = vec![Arc::default(), Arc::default()];
        resp[0].errors.store(3, Ordering::Relaxed);
        resp[1].errors.store(5, Ordering::Relaxed);
        let http = Arc::new(FrontCounters::default());
        http.ids.store(7, Ordering::Relaxed);
        let mut text = String::new();
        of_fronts(&[("http", vec![http]), ("resp", resp)], &mut text);
        for line in [
            "# TYPE ringflake_server_ids_total counter",
            "ringflake_server_ids_total{front=\"http\"} 7",
            "ringflake_server_ids_total{front=\"resp\"} 0",
            "ringflake_server_request_errors_total{front=\"resp\"} 8",
        ] {
            assert!(
                text.lines().any(|own| own == line),
                "{line} is not in\n{text}"
            );
        }
        assert_eq!(text.lines().count(), COUNTERS.len() * 4);
    }
}

//! `GET /metrics`, in Prometheus' text format.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::auth;
use super::problem::Problem;
use crate::access::Role;
use crate::counters::{Counters, Durations, NamedCounters, open, total};
use crate::namespaces::Namespace;

/// The text format of Prometheus.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

type Count = fn(&Counters) -> &AtomicU64;

/// Counters of a protocol: the name, what it counts, and where it is.
#[rustfmt::skip]
const COUNTERS: [(&str, &str, Count); 7] = [
    ("connections_accepted", "Connections that were accepted.", |of| &of.accepted),
    ("connections_turned_away", "Connections that were closed at once, since there were too many.", |of| &of.turned_away),
    ("tls_handshakes_delayed", "TLS handshakes that waited, since too many connections were not authorized yet.", |of| &of.handshakes_delayed),
    ("connections_closed", "Connections that have ended, of the accepted.", |of| &of.closed),
    ("requests", "Requests that were answered.", |of| &of.requests),
    ("auth_failures", "HTTP requests whose token is missing or unknown, and failed AUTH and HELLO commands.", |of| &of.auth_failures),
    ("ids", "IDs that were sent.", |of| &of.ids),
];

pub(super) async fn metrics(State(app): State<Arc<App>>, head: Parts) -> Result<Response, Problem> {
    auth::require(&app.setup.rights, &head, Role::Admin)?;
    let namespaces = app.setup.namespaces.all();
    let mut text = app.metrics.render(&namespaces);
    let obstacle = app.data_dir_obstacle().await;
    let is_on_demand = app.setup.namespaces.is_on_demand();
    let data_dir = is_on_demand.then_some(obstacle.is_none());
    of_readiness(&app, &namespaces, data_dir, &mut text);
    of_protocols(&app.protocols, &mut text);
    Ok(([(CONTENT_TYPE, TEXT)], text).into_response())
}

/// Whether the server and its namespaces can issue IDs.
fn of_readiness(
    app: &App,
    namespaces: &[Arc<Namespace>],
    data_dir: Option<bool>,
    text: &mut String,
) {
    let mut gauge = |name: &str, help: &str, value: Option<f64>| {
        let value = value.map(|value| (String::new(), value));
        write_metric(text, "gauge", name, help, value);
    };
    let each: Vec<bool> = namespaces.iter().map(|it| it.readiness().is_ok()).collect();
    let all =
        data_dir != Some(false) && !app.setup.drain.has_begun() && each.iter().all(|ready| *ready);
    let help = "Whether the server answers requests for IDs: every namespace can issue them, and \
                clients can begin those that they may begin.";
    gauge("ready", help, Some(f64::from(all)));
    let help = "Whether the data directory can be used for namespaces.";
    gauge("data_dir_ready", help, data_dir.map(f64::from));
    let (open, limit) = app.setup.namespaces.count();
    gauge("namespaces", "Namespaces that are open.", Some(open as f64));
    let help = "How many namespaces may be open, those of the configuration included.";
    gauge("namespaces_limit", help, Some(limit as f64));
    let tls = app.setup.tls.as_ref();
    let expires = tls.and_then(|tls| tls.expires_unix_seconds());
    let help = "When the TLS certificate expires, in Unix seconds.";
    let expires = expires.map(|seconds| seconds as f64);
    gauge("certificate_expiry_timestamp_seconds", help, expires);
    let help = "Whether the files of tokens and TLS could not be read at the last reload.";
    let is_stale = app.setup.rights.is_stale();
    gauge("reload_failed", help, Some(f64::from(is_stale)));
    let each = namespaces.iter().zip(each).map(|(namespace, ready)| {
        // Names of namespaces have no character that needs an escape.
        let label = format!("{{namespace=\"{}\"}}", namespace.name);
        (label, f64::from(ready))
    });
    let help = "Whether the namespace can issue IDs.";
    write_metric(text, "gauge", "namespace_ready", help, each);
}

/// Writes a metric, if it has any value: each with its labels, and before them, what follows
/// the name.
fn write_metric(
    text: &mut String,
    kind: &str,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (String, f64)>,
) {
    let name = format!("ringflake_server_{name}");
    for (at, (labels, value)) in values.into_iter().enumerate() {
        // Writing to a text does not fail.
        if at == 0 {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

fn of_protocols(protocols: &[NamedCounters], text: &mut String) {
    let label = |protocol: &str| format!("{{protocol=\"{protocol}\"}}");
    for (name, help, count) in COUNTERS {
        let values = protocols
            .iter()
            .map(|(protocol, of)| (label(protocol), total(of, count) as f64));
        write_metric(text, "counter", &format!("{name}_total"), help, values);
    }
    let open = protocols
        .iter()
        .map(|(protocol, of)| (label(protocol), open(of) as f64));
    write_metric(text, "gauge", "connections", "Open connections.", open);
    let errors = protocols.iter().flat_map(|(protocol, of)| {
        // The parts first, so that the whole is not less.
        let (denied, unavailable) = (total(of, |of| &of.denied), total(of, |of| &of.unavailable));
        let invalid = total(of, |of| &of.errors).saturating_sub(denied + unavailable);
        let kinds = [
            ("denied", denied),
            ("invalid", invalid),
            ("unavailable", unavailable),
        ];
        kinds.map(|(kind, count)| {
            let label = format!("{{protocol=\"{protocol}\",kind=\"{kind}\"}}");
            (label, count as f64)
        })
    });
    let help = "Requests that were answered with an error.";
    write_metric(text, "counter", "request_errors_total", help, errors);
    let durations = protocols.iter().flat_map(|(protocol, threads)| {
        let mut buckets = [0; 9];
        let each = threads.iter().map(|of| of.durations.add_to(&mut buckets));
        let seconds: f64 = each.sum();
        let bounds = Durations::BOUNDS.map(|bound| bound.to_string()).into_iter();
        let mut count = 0;
        let buckets = bounds.chain(["+Inf".to_owned()]).zip(buckets);
        let mut values: Vec<_> = buckets
            .map(|(bound, bucket)| {
                count += bucket;
                (
                    format!("_bucket{{protocol=\"{protocol}\",le=\"{bound}\"}}"),
                    count as f64,
                )
            })
            .collect();
        values.push((format!("_sum{}", label(protocol)), seconds));
        values.push((format!("_count{}", label(protocol)), count as f64));
        values
    });
    let name = "request_duration_seconds";
    let help = "Time to answer a request that has arrived.";
    write_metric(text, "histogram", name, help, durations);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::*;
    use crate::counters::add_shared;

    #[test]
    fn each_protocol_has_its_counters() {
        let resp: Vec<Arc<Counters>> = vec![Arc::default(), Arc::default()];
        for (thread, errors) in resp.iter().zip([3, 5]) {
            thread.errors.store(errors, Ordering::Relaxed);
            thread.denied.store(2, Ordering::Relaxed);
        }
        resp[0].unavailable.store(1, Ordering::Relaxed);
        let http = Arc::new(Counters::default());
        http.accepted.store(9, Ordering::Relaxed);
        http.closed.store(4, Ordering::Relaxed);
        for milliseconds in [0, 2, 2, 20_000] {
            let duration = Duration::from_millis(milliseconds);
            http.durations.record(duration, 1, add_shared);
        }
        let mut text = String::new();
        of_protocols(&[("http", vec![http]), ("resp", resp)], &mut text);
        for line in [
            "# TYPE ringflake_server_ids_total counter",
            "# TYPE ringflake_server_connections gauge",
            "ringflake_server_connections{protocol=\"http\"} 5",
            "ringflake_server_request_errors_total{protocol=\"resp\",kind=\"denied\"} 4",
            "ringflake_server_request_errors_total{protocol=\"resp\",kind=\"invalid\"} 3",
            "ringflake_server_request_errors_total{protocol=\"resp\",kind=\"unavailable\"} 1",
            "# TYPE ringflake_server_request_duration_seconds histogram",
            "ringflake_server_request_duration_seconds_bucket{protocol=\"http\",le=\"0.0001\"} 1",
            "ringflake_server_request_duration_seconds_bucket{protocol=\"http\",le=\"0.003\"} 3",
            "ringflake_server_request_duration_seconds_bucket{protocol=\"http\",le=\"10\"} 3",
            "ringflake_server_request_duration_seconds_bucket{protocol=\"http\",le=\"+Inf\"} 4",
            "ringflake_server_request_duration_seconds_sum{protocol=\"http\"} 20.004",
            "ringflake_server_request_duration_seconds_count{protocol=\"http\"} 4",
        ] {
            assert!(
                text.lines().any(|own| own == line),
                "{line} is not in\n{text}"
            );
        }
    }
}

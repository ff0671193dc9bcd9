//! `GET /livez` and `GET /readyz`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::app::App;
use super::problem::Problem;
use super::{auth, negotiate};
use crate::access::Role;
use crate::namespaces::Namespace;

/// 200 for as long as requests are answered at all.
pub(super) async fn livez(headers: HeaderMap) -> Result<Response, Problem> {
    negotiate::require(&headers, "text/plain")?;
    Ok("live\n".into_response())
}

/// Whether IDs can be issued.
#[derive(Serialize)]
struct Readiness {
    /// Whether all namespaces can issue IDs and the server does not drain.
    ready: bool,
    /// Whether the server is about to end.
    draining: bool,
    /// For how long all can issue IDs though no store answers, in whole seconds; none if there
    /// is no namespace yet.
    seconds: Option<u64>,
    /// Each by itself; only for who may read the figures of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespaces: Option<Vec<OfNamespace>>,
}

#[derive(Serialize)]
struct OfNamespace {
    namespace: String,
    ready: bool,
    seconds: u64,
}

impl OfNamespace {
    fn of(namespace: &Namespace, now_unix_ms: u64) -> Self {
        let generator = &namespace.generator;
        let end_unix_ms = generator.stats().lease_end_unix_ms;
        let left_ms = end_unix_ms.saturating_sub(now_unix_ms);
        let ready = generator.is_ready() && left_ms > 0;
        Self {
            namespace: namespace.name.clone(),
            ready,
            seconds: if ready { left_ms / 1000 } else { 0 },
        }
    }
}

impl Readiness {
    fn of(each: Vec<OfNamespace>, draining: bool, sees_all: bool) -> Self {
        Self {
            ready: !draining && each.iter().all(|of_one| of_one.ready),
            draining,
            seconds: each.iter().map(|of_one| of_one.seconds).min(),
            namespaces: sees_all.then_some(each),
        }
    }
}

/// 200 if all namespaces can issue IDs, and 503 else, with the same figures.
pub(super) async fn readyz(State(app): State<Arc<App>>, head: Parts) -> Result<Response, Problem> {
    negotiate::require(&head.headers, "application/json")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_unix_ms = now.map_or(0, |now| now.as_millis() as u64);
    let namespaces = app.namespaces.all();
    let each: Vec<OfNamespace> = namespaces
        .iter()
        .map(|namespace| OfNamespace::of(namespace, now_unix_ms))
        .collect();
    let sees_all = auth::require(&*app.rights, &head, Role::Admin).is_ok();
    let readiness = Readiness::of(each, app.drain.has_begun(), sees_all);
    let status = if readiness.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    Ok((status, Json(readiness)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(seconds: &[u64]) -> Vec<OfNamespace> {
        let of_one = |&seconds: &u64| OfNamespace {
            namespace: "orders".to_owned(),
            ready: seconds > 0,
            seconds,
        };
        seconds.iter().map(of_one).collect()
    }

    #[test]
    fn the_first_to_end_decides() {
        for (seconds, ready, shortest) in [
            (&[][..], true, None),
            (&[7, 5, 9], true, Some(5)),
            (&[7, 0, 9], false, Some(0)),
        ] {
            let readiness = Readiness::of(of(seconds), false, true);
            assert_eq!((readiness.ready, readiness.seconds), (ready, shortest));
            assert!(readiness.namespaces.is_some());
        }
    }

    #[test]
    fn who_drains_is_not_ready() {
        let readiness = Readiness::of(of(&[7]), true, false);
        assert!(!readiness.ready && readiness.draining);
        assert_eq!(readiness.seconds, Some(7));
        assert!(readiness.namespaces.is_none(), "not everybody's to see");
    }
}

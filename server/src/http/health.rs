//! `GET /livez` and `GET /readyz`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::app::App;
use super::auth;
use crate::access::Role;
use crate::readiness::{Obstacle, whole_seconds};

/// 200 for as long as requests are answered at all.
pub(super) async fn livez() -> &'static str {
    "live\n"
}

#[derive(Serialize)]
struct Readiness {
    /// Whether all namespaces can issue IDs and the server does not drain.
    ready: bool,
    draining: bool,
    /// For how long all can issue IDs though no store answers, in whole seconds; none if there
    /// is no namespace yet.
    seconds: Option<u64>,
    /// When all can issue IDs, in whole seconds from now, if it is the clock that they wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_in_seconds: Option<u64>,
    /// What keeps one of them from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Each by itself; only for who may read the figures of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespaces: Option<Vec<OfNamespace>>,
}

#[derive(Serialize)]
struct OfNamespace {
    namespace: String,
    ready: bool,
    seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_in_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl OfNamespace {
    fn of(namespace: &str, readiness: Result<Duration, Obstacle>) -> Self {
        let ready_in_seconds = match readiness {
            Err(Obstacle::Ahead { retry_after }) => Some(whole_seconds(retry_after)),
            _ => None,
        };
        Self {
            namespace: namespace.to_owned(),
            ready: readiness.is_ok(),
            seconds: readiness.map_or(0, |lasts| lasts.as_secs()),
            ready_in_seconds,
            detail: readiness.err().map(|obstacle| obstacle.to_string()),
        }
    }
}

impl Readiness {
    /// `data_dir` is what keeps clients from beginning namespaces.
    fn of(
        each: Vec<OfNamespace>,
        data_dir: Option<Obstacle>,
        draining: bool,
        sees_all: bool,
    ) -> Self {
        let unready = || each.iter().filter(|of_one| !of_one.ready);
        let known = |of_one: &OfNamespace| of_one.ready_in_seconds.is_some();
        // The last one to come, unless one waits for something else than the clock.
        let waits_longest = unready().max_by_key(|it| (!known(it), it.ready_in_seconds));
        Self {
            ready: !draining && data_dir.is_none() && unready().next().is_none(),
            draining,
            seconds: each.iter().map(|of_one| of_one.seconds).min(),
            ready_in_seconds: waits_longest.and_then(|it| it.ready_in_seconds),
            detail: data_dir
                .map(|obstacle| obstacle.to_string())
                .or_else(|| waits_longest.and_then(|it| it.detail.clone())),
            namespaces: sees_all.then_some(each),
        }
    }
}

/// 200 if all namespaces can issue IDs and clients can begin those that they may begin; else
/// 503. The body is the same.
pub(super) async fn readyz(State(app): State<Arc<App>>, head: Parts) -> Response {
    let namespaces = app.setup.namespaces.all();
    let each: Vec<OfNamespace> = namespaces
        .iter()
        .map(|namespace| OfNamespace::of(&namespace.name, namespace.readiness()))
        .collect();
    let admin = auth::check(&app.setup.rights, &head, Role::Admin);
    let data_dir = app.data_dir_obstacle().await;
    let readiness = Readiness::of(each, data_dir, app.setup.drain.has_begun(), admin.is_ok());
    let status = if readiness.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let mut response = (status, Json(readiness)).into_response();
    if admin.is_err_and(|problem| auth::is_unknown_token(&problem.into_response())) {
        response.extensions_mut().insert(auth::UnknownToken);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LEASE: Result<u64, Option<u64>> = Err(None);

    /// Ready for so many seconds, or in so many, or nobody knows when.
    fn of(each: &[Result<u64, Option<u64>>]) -> Vec<OfNamespace> {
        let of_one = |&it: &Result<u64, Option<u64>>| {
            let ahead = |seconds: u64| Obstacle::Ahead {
                retry_after: Duration::from_secs(seconds),
            };
            let readiness = it
                .map(Duration::from_secs)
                .map_err(|wait| wait.map_or(Obstacle::NoLease, ahead));
            OfNamespace::of("orders", readiness)
        };
        each.iter().map(of_one).collect()
    }

    #[test]
    fn the_first_to_end_and_the_last_to_come_decide() {
        #[rustfmt::skip]
        let table = [
            (&[][..], true, None, None, None),
            (&[Ok(7), Ok(5), Ok(9)], true, Some(5), None, None),
            // The rest of a ring.
            (&[Ok(7), Ok(0)], true, Some(0), None, None),
            (&[Ok(7), NO_LEASE, Ok(9)], false, Some(0), None, Some("no lease is in force")),
            (&[Err(Some(7)), Err(Some(9)), Ok(3)], false, Some(0), Some(9), Some("retry in 9s")),
            (&[Err(Some(7)), NO_LEASE, Ok(3)], false, Some(0), None, Some("no lease is in force")),
        ];
        for (each, ready, seconds, wait, detail) in table {
            let readiness = Readiness::of(of(each), None, false, true);
            assert_eq!((readiness.ready, readiness.seconds), (ready, seconds));
            assert_eq!(readiness.ready_in_seconds, wait);
            let said = readiness.detail.unwrap_or_default();
            assert!(said.ends_with(detail.unwrap_or_default()), "{said}");
            assert_eq!(said.is_empty(), ready);
            assert!(readiness.namespaces.is_some());
        }
        let draining = Readiness::of(of(&[Ok(7)]), None, true, false);
        assert!(!draining.ready && draining.draining);
        assert_eq!(draining.seconds, Some(7));
        assert!(draining.namespaces.is_none(), "not everybody's to see");
    }
}

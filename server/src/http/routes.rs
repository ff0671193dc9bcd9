//! The way from a path to what answers it.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, Uri};
use axum::routing::{get, post};

use super::app::App;
use super::problem::{Kind, Problem};
use super::{health, inspect, leases, metrics, openapi, page, take};

/// All paths, with the methods that they have.
pub(super) fn router(app: Arc<App>) -> Router {
    let document = Bytes::from(openapi::document(&app.limits));
    Router::new()
        .route("/", get(page::page))
        .route("/v1/ids", post(take::take))
        .route("/v1/ids/{id}", get(inspect::inspect))
        .route("/v1/leases", post(leases::acquire))
        .route("/v1/leases/renew", post(leases::renew))
        .route("/v1/leases/release", post(leases::release))
        .route("/v1/status", get(page::status))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/openapi.json", get(openapi::openapi).with_state(document))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(app)
}

async fn not_found() -> Problem {
    Problem::new(
        Kind::NOT_FOUND,
        "there is nothing at this path: ask for /openapi.json, which says what there is",
    )
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = if uri.path() == "/v1/ids" && method == Method::GET {
        "a take uses IDs up, and an answer to GET may be repeated by caches: use POST"
    } else {
        "the path has not this method: use one of those in the field Allow"
    };
    Problem::new(Kind::METHOD_NOT_ALLOWED, detail)
}

//! The way from a path to what answers it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Method, Request, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{get, post};

use super::app::{App, Context};
use super::problem::{Kind, Problem};
use super::{health, inspect, leases, metrics, openapi, page, take};

/// All paths, with the methods that they have.
pub(super) fn router(app: Arc<App>) -> Router {
    let document = Bytes::from(openapi::document(&app.limits));
    let of_all = Router::new()
        .route("/v1/status", get(page::status))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route_layer(from_fn(in_room));
    Router::new()
        .route("/", get(page::page))
        .route("/v1/ids", post(take::take))
        .route("/v1/ids/{id}", get(inspect::inspect))
        .route("/v1/leases", post(leases::acquire))
        .route("/v1/leases/renew", post(leases::renew))
        .route("/v1/leases/release", post(leases::release))
        .route("/livez", get(health::livez))
        .route("/openapi.json", get(openapi::openapi).with_state(document))
        .merge(of_all)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(app)
}

/// Answers when the connection has room, which the answer keeps: it is as long as there are
/// namespaces.
async fn in_room(request: Request<Body>, next: Next) -> Result<Response, Problem> {
    let room = Context::of(&request)?.room().await?;
    let (head, body) = next.run(request).await.into_parts();
    // It is made as a whole, and to be had at once.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    Ok(Response::from_parts(head, Body::from(room.hold(bytes))))
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

//! Paths, methods and their handlers.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::http::{Method, Request, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};

use super::app::{App, Context};
use super::buffer_permit::guarded;
use super::problem::{Kind, Problem};
use super::{auth, health, inspect, metrics, openapi, page, take};
use crate::access::Role;

/// What `/metrics`, `/readyz` and `/v1/status` say of a namespace, at most.
const BYTES_PER_NAMESPACE: usize = 8 << 10;

pub(super) fn router(app: Arc<App>) -> Router {
    let document = Bytes::from(openapi::document(&app.setup.limits));
    let of_namespaces = Router::new()
        .route("/v1/status", get(page::status))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route_layer(from_fn_with_state(Arc::clone(&app), reserved));
    Router::new()
        .route("/", get(page::page))
        .route("/v1/ids", post(take::take))
        .route("/v1/ids/{id}", get(inspect::inspect))
        .route("/livez", get(health::livez))
        .route("/openapi.json", get(openapi::openapi).with_state(document))
        .merge(of_namespaces)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(app)
}

/// Reserves memory for an answer that grows with the number of namespaces. Only a client that may
/// read the figures of all gets one.
async fn reserved(
    State(app): State<Arc<App>>,
    request: Request<Body>,
    next: Next,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let sees_all = auth::check(&app.setup.rights, &head, Role::Admin).is_ok();
    let request = Request::from_parts(head, body);
    if !sees_all {
        return Ok(next.run(request).await);
    }
    let bytes = BYTES_PER_NAMESPACE * (1 + app.setup.namespaces.all().len());
    let context = Context::of(&request)?;
    let permit = context
        .reserve(&context.buffers.budgets.figures, bytes)
        .await?;
    let (head, body) = next.run(request).await.into_parts();
    // It is whole already.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    Ok(Response::from_parts(
        head,
        Body::from(guarded(bytes, permit)),
    ))
}

async fn not_found() -> Problem {
    Problem::new(
        Kind::NOT_FOUND,
        "path not found: /openapi.json lists all paths",
    )
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = if uri.path() == "/v1/ids" && method == Method::GET {
        "a take uses IDs up, and an answer to GET may be repeated by caches: use POST"
    } else {
        "method not allowed for this path: use one of those in the field Allow"
    };
    Problem::new(Kind::METHOD_NOT_ALLOWED, detail)
}

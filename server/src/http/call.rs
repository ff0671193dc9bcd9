//! A request, from its connection to its answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Request, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use tower::Service;

use super::app::{App, Buffers, Context};
use super::auth;
use super::buffer_permit::guarded;
use super::cross_origin::Hosts;
use super::deadlines::Deadlines;
use super::problem::Problem;
use crate::counters::{Counters, add_shared};

/// Answers the requests of one connection.
#[derive(Clone)]
pub(super) struct Calls {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    pub(super) deadlines: Arc<Deadlines>,
    pub(super) buffers: Arc<Buffers>,
    pub(super) hosts: Hosts,
}

impl hyper::service::Service<Request<Incoming>> for Calls {
    type Response = axum::http::Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let now = Instant::now();
        let unanswered = self.deadlines.begin(now);
        self.deadlines.set_body(!request.body().is_end_stream());
        let (app, buffers) = (Arc::clone(&self.app), Arc::clone(&self.buffers));
        let (router, hosts) = (self.router.clone(), self.hosts.clone());
        let is_probe = request.uri().path() == "/readyz";
        let deadlines = Arc::clone(&self.deadlines);
        Box::pin(async move {
            let context = Context {
                until: now + app.setup.limits.request_time,
                buffers,
                deadlines: Arc::clone(&deadlines),
            };
            let mut response = answer(router, hosts, context, request).await;
            let headers = response.headers_mut();
            // A cache that repeats an answer would issue its IDs twice.
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            // The rest of a body is not read.
            if app.setup.drain.has_begun() || deadlines.has_body() {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            // A server that is too busy to say whether it is ready has a problem.
            let kind = response.headers().get(CONTENT_TYPE);
            let is_probe = is_probe && kind.is_some_and(|it| it == "application/json");
            let counters = &app.counters;
            count(counters, is_probe, response.status(), now.elapsed());
            if auth::is_unknown_token(&response) {
                tokio::time::sleep(auth::DELAY).await;
            }
            let (head, body) = response.into_parts();
            // Every body is whole: it is one part, which is moved.
            let bytes = axum::body::to_bytes(body, usize::MAX).await;
            let bytes = guarded(bytes.unwrap_or_default(), unanswered);
            Ok(Response::from_parts(head, Full::new(bytes)))
        })
    }
}

fn count(counters: &Counters, is_probe: bool, status: StatusCode, duration: Duration) {
    add_shared(&counters.requests, 1);
    counters.durations.record(duration, 1, add_shared);
    // A 503 is a valid answer to a readiness probe, not an error.
    if is_probe && status == StatusCode::SERVICE_UNAVAILABLE {
        return;
    }
    if status.is_client_error() || status.is_server_error() {
        add_shared(&counters.errors, 1);
    }
    match status {
        StatusCode::UNAUTHORIZED => {
            add_shared(&counters.denied, 1);
            add_shared(&counters.auth_failures, 1);
        }
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => add_shared(&counters.denied, 1),
        status if status.is_server_error() => add_shared(&counters.unavailable, 1),
        _ => {}
    }
}

async fn answer(
    mut router: Router,
    hosts: Hosts,
    context: Context,
    request: Request<Incoming>,
) -> Response {
    if let Err(problem) = check_host(&request) {
        return problem.into_response();
    }
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(context);
    request.extensions_mut().insert(hosts);
    // A router is always ready.
    let Ok(response) = router.call(request).await;
    response
}

fn check_host<B>(request: &Request<B>) -> Result<(), Problem> {
    match (
        request.version(),
        request.headers().get_all(HOST).iter().count(),
    ) {
        (Version::HTTP_11, 0) | (_, 2..) => Err(Problem::malformed(
            "the field Host is missing, or there are several: send one, with the name that the \
             request is for",
        )),
        _ => Ok(()),
    }
}

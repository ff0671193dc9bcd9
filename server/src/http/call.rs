//! A request, from its connection to its answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONNECTION, HOST, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Request, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use tower::Service;

use super::app::{App, Buffers, Context};
use super::buffer_permit::guarded;
use super::cross_origin::Hosts;
use super::deadlines::Deadlines;
use super::problem::{Kind, Problem};
use crate::front::{FrontCounters, add_shared};

/// The most bytes of a request's URI and header fields.
pub(super) const HEAD_BYTES: usize = 16 << 10;
/// Of its URI alone.
pub(super) const URI_BYTES: usize = 8 << 10;

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
        let deadlines = Arc::clone(&self.deadlines);
        Box::pin(async move {
            let context = Context {
                until: now + app.setup.limits.request_time,
                buffers,
                deadlines,
            };
            let mut response = answer(router, hosts, context, request).await;
            let headers = response.headers_mut();
            // A cache that repeats an answer would issue its IDs twice.
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            if app.setup.drain.has_begun() {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            count(&app.counters, response.status(), now.elapsed());
            let (head, body) = response.into_parts();
            // Every body is whole: it is one part, which is moved.
            let bytes = axum::body::to_bytes(body, usize::MAX).await;
            let bytes = guarded(bytes.unwrap_or_default(), unanswered);
            Ok(Response::from_parts(head, Full::new(bytes)))
        })
    }
}

fn count(counters: &FrontCounters, status: StatusCode, duration: Duration) {
    add_shared(&counters.requests, 1);
    counters.durations.record(duration, 1, add_shared);
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
    if let Err(problem) = check_head(&request) {
        return problem.into_response();
    }
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(context);
    request.extensions_mut().insert(hosts);
    // A router is always ready.
    let Ok(response) = router.call(request).await;
    response
}

fn check_head<B>(request: &Request<B>) -> Result<(), Problem> {
    let uri = request.uri();
    let query = uri.query().map_or(0, |query| query.len() + 1);
    let uri_bytes = uri.path().len() + query;
    if uri_bytes > URI_BYTES {
        let detail = format!(
            "the URI is longer than {URI_BYTES} bytes, which is the limit: give a shorter one, or \
             a JSON body"
        );
        return Err(Problem::new(Kind::URI_TOO_LONG, detail));
    }
    let fields = request.headers().iter();
    // A field has 32 bytes besides its name and value, for what it costs in memory.
    let field_bytes = fields.map(|(name, value)| name.as_str().len() + value.len() + 32);
    if uri_bytes + field_bytes.sum::<usize>() > HEAD_BYTES {
        let detail = format!(
            "the URI and the header fields have more than {HEAD_BYTES} bytes, which is the \
             limit, each field with 32 bytes besides its name and value: send fewer or shorter \
             ones"
        );
        return Err(Problem::new(Kind::HEAD_TOO_LARGE, detail));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of refusal of a head with a path, a query and a field that are so long.
    fn refused(path: usize, query: usize, field: usize) -> Option<Kind> {
        let uri = format!("/{}?{}", "p".repeat(path - 1), "q".repeat(query - 1));
        let request = Request::get(uri).header(HOST, "x");
        let request = request.header("x-a", "v".repeat(field)).body(()).unwrap();
        check_head(&request).err().map(|problem| problem.kind)
    }

    #[test]
    fn a_uri_has_its_length_and_no_more() {
        for path in [1, 100, URI_BYTES - 1] {
            let query = URI_BYTES - path;
            assert_eq!(refused(path, query, 1), None, "{path}");
            assert_eq!(refused(path, query + 1, 1), Some(Kind::URI_TOO_LONG));
            assert_eq!(refused(path + 1, query, 1), Some(Kind::URI_TOO_LONG));
        }
    }

    #[test]
    fn a_head_has_its_length_and_no_more() {
        // Two fields, each with 32 bytes more.
        let names = "host".len() + "x".len() + 32 + "x-a".len() + 32;
        for (path, query) in [(1, 1), (100, 1000)] {
            let field = HEAD_BYTES - path - query - names;
            assert_eq!(refused(path, query, field), None, "{path}");
            assert_eq!(refused(path, query, field + 1), Some(Kind::HEAD_TOO_LARGE));
        }
    }
}

//! A request, from its connection to its answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CACHE_CONTROL, HOST, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Request, Version};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use tower::Service;

use super::activity::{Activity, InFlight};
use super::app::{App, Context};
use super::bulk::Turns;
use super::problem::{Kind, Problem};
use super::sites::Hosts;
use crate::front::add_shared;

/// The most bytes of a request's URI and header fields.
pub(super) const HEAD_BYTES: usize = 16 << 10;
/// Of its URI alone.
pub(super) const URI_BYTES: usize = 8 << 10;

/// What answers the requests of one connection.
#[derive(Clone)]
pub(super) struct Calls {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    pub(super) activity: Arc<Activity>,
    pub(super) turns: Arc<Turns>,
    pub(super) hosts: Hosts,
}

impl hyper::service::Service<Request<Incoming>> for Calls {
    type Response = axum::http::Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let in_flight = Arc::new(self.activity.begin(Instant::now()));
        let app = Arc::clone(&self.app);
        let context = Context {
            request: Arc::clone(&in_flight),
            turns: Arc::clone(&self.turns),
        };
        let (mut router, hosts) = (self.router.clone(), self.hosts.clone());
        Box::pin(async move {
            let mut response = match check_head(&request) {
                Err(problem) => problem.into_response(),
                Ok(()) => {
                    let mut request = request.map(Body::new);
                    request.extensions_mut().insert(context);
                    request.extensions_mut().insert(hosts);
                    // A router is always ready.
                    let Ok(response) = router.call(request).await;
                    response
                }
            };
            finish(&mut response);
            add_shared(&app.counters.requests, 1);
            if response.status().is_client_error() || response.status().is_server_error() {
                add_shared(&app.counters.errors, 1);
            }
            Ok(response.map(|body| Answer { body, in_flight }))
        })
    }
}

/// What every answer has.
fn finish(response: &mut Response) {
    let headers = response.headers_mut();
    // An ID that a cache repeats is one that comes twice.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// That the head is within its limits, and has a host as RFC 9112 wants it.
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
    // As they are counted in HTTP/2: a field has 32 bytes besides its name and value.
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

/// The body of an answer, whose request is in flight until all of it has been handed over, and
/// no part of it waits for room any more.
pub(super) struct Answer {
    body: Body,
    in_flight: Arc<InFlight>,
}

/// A part of it. HTTP/2 keeps parts for which a client has no room after it has let go of the
/// body.
struct Part {
    bytes: Bytes,
    _in_flight: Arc<InFlight>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.in_flight.offered(polled.is_ready().then(Instant::now));
        polled.map_ok(|frame| {
            frame.map_data(|bytes| {
                Bytes::from_owner(Part {
                    bytes,
                    _in_flight: Arc::clone(&self.in_flight),
                })
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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

    #[test]
    fn an_answer_is_as_long_as_its_body() {
        let hour = Duration::from_secs(3600);
        let activity = Arc::new(Activity::new(hour, hour, Instant::now()));
        let in_flight = Arc::new(activity.begin(Instant::now()));
        let answer = |body| Answer {
            body,
            in_flight: Arc::clone(&in_flight),
        };
        assert!(answer(Body::empty()).is_end_stream());
        let some = answer(Body::from("1234567"));
        assert!(!some.is_end_stream());
        assert_eq!(some.size_hint().exact(), Some(7));
    }
}

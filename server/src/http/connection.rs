//! One connection, from its first byte to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};

use super::app::{App, Buffers};
use super::buffer_permit::{ClientBudget, LARGE_PER_CONNECTION};
use super::call::{Calls, HEAD_BYTES};
use super::cross_origin::Hosts;
use super::deadlines::{Check, Deadlines, Watched};

/// Requests at once on an HTTP/2 connection. Clients send as many before they know the limit,
/// and RFC 9113 advises against fewer.
const STREAMS: u32 = 100;

/// Header fields of a request in HTTP/1.
const FIELDS: usize = 64;

/// Bytes of HTTP/2 bodies that a connection buffers: the smallest window that is allowed, and
/// more than a usual request has.
const WINDOW: u32 = (64 << 10) - 1;

/// HTTP/2 streams that the client or the server has reset and that still use memory. More of
/// them end the connection.
const RESET_STREAMS: usize = 20;

/// Both protocols, with their limits.
#[derive(Clone, Debug)]
pub(super) struct Protocol(auto::Builder<TokioExecutor>);

impl Protocol {
    pub(super) fn new(request_time: Duration) -> Self {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .max_headers(FIELDS)
            .max_buf_size(HEAD_BYTES)
            // A client that sends no more may still read.
            .half_close(true)
            // `Deadlines` has all of them; this timeout would also end idle connections.
            .header_read_timeout(None)
            .timer(TokioTimer::new());
        builder
            .http2()
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(2 * HEAD_BYTES as u32)
            .initial_connection_window_size(WINDOW)
            .initial_stream_window_size(WINDOW)
            .max_send_buf_size(HEAD_BYTES)
            .max_pending_accept_reset_streams(RESET_STREAMS)
            .max_local_error_reset_streams(RESET_STREAMS)
            .keep_alive_interval(request_time)
            .keep_alive_timeout(request_time)
            .timer(TokioTimer::new());
        Self(builder)
    }
}

/// What a connection needs.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    pub(super) protocol: Protocol,
    pub(super) draining: watch::Receiver<bool>,
    pub(super) hosts: Hosts,
}

/// Serves the connection until its end.
pub(super) async fn serve<S>(stream: S, budget: ClientBudget, shared: Shared)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Shared {
        app,
        router,
        protocol,
        mut draining,
        hosts,
    } = shared;
    let now = Instant::now();
    let times = app.times;
    let deadlines = Arc::new(Deadlines::new(times, now));
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&deadlines)));
    let calls = Calls {
        app,
        router,
        deadlines: Arc::clone(&deadlines),
        buffers: Arc::new(Buffers {
            budget,
            large: Semaphore::new(LARGE_PER_CONNECTION).into(),
        }),
        hosts,
    };
    let mut connection = pin!(protocol.0.serve_connection(io, calls));
    let first = now + times.request.min(times.idle);
    let mut timer = pin!(tokio::time::sleep_until(first.into()));
    let (mut is_closing, mut is_draining) = (false, false);
    loop {
        tokio::select! {
            biased;
            // An error ends the connection as well.
            _ = connection.as_mut() => return,
            _ = draining.wait_for(|draining| *draining), if !is_draining => {
                is_draining = true;
                let now = Instant::now();
                // GOAWAY lets begun requests end. In HTTP/1 it is the next answer that has
                // `Connection: close`.
                if deadlines.drain(now) {
                    connection.as_mut().graceful_shutdown();
                }
                timer.as_mut().reset((now + times.drain).into());
            }
            () = timer.as_mut() => {
                let now = Instant::now();
                let next = match deadlines.check(now) {
                    Check::Again(next) => next,
                    Check::Idle if !is_closing => {
                        is_closing = true;
                        connection.as_mut().graceful_shutdown();
                        now + times.drain
                    }
                    Check::Idle | Check::Overdue => return,
                };
                timer.as_mut().reset(next.into());
            }
        }
    }
}

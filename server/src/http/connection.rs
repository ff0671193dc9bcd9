//! One connection, from its handshake to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::activity::{Activity, Look};
use super::app::App;
use super::call::{Calls, HEAD_BYTES};
use super::seats::Seat;
use super::watched::Watched;

/// The most requests at once on a connection of HTTP/2. Clients send as many before they know,
/// and RFC 9113 advises against fewer.
const STREAMS: u32 = 100;

/// The most header fields of HTTP/1.
const FIELDS: usize = 64;

/// Bytes of a head that is still read, to be answered with the limit that it breaks; and of
/// answers that wait for their client.
const BUFFER_BYTES: usize = 128 << 10;

/// The protocol, with its limits.
#[derive(Clone, Debug)]
pub(super) struct Protocol(auto::Builder<TokioExecutor>);

impl Protocol {
    pub(super) fn new() -> Self {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .max_headers(FIELDS)
            .max_buf_size(BUFFER_BYTES)
            // Who sends no more may still read; who does not is found out by `Activity`, and
            // who is gone when something is sent.
            .half_close(true)
            // `Activity` has all deadlines.
            .header_read_timeout(None)
            .timer(TokioTimer::new());
        builder
            .http2()
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(2 * HEAD_BYTES as u32)
            .max_send_buf_size(BUFFER_BYTES)
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
    pub(super) hosts: super::sites::Hosts,
}

impl Shared {
    /// For a connection on a Unix socket.
    pub(super) fn of_unix(self) -> Self {
        Self {
            hosts: super::sites::Hosts::All,
            ..self
        }
    }
}

/// Serves the connection until its end.
pub(super) async fn serve<S>(stream: S, seat: Seat, shared: Shared)
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
    let (request_time, idle_time) = (app.limits.request_time, app.limits.idle_time);
    let now = Instant::now();
    let activity = Arc::new(Activity::new(request_time, idle_time, now));
    let first_look = activity.next_look(now);
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
    let turns = Arc::new(app.bulk.turns(Arc::clone(&seat.bulk)));
    let calls = Calls {
        app,
        router,
        activity: Arc::clone(&activity),
        turns,
        hosts,
    };
    let mut connection = pin!(protocol.0.serve_connection(io, calls));
    let mut look = pin!(tokio::time::sleep_until(first_look.into()));
    let (mut is_ending, mut is_draining) = (false, false);
    loop {
        tokio::select! {
            // However it ended, it ended.
            _ = connection.as_mut() => return,
            _ = draining.wait_for(|now| *now), if !is_draining => {
                (is_ending, is_draining) = (true, true);
                connection.as_mut().graceful_shutdown();
                let next = activity.drain(Instant::now());
                look.as_mut().reset(next.into());
            }
            () = look.as_mut() => {
                let next = match activity.look(Instant::now()) {
                    Look::Again(next) => next,
                    // The client has had its time to see the end.
                    Look::Idle if is_ending => return,
                    Look::Idle => {
                        is_ending = true;
                        connection.as_mut().graceful_shutdown();
                        Instant::now() + request_time
                    }
                    Look::Overdue => return,
                };
                look.as_mut().reset(next.into());
            }
        }
    }
}

//! One connection, from its first byte to its end.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, watch};
use tokio::time::Sleep;

use super::app::{App, Buffers};
use super::buffer_permit::{
    BYTES_PER_HTTP1, BYTES_PER_HTTP2, BYTES_PER_HTTP2_STRANGER, ClientBudgets,
    LARGE_PER_CONNECTION, StrangerPermits,
};
use super::call::{Calls, HEAD_BYTES};
use super::cross_origin::Hosts;
use super::deadlines::{Check, Deadlines, Tap, Watched};
use crate::buffer_budget::{BufferPermit, ClientBudget};

/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A head that is not longer is read before hyper's buffers are made.
const FIRST_BYTES: usize = 512;

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
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn new(request_time: Duration) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .max_headers(FIELDS)
            .max_buf_size(HEAD_BYTES)
            // A client that sends no more may still read.
            .half_close(true)
            // `Deadlines` has all of them; this timeout would also end idle connections.
            .header_read_timeout(None)
            .timer(TokioTimer::new());
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
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
        Self { http1, http2 }
    }
}

/// What a connection needs.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    pub(super) protocols: Protocols,
    pub(super) draining: watch::Receiver<bool>,
    pub(super) hosts: Hosts,
}

/// Serves the connection until its end. `tls_permit` is its part of the strangers' memory, with
/// TLS. Between requests of HTTP/1 it keeps no buffers: hyper's two, of 8 KiB each, are made when
/// a head has come.
pub(super) async fn serve<S>(
    stream: S,
    tap: Tap,
    tls_permit: Option<BufferPermit>,
    budgets: ClientBudgets,
    shared: Shared,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Shared {
        app,
        router,
        protocols,
        draining,
        hosts,
    } = shared;
    let (now, times) = (Instant::now(), app.times);
    let deadlines = Arc::new(Deadlines::new(times, now));
    let first = now + times.request.min(times.idle);
    let mut supervisor = Supervisor {
        deadlines: Arc::clone(&deadlines),
        draining,
        timer: Box::pin(tokio::time::sleep_until(first.into())),
        drain_time: times.drain,
        is_closing: false,
        is_draining: false,
    };
    let mut stream = Watched::new(stream, tap, Arc::clone(&deadlines));
    if tls_permit.is_some() {
        deadlines.set_stranger(now);
    }
    let buffers = Arc::new(Buffers {
        budget: budgets.answers,
        large: Semaphore::new(LARGE_PER_CONNECTION).into(),
        stranger: StrangerPermits::new(tls_permit),
    });
    let stranger = &buffers.stranger;
    let calls = Calls {
        app,
        router,
        deadlines,
        buffers: Arc::clone(&buffers),
        hosts,
    };
    let mut may_be_http2 = true;
    while let Some(is_http2) = begins(&mut stream, may_be_http2, &mut supervisor).await {
        let of_stranger = match is_http2 {
            true => (&budgets.http2_strangers, BYTES_PER_HTTP2_STRANGER),
            false => (&budgets.strangers, BYTES_PER_HTTP1),
        };
        if stranger.needs_http1() || is_http2 && stranger.is_stranger() {
            let (budget, bytes) = of_stranger;
            let Some(permit) = active(budget, bytes, &mut supervisor).await else {
                return;
            };
            stranger.set_active(Some(permit));
        }
        let (budget, bytes) = match is_http2 {
            true => (&budgets.http2, BYTES_PER_HTTP2),
            false => (&budgets.http1, BYTES_PER_HTTP1),
        };
        let Some(_permit) = active(budget, bytes, &mut supervisor).await else {
            return;
        };
        let calls = calls.clone();
        if is_http2 {
            let connection = protocols
                .http2
                .serve_connection(TokioIo::new(stream), calls);
            supervisor.deadlines.is_http2();
            if stranger.is_stranger() {
                supervisor.deadlines.set_stranger(Instant::now());
            }
            return Box::pin(run_http2(connection, supervisor)).await;
        }
        may_be_http2 = false;
        let connection = protocols
            .http1
            .serve_connection(TokioIo::new(stream), calls);
        match Box::pin(run_http1(connection, &mut supervisor)).await {
            Some(again) => stream = again,
            None => return,
        }
        stranger.set_active(None);
    }
    // Ends a TLS session properly.
    let _ = tokio::time::timeout(times.drain, stream.shutdown()).await;
}

/// Waits for a permit to be active. `None` if the connection has to be closed before.
async fn active(
    budget: &ClientBudget,
    bytes: usize,
    supervisor: &mut Supervisor,
) -> Option<BufferPermit> {
    let permit = budget.acquire(bytes);
    let mut permit = pin!(permit);
    loop {
        tokio::select! {
            biased;
            permit = permit.as_mut() => return permit,
            event = supervisor.next() => match event {
                Event::Idle | Event::Overdue => return None,
                Event::Drain => {}
            },
        }
    }
}

/// Waits for the head of a request, or for as much of it as is kept outside of hyper, and puts
/// it back into the stream. Returns whether it is HTTP/2's, or `None` if the connection has to
/// be closed.
async fn begins<S>(
    stream: &mut Watched<S>,
    may_be_http2: bool,
    supervisor: &mut Supervisor,
) -> Option<bool>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut first = [0; FIRST_BYTES];
    let mut count = 0;
    let is_http2 = loop {
        let read = tokio::select! {
            biased;
            read = stream.read(&mut first[count..]) => read.ok()?,
            event = supervisor.next() => match event {
                Event::Idle | Event::Overdue => return None,
                Event::Drain => continue,
            },
        };
        count += read;
        let bytes = &first[..count];
        if may_be_http2 && bytes.starts_with(PREFACE) {
            break true;
        }
        let is_preface = may_be_http2 && PREFACE.starts_with(bytes);
        let is_whole = bytes.windows(4).any(|end| end == b"\r\n\r\n");
        if read == 0 || count == FIRST_BYTES || (is_whole && !is_preface) {
            break false;
        }
    };
    if count == 0 {
        return None;
    }
    stream.unread(&first[..count]);
    Some(is_http2)
}

/// Serves requests until the connection ends, or until it is quiet: then the stream is
/// returned.
async fn run_http1<S>(
    mut connection: http1::Connection<TokioIo<Watched<S>>, Calls>,
    supervisor: &mut Supervisor,
) -> Option<Watched<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    loop {
        let event = {
            let deadlines = Arc::clone(&supervisor.deadlines);
            // After a poll that ends in `Pending` all has been written.
            let mut run = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
                // An error ends the connection as well.
                Poll::Ready(_) => Poll::Ready(false),
                Poll::Pending if deadlines.is_quiet() => Poll::Ready(true),
                Poll::Pending => Poll::Pending,
            });
            tokio::select! {
                biased;
                is_quiet = &mut run => Err(is_quiet),
                event = supervisor.next() => Ok(event),
            }
        };
        match event {
            Err(false) | Ok(Event::Overdue) => return None,
            // The next answer has `Connection: close`.
            Ok(Event::Drain) => {}
            Ok(Event::Idle) => Pin::new(&mut connection).graceful_shutdown(),
            Err(true) => {
                let http1::Parts { io, read_buf, .. } = connection.into_parts();
                let mut stream = io.into_inner();
                stream.unread(&read_buf);
                return Some(stream);
            }
        }
    }
}

async fn run_http2<S>(
    connection: http2::Connection<TokioIo<Watched<S>>, Calls, TokioExecutor>,
    mut supervisor: Supervisor,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut connection = pin!(connection);
    loop {
        let event = tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            event = supervisor.next() => event,
        };
        match event {
            // GOAWAY lets requests end that were begun.
            Event::Drain | Event::Idle => connection.as_mut().graceful_shutdown(),
            Event::Overdue => return,
        }
    }
}

/// Reports when a connection has to change.
struct Supervisor {
    deadlines: Arc<Deadlines>,
    draining: watch::Receiver<bool>,
    timer: Pin<Box<Sleep>>,
    drain_time: Duration,
    is_closing: bool,
    is_draining: bool,
}

enum Event {
    /// The server begins to drain.
    Drain,
    /// It has been quiet for too long, and should be closed gracefully.
    Idle,
    /// It has to be closed at once.
    Overdue,
}

impl Supervisor {
    async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                _ = self.draining.wait_for(|draining| *draining), if !self.is_draining => {
                    self.is_draining = true;
                    let now = Instant::now();
                    self.deadlines.drain(now);
                    self.timer.as_mut().reset((now + self.drain_time).into());
                    return Event::Drain;
                }
                () = self.timer.as_mut() => {}
            }
            let now = Instant::now();
            match self.deadlines.check(now) {
                Check::Again(next) => {
                    self.timer.as_mut().reset(next.into());
                }
                Check::Idle if !self.is_closing => {
                    self.is_closing = true;
                    self.timer.as_mut().reset((now + self.drain_time).into());
                    return Event::Idle;
                }
                Check::Idle | Check::Overdue => return Event::Overdue,
            }
        }
    }
}

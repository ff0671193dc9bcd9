//! One connection, from its first byte to its end.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Sleep;

use super::app::{App, Buffers};
use super::buffer_permit::{BYTES_PER_ACTIVE, Budgets, ClientBudgets, StrangerPermits};
use super::call::Calls;
use super::cross_origin::Hosts;
use super::deadlines::{Check, Deadlines, Tap, Watched};
use crate::buffer_budget::BufferPermit;
use crate::handshake::{Handshakes, linger};

/// A head that is not longer is read before hyper's buffers are made.
const FIRST_BYTES: usize = 512;

const HEAD_BYTES: usize = 16 << 10;

/// Header fields of a request.
const FIELDS: usize = 64;

/// The protocol, with its limits.
pub(super) fn http1() -> http1::Builder {
    let mut http1 = http1::Builder::new();
    http1
        .max_headers(FIELDS)
        .max_buf_size(HEAD_BYTES)
        // A client that sends no more may still read.
        .half_close(true)
        // `Deadlines` has all of them; this timeout would also end idle connections.
        .header_read_timeout(None);
    http1
}

/// What all listeners and connections share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    pub(super) http1: http1::Builder,
    pub(super) draining: watch::Receiver<bool>,
    pub(super) hosts: Hosts,
    pub(super) budgets: Arc<Budgets>,
    pub(super) handshakes: Arc<Handshakes>,
}

/// Serves the connection until its end. `tls_permit` is its part of the strangers' memory, with
/// TLS. Between requests it keeps no buffers: hyper's two, of 8 KiB each, are made when a head
/// has come.
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
        http1,
        draining,
        hosts,
        ..
    } = shared;
    let (now, times) = (Instant::now(), app.times());
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
        budgets,
        stranger: StrangerPermits::new(tls_permit),
    });
    let calls = Calls {
        app,
        router,
        deadlines,
        buffers: Arc::clone(&buffers),
        hosts,
    };
    while let Some(is_probe) = begins(&mut stream, &mut supervisor).await {
        // `None` if the connection has to be closed before.
        let permit = tokio::select! {
            biased;
            permit = activate(is_probe, &buffers) => permit,
            _ = supervisor.next() => None,
        };
        let Some(_permit) = permit else { return };
        let connection = http1.serve_connection(TokioIo::new(stream), calls.clone());
        let Some((again, has_ended)) = Box::pin(run(connection, &mut supervisor)).await else {
            return;
        };
        stream = again;
        buffers.stranger.set_active(None);
        if has_ended {
            break;
        }
    }
    Box::pin(linger(stream, times.drain)).await;
}

/// Waits for the permits of a connection with a request. A health check takes one of its client's
/// four probe permits instead, if one is free.
async fn activate(is_probe: bool, buffers: &Buffers) -> Option<BufferPermit> {
    let Buffers { budgets, stranger } = buffers;
    if is_probe && let Some(permit) = budgets.probes.try_acquire(BYTES_PER_ACTIVE) {
        return Some(permit);
    }
    if stranger.needs_active() {
        stranger.set_active(Some(budgets.strangers.acquire(BYTES_PER_ACTIVE).await?));
    }
    budgets.active.acquire(BYTES_PER_ACTIVE).await
}

/// Waits for the head of a request, or for as much of it as is kept outside of hyper, and puts
/// it back into the stream. Returns whether it is a health check; `None` if the connection has to
/// be closed.
async fn begins<S>(stream: &mut Watched<S>, supervisor: &mut Supervisor) -> Option<bool>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut first = [0; FIRST_BYTES];
    let mut count = 0;
    loop {
        let read = tokio::select! {
            biased;
            read = stream.read(&mut first[count..]) => read.ok()?,
            _ = supervisor.next() => return None,
        };
        count += read;
        if read == 0 || count == FIRST_BYTES || head_length(&first[..count]).is_some() {
            break;
        }
    }
    let first = &first[..count];
    stream.unread(first);
    (count > 0).then(|| is_probe(first))
}

/// The length of the head, if it is whole. hyper accepts lines that end in LF alone.
fn head_length(first: &[u8]) -> Option<usize> {
    let ends = |at: usize| first[..at].ends_with(b"\n\r\n") || first[..at].ends_with(b"\n\n");
    (1..=first.len()).find(|&at| ends(at))
}

/// Whether these first bytes are a health check, with nothing pipelined behind it.
fn is_probe(first: &[u8]) -> bool {
    let has_path = first.starts_with(b"GET /livez ") || first.starts_with(b"GET /readyz ");
    has_path && head_length(first) == Some(first.len())
}

/// Serves requests until the connection is quiet or ends. Returns its stream and whether it has
/// ended; none if it has to be closed at once.
async fn run<S>(
    mut connection: http1::Connection<TokioIo<Watched<S>>, Calls>,
    supervisor: &mut Supervisor,
) -> Option<(Watched<S>, bool)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    loop {
        let event = {
            let deadlines = Arc::clone(&supervisor.deadlines);
            // After a poll that ends in `Pending` all has been written.
            let mut run = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
                // An error ends the connection as well.
                Poll::Ready(_) => Poll::Ready(true),
                Poll::Pending if deadlines.is_quiet() => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            });
            tokio::select! {
                biased;
                has_ended = &mut run => Err(has_ended),
                event = supervisor.next() => Ok(event),
            }
        };
        match event {
            Ok(Event::Overdue) => return None,
            Ok(Event::Idle) => Pin::new(&mut connection).graceful_shutdown(),
            Err(has_ended) => {
                let http1::Parts { io, read_buf, .. } = connection.into_parts();
                let mut stream = io.into_inner();
                stream.unread(&read_buf);
                return Some((stream, has_ended));
            }
        }
    }
}

/// Reports when a connection has to end.
struct Supervisor {
    deadlines: Arc<Deadlines>,
    draining: watch::Receiver<bool>,
    timer: Pin<Box<Sleep>>,
    drain_time: Duration,
    is_closing: bool,
    is_draining: bool,
}

enum Event {
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
                    // The next answer has `Connection: close`.
                    continue;
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

#[cfg(test)]
mod tests {
    use super::super::buffer_permit::Budgets;
    use super::*;
    use crate::clients::Client;

    #[test]
    fn a_whole_head_with_nothing_behind_it_may_be_a_health_check() {
        for (first, expected) in [
            ("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n", true),
            ("GET /readyz HTTP/1.1\nhost: x\n\n", true),
            ("GET /livez HTTP/1.0\r\n\r\n", true),
            ("GET /livezz HTTP/1.1\r\n\r\n", false),
            ("GET /livez?x HTTP/1.1\r\n\r\n", false),
            ("HEAD /livez HTTP/1.1\r\n\r\n", false),
            ("GET /livez HTTP/1.1\r\nhost: x\r\n", false),
            ("GET /livez HTTP/1.1\r\n\r\nPOST /v1/ids", false),
            ("GET /livez HTTP/1.1\n\nGET / HTTP/1.1\n\n", false),
        ] {
            assert_eq!(is_probe(first.as_bytes()), expected, "{first:?}");
        }
    }

    #[test]
    fn four_health_checks_of_a_client_hold_permits() {
        let budgets = Budgets::new().client(Client::User(None));
        let acquire = || budgets.probes.try_acquire(BYTES_PER_ACTIVE);
        let held = [(); 4].map(|()| acquire());
        assert!(held.iter().all(Option::is_some) && acquire().is_none());
    }
}

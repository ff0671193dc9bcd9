//! Deadlines of a connection.
//!
//! | the connection | ends after | how |
//! |---|---|---|
//! | waits for the rest of a head or of a TLS record, or for its first head | `request_time` | closed |
//! | has a request whose answer has not left yet | twice `request_time` since its head | closed |
//! | can't write | `request_time` | closed |
//! | has TLS, and no request was authorized | `request_time` | `Connection: close` |
//! | is quiet | `idle_time`, or `drain` while the server drains | `Connection: close` |
//!
//! A server that drains also waits for the rest of a head of which bytes have come.
//!
//! hyper has no timeout that tells an idle connection from an unfinished head, and none for an
//! answer that is not read. tower-http's timeouts limit only the handler.
//!
//! No byte extends a deadline, so a client that sends or reads a byte at a time is closed as
//! well. The connection's task checks at the next deadline, but at least once in the shorter
//! of both times. Setting a deadline therefore needs no timer.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::InspectReader;

use crate::lock::lock;

#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) request: Duration,
    pub(super) idle: Duration,
    /// For how long a draining server still answers new requests.
    pub(super) drain: Duration,
}

#[derive(Debug)]
pub(super) struct Deadlines {
    state: Mutex<State>,
    times: Times,
}

#[derive(Debug)]
struct State {
    /// When each request began whose answer has not left yet, the oldest first: answers leave in
    /// the order of their requests.
    requests: VecDeque<Instant>,
    /// Since when there is no request; or since when the head of one arrives.
    quiet_since: Instant,
    /// Whether part of a head has come.
    in_head: bool,
    /// Whether there was no request yet.
    is_new: bool,
    /// Since when it has a stranger's permit that lasts; `None` once a request is authorized.
    stranger_since: Option<Instant>,
    /// Whether the last request has a body that was not read to its end.
    has_body: bool,
    blocked_since: Option<Instant>,
    draining_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// No deadline has passed. Check again then.
    Again(Instant),
    /// The connection was quiet for too long.
    Idle,
    /// The client is too slow.
    Overdue,
}

impl Deadlines {
    pub(super) fn new(times: Times, now: Instant) -> Self {
        Self {
            state: Mutex::new(State {
                requests: VecDeque::new(),
                quiet_since: now,
                in_head: false,
                is_new: true,
                stranger_since: None,
                has_body: false,
                blocked_since: None,
                draining_since: None,
            }),
            times,
        }
    }

    /// A request's head has been read.
    pub(super) fn begin(self: &Arc<Self>, now: Instant) -> Unanswered {
        let mut state = lock(&self.state);
        (state.in_head, state.is_new) = (false, false);
        state.requests.push_back(now);
        Unanswered(Arc::clone(self))
    }

    /// A request has to be authorized within its time from now on.
    pub(super) fn set_stranger(&self, now: Instant) {
        lock(&self.state).stranger_since.get_or_insert(now);
    }

    pub(super) fn authorize(&self) {
        lock(&self.state).stranger_since = None;
    }

    pub(super) fn drain(&self, now: Instant) {
        lock(&self.state).draining_since = Some(now);
    }

    /// Whether the last request has a body that was not read to its end.
    pub(super) fn set_body(&self, has_body: bool) {
        lock(&self.state).has_body = has_body;
    }

    pub(super) fn has_body(&self) -> bool {
        lock(&self.state).has_body
    }

    /// Whether there is no request and none has begun: the next byte is the first of a head.
    pub(super) fn is_quiet(&self) -> bool {
        let state = lock(&self.state);
        state.requests.is_empty()
            && !state.in_head
            && !state.has_body
            && state.blocked_since.is_none()
    }

    pub(super) fn check(&self, now: Instant) -> Check {
        let (state, times) = (lock(&self.state), self.times);
        let blocked = state.blocked_since.map(|since| since + times.request);
        let oldest = state.requests.front().copied();
        let (deadline, then) = match oldest {
            Some(begun) => (begun + 2 * times.request, Check::Overdue),
            None if state.in_head => (state.quiet_since + times.request, Check::Overdue),
            None => match state.draining_since {
                Some(since) => (since.max(state.quiet_since) + times.drain, Check::Idle),
                None if state.is_new => (state.quiet_since + times.request, Check::Overdue),
                // hyper keeps its buffers then, since the rest of the body is no request.
                None if state.has_body => (state.quiet_since + times.request, Check::Idle),
                None => (state.quiet_since + times.idle, Check::Idle),
            },
        };
        if blocked.is_some_and(|until| until <= now) {
            return Check::Overdue;
        }
        // No request of a stranger takes longer than a moment.
        let stranger = state.stranger_since.map(|since| since + times.request);
        let (deadline, then) = match stranger {
            Some(end) if end < deadline => (end, Check::Idle),
            _ => (deadline, then),
        };
        if deadline <= now {
            return then;
        }
        let next = blocked.map_or(deadline, |until| until.min(deadline));
        Check::Again(next.min(match state.draining_since {
            Some(_) => now + times.drain,
            None => now + times.request.min(times.idle),
        }))
    }

    fn received(&self) {
        let mut state = lock(&self.state);
        if state.requests.is_empty() && !state.in_head {
            state.in_head = true;
            // The time of the first head begins with the connection.
            if !state.is_new {
                state.quiet_since = Instant::now();
            }
        }
    }
}

/// A request, until its answer has left.
#[derive(Debug)]
pub(super) struct Unanswered(Arc<Deadlines>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.requests.pop_front();
        if state.requests.is_empty() {
            state.quiet_since = Instant::now();
        }
    }
}

/// Whether bytes came that TLS has not turned into any of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Tap(Arc<AtomicBool>);

impl Tap {
    /// Reports what is read from a stream below TLS. Part of a record, which TLS keeps, begins a
    /// request's time.
    pub(super) fn inspect<S: AsyncRead>(
        &self,
        stream: S,
    ) -> InspectReader<S, impl FnMut(&[u8]) + Send + use<S>> {
        let has_part = Arc::clone(&self.0);
        InspectReader::new(stream, move |read| {
            if !read.is_empty() {
                // The connection's task reads it.
                has_part.store(true, Ordering::Relaxed);
            }
        })
    }
}

/// The stream of a connection, which reports reads and blocked writes.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    /// Of the stream below TLS.
    tap: Tap,
    /// Bytes that were read and put back.
    unread: Vec<u8>,
    deadlines: Arc<Deadlines>,
    is_blocked: bool,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, tap: Tap, deadlines: Arc<Deadlines>) -> Self {
        // Bytes read so far belong to the handshake.
        tap.0.store(false, Ordering::Relaxed);
        Self {
            stream,
            tap,
            unread: Vec::new(),
            deadlines,
            is_blocked: false,
        }
    }

    /// Puts bytes back, to be read next.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        self.unread.splice(..0, bytes.iter().copied());
    }

    fn written<T>(&mut self, result: Poll<T>) -> Poll<T> {
        let is_blocked = result.is_pending();
        if is_blocked != self.is_blocked {
            self.is_blocked = is_blocked;
            lock(&self.deadlines.state).blocked_since = is_blocked.then(Instant::now);
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let count = self.unread.len().min(buf.remaining());
            buf.put_slice(&self.unread[..count]);
            self.unread.drain(..count);
            if self.unread.is_empty() {
                self.unread = Vec::new();
            }
            self.deadlines.received();
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let has_part = self.tap.0.swap(false, Ordering::Relaxed);
        if buf.filled().len() > before || has_part && read.is_pending() {
            self.deadlines.received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.written(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TLS buffers bytes, so that only a flush shows that the socket is blocked.
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.written(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(300);
    const DRAIN: Duration = Duration::from_millis(500);
    const TIMES: Times = Times {
        request: REQUEST,
        idle: IDLE,
        drain: DRAIN,
    };

    /// A connection that has answered one request.
    fn quiet() -> (Arc<Deadlines>, Instant) {
        let deadlines = Arc::new(Deadlines::new(TIMES, Instant::now()));
        drop(deadlines.begin(Instant::now()));
        let since = lock(&deadlines.state).quiet_since;
        (deadlines, since)
    }

    #[test]
    fn a_stranger_has_the_time_of_a_request() {
        let (deadlines, since) = quiet();
        deadlines.set_stranger(since);
        // Also one that always has a request.
        let request = deadlines.begin(since + REQUEST / 2);
        let check = deadlines.check(since + REQUEST / 2);
        assert_eq!(check, Check::Again(since + REQUEST));
        assert_eq!(deadlines.check(since + REQUEST), Check::Idle);
        deadlines.authorize();
        assert!(matches!(deadlines.check(since + REQUEST), Check::Again(_)));
        drop(request);
    }

    #[test]
    fn the_oldest_request_decides() {
        let now = Instant::now();
        let deadlines = Arc::new(Deadlines::new(TIMES, now));
        let first = deadlines.begin(now);
        let second = deadlines.begin(now + REQUEST);
        assert_eq!(deadlines.check(now + 2 * REQUEST), Check::Overdue);
        drop(first);
        let check = deadlines.check(now + 2 * REQUEST);
        assert_eq!(check, Check::Again(now + 3 * REQUEST));
        assert_eq!(deadlines.check(now + 3 * REQUEST), Check::Overdue);
        drop(second);
    }

    #[test]
    fn a_blocked_write_is_overdue() {
        let (deadlines, since) = quiet();
        lock(&deadlines.state).blocked_since = Some(since);
        assert_eq!(deadlines.check(since + REQUEST), Check::Overdue);
        lock(&deadlines.state).blocked_since = None;
        assert_ne!(deadlines.check(since + REQUEST), Check::Overdue);
    }

    #[test]
    fn a_draining_connection_is_idle_half_a_second_after_its_last_request() {
        let (deadlines, since) = quiet();
        let later = since + Duration::from_secs(7);
        deadlines.drain(later);
        assert_eq!(deadlines.check(later), Check::Again(later + DRAIN));
        let request = deadlines.begin(later);
        let check = deadlines.check(later + DRAIN);
        assert_eq!(check, Check::Again(later + 2 * DRAIN));
        drop(request);
        let end = later.max(lock(&deadlines.state).quiet_since) + DRAIN;
        assert_eq!(deadlines.check(end), Check::Idle);
        // It waits for the rest of a head.
        deadlines.received();
        let begun = lock(&deadlines.state).quiet_since;
        let check = deadlines.check(begun + REQUEST / 2);
        assert!(matches!(check, Check::Again(_)));
        assert_eq!(deadlines.check(begun + REQUEST), Check::Overdue);
        let silent = Deadlines::new(TIMES, later);
        silent.drain(later);
        assert_eq!(silent.check(later + DRAIN), Check::Idle);
    }
}

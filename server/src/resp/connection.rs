//! The task of one connection.
//!
//! ```text
//!   write leftovers --> read once --> Session::turn --> write what the socket accepts
//!        ^                                                  |
//!        +-------------- next turn, or wait ----------------+
//! ```
//!
//! A turn runs in one poll, so it can borrow the buffers of its worker thread. What a turn
//! leaves over is copied into buffers of the connection, which has none otherwise.

use std::future::{pending, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::budget::{Share, UNAUTHENTICATED_BYTES};
use super::context::{READ, Shared, Worker};
use super::reply::Rejection;
use super::session::Session;
use super::spin;
use super::turn::NextAction;
use crate::config::LEAST_BYTES_PER_SECOND;
use crate::handshake::{LINGER, linger};
use crate::namespaces::OpenError;

/// Turns in a row before other connections of the worker get theirs.
const TURNS: usize = 4;

/// How long the reply to a failed authentication waits, and everything behind it.
const AUTH_DELAY: Duration = Duration::from_millis(200);

/// Error for a connection over the [`Budget`](super::budget::Budget).
const NO_MEMORY: &[u8] = b"-ERR no memory for unfinished requests and unread replies: read \
replies before sending more, or retry later\r\n";

/// What a connection waits for, which decides its timeout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The first byte of a request.
    Idle,
    /// The rest of a request.
    Request,
    /// The client to read its replies.
    Write,
}

/// Wakes the task of a connection to poll its drain and its timer again.
struct EventWaker {
    is_due: AtomicBool,
    task: Waker,
}

impl Wake for EventWaker {
    fn wake(self: Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

struct Connection<'a, S> {
    shared: &'a Arc<Shared>,
    stream: S,
    session: Session,
    /// Input that is not answered yet.
    input: Vec<u8>,
    /// Whether `input` holds no complete request.
    needs_input: bool,
    /// Replies that the socket has not accepted, from `written` on.
    output: Vec<u8>,
    written: usize,
    /// Whether TLS holds bytes that the socket has not accepted.
    is_flushing: bool,
    /// Memory of `input`, `output` and the session's queue.
    share: Share,
    /// When anything was answered or sent since the last wait, if it was.
    progress: Option<Instant>,
    /// How long the request in front has waited for its namespace.
    opening_time: Duration,
    /// Since when the client is not authenticated. No progress moves it.
    stranger_since: Option<Instant>,
    /// Until when input is read during a drain. Set by the first request that is answered then.
    drained_by: Option<Instant>,
}

/// Serves one client until either side closes.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    session: Session,
    share: Share,
    shared: &Arc<Shared>,
    mut draining: watch::Receiver<bool>,
) {
    let mut connection = Connection {
        shared,
        stream,
        session,
        input: Vec::new(),
        needs_input: true,
        output: Vec::new(),
        written: 0,
        is_flushing: false,
        share,
        progress: None,
        opening_time: Duration::ZERO,
        stranger_since: None,
        drained_by: None,
    };
    connection.account();
    let mut waiting = Waiting::Idle;
    let mut deadline = Instant::now() + connection.patience(waiting);
    let mut timer = pin!(sleep_until(deadline));
    let mut drain = pin!(async move {
        drop(draining.wait_for(|begun| *begun).await);
        // It is polled for the timer's sake as well.
        pending::<()>().await;
    });
    let mut events: Option<Arc<EventWaker>> = None;
    let mut is_due = false;
    let mut looked_again = false;
    loop {
        let next = poll_fn(|context| {
            if connection.session.is_revoked(shared) {
                return Poll::Ready(NextAction::Close);
            }
            let is_over = |by| Instant::now() >= by;
            // A client that never stops sending does not reach the timer below.
            if connection.authenticate_by().is_some_and(is_over) {
                return Poll::Ready(NextAction::Drop);
            }
            let mut turns = 0;
            loop {
                // Answer buffered requests before ending.
                if connection.needs_input && connection.drained_by.is_some_and(is_over) {
                    return Poll::Ready(NextAction::Close);
                }
                match connection.turn(context) {
                    Poll::Ready(NextAction::Input) => {}
                    Poll::Ready(next) => return Poll::Ready(next),
                    Poll::Pending => break,
                }
                turns += 1;
                if turns == TURNS {
                    return Poll::Ready(NextAction::Turn);
                }
            }
            let events = events.get_or_insert_with(|| {
                Arc::new(EventWaker {
                    is_due: AtomicBool::new(true),
                    // That of a task stays the same.
                    task: context.waker().clone(),
                })
            });
            // Not at each turn: polling the drain takes a lock that all connections share, and
            // polling the timer registers its waker anew.
            is_due |= events.is_due.load(Ordering::Relaxed)
                && events.is_due.swap(false, Ordering::AcqRel);
            if is_due {
                let waker = Waker::from(Arc::clone(events));
                let _ = drain.as_mut().poll(&mut Context::from_waker(&waker));
                // What changes from here on wakes the task.
                if connection.session.is_revoked(shared) {
                    return Poll::Ready(NextAction::Close);
                }
            }
            let now_waiting = connection.waiting();
            if shared.setup.drain.has_begun() && now_waiting == Waiting::Idle {
                // Bytes may have arrived since the last event. The yield lets the runtime
                // look, and they are answered.
                if !looked_again {
                    looked_again = true;
                    return Poll::Ready(NextAction::Turn);
                }
                return Poll::Ready(NextAction::Close);
            }
            let progress = connection.progress.take();
            if progress.is_some() || now_waiting != waiting {
                waiting = now_waiting;
                deadline = progress.unwrap_or_else(Instant::now) + connection.patience(waiting);
                if let Some(by) = connection.authenticate_by() {
                    deadline = deadline.min(by);
                }
                if let (Waiting::Request, Some(by)) = (waiting, connection.drained_by) {
                    deadline = deadline.min(by);
                }
                // A later deadline is set when the timer fires, which is rare.
                if deadline < timer.deadline() {
                    timer.as_mut().reset(deadline);
                    is_due = true;
                }
            }
            if is_due {
                let waker = Waker::from(Arc::clone(events));
                let mut context = Context::from_waker(&waker);
                while timer.as_mut().poll(&mut context).is_ready() {
                    if timer.deadline() >= deadline {
                        return Poll::Ready(NextAction::Drop);
                    }
                    timer.as_mut().reset(deadline);
                }
                is_due = false;
            }
            Poll::Pending
        });
        match next.await {
            NextAction::Input | NextAction::Turn => yield_now().await,
            // These futures are large, and rare.
            NextAction::Open(name) => Box::pin(connection.open(name)).await,
            NextAction::Delay => sleep(AUTH_DELAY).await,
            NextAction::Close => return Box::pin(connection.end()).await,
            NextAction::Drop => return,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    /// Flushes, reads and answers once. The next turn may follow `Input` at once.
    fn turn(&mut self, context: &mut Context<'_>) -> Poll<NextAction> {
        let turn = match ready!(self.flush(context)) {
            Ok(()) => ready!(Worker::with(self.shared, |worker| self.answer(context, worker))),
            Err(error) => Err(error),
        };
        // A client that has gone is not reported.
        Poll::Ready(turn.unwrap_or(NextAction::Drop))
    }

    fn answer(
        &mut self,
        context: &mut Context<'_>,
        worker: &mut Worker,
    ) -> Poll<io::Result<NextAction>> {
        let mut length = self.input.len();
        worker.input[..length].copy_from_slice(&self.input);
        let mut may_have_more = false;
        if self.needs_input {
            let most = match self.session.is_authenticated() {
                true => READ,
                false => UNAUTHENTICATED_BYTES,
            };
            let end = worker.input.len().min(length + most);
            let mut buffer = ReadBuf::new(&mut worker.input[length..end]);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            let read = buffer.filled().len();
            if read == 0 {
                return Poll::Ready(Ok(NextAction::Drop));
            }
            may_have_more = buffer.remaining() == 0;
            length += read;
        }
        spin::record_work();
        let (began, answered) = (Instant::now(), worker.context.answered());
        worker.output.clear();
        let input = &worker.input[..length];
        let (used, next) = self
            .session
            .turn(input, &mut worker.context, &mut worker.output);
        let has_progress = used > 0 || !worker.output.is_empty();
        if used > 0 && self.shared.setup.drain.has_begun() {
            self.drained_by
                .get_or_insert_with(|| Instant::now() + LINGER);
        }
        self.keep(&input[used..]);
        self.needs_input = next == NextAction::Input;
        match next {
            NextAction::Delay => self.output = worker.output.clone(),
            _ => self.write(context, &worker.output)?,
        }
        if has_progress {
            let now = Instant::now();
            self.progress = Some(now);
            let answered = worker.context.answered().wrapping_sub(answered);
            if answered > 0 {
                let duration = now - began + std::mem::take(&mut self.opening_time);
                worker.context.record_duration(duration, answered);
            }
        }
        if !self.account() {
            return Poll::Ready(Ok(self.refuse_memory()));
        }
        Poll::Ready(Ok(match next {
            NextAction::Input if may_have_more => NextAction::Turn,
            next => next,
        }))
    }

    /// Writes replies, and keeps what the socket does not accept.
    fn write(&mut self, context: &mut Context<'_>, replies: &[u8]) -> io::Result<()> {
        let mut rest = replies;
        while !rest.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Err(ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => rest = &rest[written..],
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => {
                    self.output = rest.to_vec();
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes what an earlier turn has left. Nothing is read or answered before that.
    fn flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.output.len() {
            let rest = &self.output[self.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        if !self.output.is_empty() {
            (self.output, self.written) = (Vec::new(), 0);
            self.progress = Some(Instant::now());
            self.account();
        }
        // TLS has a buffer of its own.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.is_flushing = flushed.is_pending();
        flushed
    }

    /// Counts the memory of the connection. Returns whether it may have it.
    fn account(&mut self) -> bool {
        let bytes = self.input.capacity() + self.output.capacity() + self.session.queued_bytes();
        let is_authenticated = self.session.is_authenticated();
        self.share.set(bytes, is_authenticated)
    }

    /// Ends a connection for which there is no memory, with an error if that can be sent.
    fn refuse_memory(&mut self) -> NextAction {
        if !self.output.is_empty() {
            return NextAction::Drop;
        }
        self.output = NO_MEMORY.to_vec();
        NextAction::Close
    }

    fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            self.input = Vec::new();
        } else {
            self.input.clear();
            self.input.extend_from_slice(rest);
        }
    }

    fn waiting(&self) -> Waiting {
        if !self.output.is_empty() || self.is_flushing {
            Waiting::Write
        } else if self.input.is_empty() {
            Waiting::Idle
        } else {
            Waiting::Request
        }
    }

    /// Until when the client has to authenticate, if it has to.
    fn authenticate_by(&mut self) -> Option<Instant> {
        if self.session.is_authenticated() {
            self.stranger_since = None;
            return None;
        }
        let since = self.stranger_since.get_or_insert_with(Instant::now);
        Some(*since + self.shared.setup.limits.request_time)
    }

    fn patience(&self, waiting: Waiting) -> Duration {
        let limits = &self.shared.setup.limits;
        match waiting {
            Waiting::Idle if self.session.is_authenticated() => limits.idle_time,
            Waiting::Idle => limits.idle_time.min(limits.request_time),
            Waiting::Request => limits.request_time,
            Waiting::Write => {
                let bytes = (self.output.len() - self.written) as u64;
                limits.request_time + Duration::from_secs(bytes / LEAST_BYTES_PER_SECOND)
            }
        }
    }

    /// Opens the namespace of the request in front. Replies before it are sent meanwhile.
    async fn open(&mut self, name: String) {
        let (shared, began) = (self.shared, Instant::now());
        let mut opening = spawn_blocking({
            let (shared, name) = (Arc::clone(shared), name.clone());
            move || match shared.setup.drain.has_begun() {
                true => Err(OpenError::Stopping),
                false => shared.setup.namespaces.open(&name).map(drop),
            }
        });
        let opened = poll_fn(|context| {
            // An error comes again in the next turn.
            let _ = self.flush(context);
            Pin::new(&mut opening).poll(context)
        });
        let failure = match timeout(shared.setup.limits.request_time, opened).await {
            Ok(Ok(Ok(()))) => None,
            Ok(Ok(Err(error))) => Some(Rejection::from(&error)),
            Ok(Err(_)) => Some(Rejection::CANNOT_OPEN),
            Err(_) => Some(Rejection::STILL_OPENING),
        };
        self.opening_time += began.elapsed();
        // One that no thread has begun is not needed any more.
        opening.abort();
        if let Some(failure) = failure {
            self.session.open_failed(name, failure);
        }
        self.needs_input = false;
        self.progress = Some(Instant::now());
    }

    /// Sends the last replies, ends the output, and waits for the client to close.
    async fn end(mut self) {
        self.input = Vec::new();
        let patience = self.patience(Waiting::Write);
        let sent = timeout(patience, poll_fn(|context| self.flush(context))).await;
        if let Ok(Ok(())) = sent {
            let _ = timeout(LINGER, linger(self.stream, LINGER)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream as Socket;
    use std::sync::mpsc;
    use std::thread::JoinHandle;

    use tokio::net::UnixStream;

    use super::*;
    use crate::access::Access;
    use crate::clients::Client;
    use crate::namespaces::Namespaces;
    use crate::namespaces::tests::generator;
    use crate::setup::Setup;

    const CLIENT: Client = Client::User(None);

    #[test]
    fn an_idle_connection_is_small() {
        let namespaces = Namespaces::new(Box::new(|_| Ok(generator())), 2);
        let shared = shared(namespaces, Access::open());
        let session = Session::new(1, String::new(), CLIENT, &shared);
        let share = shared.budget.share(CLIENT);
        let stream = tokio::io::empty();
        let served = serve(stream, session, share, &shared, watch::channel(false).1);
        let bytes = size_of_val(&served);
        assert!(bytes <= 2048, "{bytes}");
    }

    fn shared(namespaces: Namespaces, rights: Arc<Access>) -> Arc<Shared> {
        let mut setup = Setup::of(rights, namespaces);
        setup.limits.request_time = Duration::from_secs(3600);
        Arc::new(Shared::new(setup))
    }

    /// The server's socket and the client's, whose reads end in an error if nothing comes.
    fn pair() -> (Socket, Socket) {
        let (near, far) = Socket::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        (near, far)
    }

    /// Serves this socket until its end.
    fn serving(near: Socket, shared: Arc<Shared>) -> JoinHandle<()> {
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let stream = UnixStream::from_std(near).unwrap();
                let session = Session::new(1, String::new(), CLIENT, &shared);
                let share = shared.budget.share(CLIENT);
                let (_ends, draining) = watch::channel(false);
                serve(stream, session, share, &shared, draining).await;
            });
        })
    }

    #[test]
    fn a_client_over_the_budget_is_closed_with_an_error() {
        let namespaces = Namespaces::new(Box::new(|_| Ok(generator())), 2);
        let shared = shared(namespaces, Access::by_name());
        // Another connection of the same client has all of its half.
        let mut other = shared.budget.share(CLIENT);
        let half = (0..).find(|kib| !other.set(kib << 10, false)).unwrap() - 1;
        assert_eq!(half, 4 << 10);
        let part = [b"*1\r\n$900\r\n", &[b'x'; 800][..]].concat();
        let (near, mut far) = pair();
        let server = serving(near, Arc::clone(&shared));
        far.write_all(&part).unwrap();
        let mut reply = String::new();
        far.read_to_string(&mut reply).unwrap();
        let expected = "-ERR no memory for unfinished requests";
        assert!(reply.starts_with(expected), "{reply}");
        server.join().unwrap();
        // One that is authenticated has another budget.
        let (near, mut far) = pair();
        let server = serving(near, Arc::clone(&shared));
        far.write_all(b"AUTH take\r\n").unwrap();
        far.read_exact(&mut [0; 5]).unwrap();
        far.write_all(&part).unwrap();
        far.write_all(&[&[b'x'; 100][..], b"\r\nQUIT\r\n"].concat())
            .unwrap();
        let mut reply = String::new();
        far.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("-ERR unknown command"), "{reply}");
        server.join().unwrap();
    }

    #[test]
    fn replies_before_an_opening_are_sent_while_it_runs() {
        let (opens, is_opened) = mpsc::channel::<()>();
        let opened = std::sync::Mutex::new(is_opened);
        let build = move |name: &str| {
            if name == "slow" {
                let _ = opened.lock().unwrap().recv();
            }
            Ok(generator())
        };
        let shared = shared(Namespaces::new(Box::new(build), 2), Access::open());
        shared.setup.namespaces.open("made").unwrap();
        let (near, mut far) = pair();
        // The socket has room for 100 bytes of the replies only.
        let mut filled = 0;
        while let Ok(more) = (&near).write(&[b'x'; 100]) {
            filled += more;
        }
        far.read_exact(&mut [0; 100]).unwrap();
        far.write_all(b"LPOP made 2000\r\nINCR slow\r\nQUIT\r\n")
            .unwrap();
        let server = serving(near, shared);
        let mut read = vec![0; filled - 100 + "*2000\r\n".len() + 2_000 * 20];
        far.read_exact(&mut read).unwrap();
        assert!(read[filled - 100..].starts_with(b"*2000\r\n"));
        drop(opens);
        let mut rest = String::new();
        far.read_to_string(&mut rest).unwrap();
        assert!(
            rest.contains("\r\n:") && rest.ends_with("+OK\r\n"),
            "{rest}"
        );
        server.join().unwrap();
    }
}

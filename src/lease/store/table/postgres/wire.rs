//! One connection, driven from a thread that blocks.
//!
//! The driver is asynchronous, which is what bounds an operation: its future is
//! given up at the deadline, whatever the network does. It runs on a runtime of
//! its own, of this thread alone.

use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};
use std::thread;

use tokio::runtime::{self, Handle, Runtime};
use tokio::time::timeout_at;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::{AsyncMessage, Client, Connection, Error, Socket};

use super::guard::Guard;
use super::server::Server;
use super::tls::Connector;
use crate::lease::store::connect::deadline::Deadline;
use crate::lease::store::connect::tls::HAS_NO_TLS;
use crate::lease::store::table::failure::{Cause, Failure};
use crate::lease::store::table::session::one_of;

type Link = Connection<Socket, Guard>;

pub(super) struct Wire {
    client: Client,
    /// None once it has ended.
    link: Option<Link>,
    /// Why it has ended, where that is known.
    end: Option<Error>,
    /// The last warning that the server sent.
    warning: Option<DbError>,
    /// Dropped last, without waiting for anything.
    runtime: Background,
    deadline: Deadline,
}

impl Wire {
    /// Connects to one host after another, until one lets us in.
    pub(super) fn connect(server: &Server, deadline: Deadline) -> Result<Self, Failure> {
        let runtime = Background::new().map_err(Failure::not_done)?;
        let tls = Connector::new(&server.protection).map_err(Failure::NotDone)?;
        let hosts = server.hosts().map_err(Failure::not_done)?;
        let (client, link) = one_of(&hosts, deadline, |config, deadline| {
            let end = deadline.end().into();
            let connected =
                runtime.block_on(async { timeout_at(end, config.connect(tls.clone())).await });
            match connected.and_then(Result::ok) {
                Some(Ok(connected)) => Ok(connected),
                Some(Err(error)) if is_denial(&error) => Err(Failure::Denied(error.into())),
                Some(Err(error)) if says(&error, "server does not support TLS") => {
                    Err(Failure::not_done(HAS_NO_TLS))
                }
                Some(Err(error)) => Err(Failure::NotDone(error.into())),
                None => Err(Failure::not_done(deadline.missed())),
            }
        })?;
        Ok(Self {
            client,
            link: Some(link),
            end: None,
            warning: None,
            runtime,
            deadline,
        })
    }

    /// Sets the time by which the calls that follow must be answered.
    pub(super) fn start(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    /// Lets `work` use the connection until the deadline.
    pub(super) fn call<T>(&mut self, work: impl AsyncFnOnce(&Client) -> T) -> io::Result<T> {
        let Self {
            client,
            link,
            end,
            warning,
            runtime,
            deadline,
        } = self;
        *warning = None;
        let work = async {
            let mut work = pin!(work(client));
            let answer = poll_fn(|cx| {
                if let Poll::Ready(answer) = work.as_mut().poll(cx) {
                    return Poll::Ready(answer);
                }
                move_bytes(link, end, warning, cx);
                // The bytes that were read may have completed it, and so may the end of the
                // connection.
                work.as_mut().poll(cx)
            });
            timeout_at(deadline.end().into(), answer).await
        };
        let answer = runtime.block_on(work);
        answer.and_then(Result::ok).ok_or_else(|| deadline.missed())
    }

    /// A warning that came during the last call.
    pub(super) fn take_warning(&mut self) -> Option<DbError> {
        self.warning.take()
    }

    /// The cause of `error`: the reason why the connection was closed, where it is known.
    pub(super) fn explain(&mut self, error: Error) -> Cause {
        match self.end.take() {
            Some(end) if error.is_closed() => end.into(),
            _ => error.into(),
        }
    }
}

/// Whether a server that was reached let nobody in.
fn is_denial(error: &Error) -> bool {
    match error.code() {
        // Class 28: invalid authorization.
        Some(state) => state.code().starts_with("28"),
        // It asked for a password, and there was none.
        None => says(error, "password missing"),
    }
}

/// Whether the driver has this reason, for which it has no code.
fn says(error: &Error, reason: &str) -> bool {
    let source = error.source();
    source.is_some_and(|source| source.to_string() == reason)
}

/// Sends what is queued and reads what is there.
fn move_bytes(
    link: &mut Option<Link>,
    end: &mut Option<Error>,
    warning: &mut Option<DbError>,
    cx: &mut Context<'_>,
) {
    while let Some(open) = link {
        match open.poll_message(cx) {
            Poll::Pending => return,
            Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                if notice.parsed_severity() == Some(Severity::Warning) {
                    *warning = Some(notice);
                }
            }
            Poll::Ready(Some(Ok(_))) => {}
            // It must not be asked again, and answers all that wait when it goes.
            Poll::Ready(Some(Err(error))) => {
                *end = Some(error);
                *link = None;
            }
            Poll::Ready(None) => *link = None,
        }
    }
}

/// A runtime that can be dropped anywhere.
struct Background(Option<Runtime>);

impl Background {
    fn new() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(Some).map(Self)
    }

    /// None once it is being dropped.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.0.as_ref().map(|runtime| runtime.block_on(future))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Not the usual way: inside of another runtime that one panics, and
            // a name that is being looked up would hold it up.
            runtime.shutdown_background();
        }
    }
}

/// Runs `operation` where a runtime may block: on this thread, or on another if
/// this one is in the middle of running tasks.
pub(super) fn off_runtime<T: Send>(operation: impl FnOnce() -> T + Send) -> T {
    if Handle::try_current().is_err() {
        return operation();
    }
    thread::scope(|scope| match scope.spawn(operation).join() {
        Ok(answer) => answer,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

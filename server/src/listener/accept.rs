//! Accepting connections, on a tokio runtime.

use std::future::Future;
use std::io::{self, ErrorKind, Write as _};
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::Listener;
use crate::clients::Client;
use crate::log_limit::LogLimit;

/// How long accepting pauses after an error of the system, most often that the process has no
/// file descriptor left.
const PAUSE: Duration = Duration::from_millis(50);

/// A listener that is registered with a runtime.
pub(crate) struct Acceptor {
    socket: Socket,
    protocol: &'static str,
    /// A process can be short of file descriptors for hours, and tries many times a second.
    failures: LogLimit,
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection, its client, and its address on TCP.
pub(crate) type Accepted = (Stream, Client, Option<SocketAddr>);

impl Acceptor {
    /// Registers the listener with the current runtime. `protocol` is for the log.
    ///
    /// # Errors
    ///
    /// The listener can't be made non-blocking or registered.
    pub(crate) fn new(listener: Listener, protocol: &'static str) -> io::Result<Self> {
        let socket = match listener {
            Listener::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                Socket::Tcp(TcpListener::from_std(socket)?)
            }
            Listener::Unix(socket) => {
                socket.set_nonblocking(true)?;
                Socket::Unix(UnixListener::from_std(socket)?)
            }
        };
        Ok(Self {
            socket,
            protocol,
            failures: LogLimit::default(),
        })
    }

    /// The next connection; `None` once `end` is over. Failures are logged, and tried again.
    pub(crate) async fn next(
        &self,
        mut end: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<Accepted> {
        loop {
            let accepted = tokio::select! {
                biased;
                // Polled first: clients that reconnect at once would keep the listener open.
                () = end.as_mut() => return None,
                accepted = self.socket.accept() => accepted,
            };
            match accepted {
                Ok(accepted) => return Some(accepted),
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    if let Some(suppressed) = self.failures.permit("accept") {
                        tracing::warn!(
                            protocol = self.protocol,
                            %error,
                            suppressed,
                            "can't accept connections; retrying"
                        );
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

impl Socket {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(socket) => {
                let (stream, address) = socket.accept().await?;
                // Answers are whole when they are written. Without it they are only slower.
                let _ = stream.set_nodelay(true);
                Ok((Stream::Tcp(stream), address.ip().into(), Some(address)))
            }
            Self::Unix(socket) => {
                let (stream, _) = socket.accept().await?;
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                Ok((Stream::Unix(stream), Client::User(user), None))
            }
        }
    }
}

impl Stream {
    /// Closes the connection after an `answer` that is short enough for any socket's buffer.
    /// With TLS the client could not read it, and gets none.
    pub(crate) fn turn_away(self, has_tls: bool, answer: &[u8]) {
        // Best effort, without waiting. `try_write` would wait for an event of the runtime.
        let _ = match self {
            Self::Tcp(_) if has_tls => Ok(0),
            Self::Tcp(stream) => stream.into_std().and_then(|mut it| it.write(answer)),
            Self::Unix(stream) => stream.into_std().and_then(|mut it| it.write(answer)),
        };
    }
}

/// Whether only the connection that came is lost.
fn is_of_connection(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_one_connection_meets_is_no_failure_of_the_listener() {
        for (kind, is_one) in [
            (ErrorKind::ConnectionAborted, true),
            (ErrorKind::ConnectionRefused, true),
            (ErrorKind::ConnectionReset, true),
            (ErrorKind::Interrupted, true),
            (ErrorKind::OutOfMemory, false),
            (ErrorKind::Other, false),
        ] {
            assert_eq!(is_of_connection(&kind.into()), is_one, "{kind}");
        }
    }
}

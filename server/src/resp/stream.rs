//! A client's socket.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use mio::event::Source;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A socket that does not block, with TLS or without.
pub(super) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    /// Its buffers are much larger than the others, which this keeps small.
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    pub(super) fn tls(socket: TcpStream, config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        let mut connection = ServerConnection::new(config)?;
        // What is written is bounded by a turn, and the rest waits outside.
        connection.set_buffer_limit(None);
        Ok(Self::Tls(Box::new(StreamOwned::new(connection, socket))))
    }

    /// Whether fewer bytes than there was room for are all that there are for now.
    pub(super) fn short_read_is_all(&self) -> bool {
        cfg!(unix) && !matches!(self, Self::Tls(_))
    }

    /// Whether bytes that were written are still here.
    pub(super) fn holds_output(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.conn.wants_write())
    }

    pub(super) fn is_handshaking(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.conn.is_handshaking())
    }

    /// No more will be written.
    pub(super) fn end_output(&mut self) {
        // The socket is closed soon in any case.
        let _ = match self {
            Self::Tcp(socket) => socket.shutdown(Shutdown::Write),
            #[cfg(unix)]
            Self::Unix(socket) => socket.shutdown(Shutdown::Write),
            Self::Tls(tls) => {
                tls.conn.send_close_notify();
                let _ = tls.flush();
                tls.sock.shutdown(Shutdown::Write)
            }
        };
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(socket) => socket,
            #[cfg(unix)]
            Self::Unix(socket) => socket,
            Self::Tls(tls) => &mut tls.sock,
        }
    }
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, for_: Interest) -> io::Result<()> {
        self.source().register(registry, token, for_)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, for_: Interest) -> io::Result<()> {
        self.source().reregister(registry, token, for_)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.source().deregister(registry)
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(into),
            #[cfg(unix)]
            Self::Unix(socket) => socket.read(into),
            Self::Tls(tls) => match tls.read(into) {
                // Closed without TLS's own goodbye. Requests have ends of their own.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            #[cfg(unix)]
            Self::Unix(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(tls) => tls.flush(),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tcp(_) => "Tcp",
            #[cfg(unix)]
            Self::Unix(_) => "Unix",
            Self::Tls(_) => "Tls",
        })
    }
}

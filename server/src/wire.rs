//! A client of tests, which sends what a test wants and keeps what comes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use crate::tls;

/// A hang becomes a failure after this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

pub(crate) struct Wire<S = TcpStream> {
    pub(crate) stream: S,
    /// Bytes that were read and belong to what comes next.
    pub(crate) rest: Vec<u8>,
}

/// A client with TLS.
pub(crate) type TlsWire = Wire<StreamOwned<ClientConnection, TcpStream>>;

impl Wire {
    pub(crate) fn connect(to: SocketAddr) -> Self {
        Self::tcp(TcpStream::connect(to).unwrap())
    }

    pub(crate) fn tcp(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self::new(stream)
    }

    /// The same with TLS, for [`tls::testing::server`]. The handshake begins with the first bytes
    /// that are sent. What is sent at once is a record of its own.
    pub(crate) fn with_tls(self) -> TlsWire {
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(tls::testing::client(), name).unwrap();
        Wire::new(StreamOwned::new(session, self.stream))
    }
}

impl Wire<UnixStream> {
    pub(crate) fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::new(stream)
    }
}

impl<S: Stream> Wire<S> {
    pub(crate) fn new(stream: S) -> Self {
        let rest = Vec::new();
        Self { stream, rest }
    }

    /// A client whose kind of socket does not matter.
    pub(crate) fn boxed(self) -> Wire<Box<dyn Stream>>
    where
        S: 'static,
    {
        Wire::new(Box::new(self.stream))
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap();
    }

    /// The same, with an error if the server has closed the connection.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())?;
        self.stream.flush()
    }

    /// Reads more; false at the end. A reset is an end, too.
    pub(crate) fn more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.rest.extend_from_slice(&buffer[..count]);
                Ok(count > 0)
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All that comes before the server closes.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        while self.more().unwrap() {}
        std::mem::take(&mut self.rest)
    }

    /// Asserts that the server closes the connection and sends nothing more.
    #[track_caller]
    pub(crate) fn assert_closed(&mut self) {
        let rest = self.read_to_end();
        assert!(rest.is_empty(), "{}", rest.escape_ascii());
    }
}

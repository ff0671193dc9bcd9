//! How long a connection waits for an answer.

use std::io;
use std::time::Duration;

use mysql::Conn;

/// Lets the connection wait for each answer for so long, and no less than a millisecond.
///
/// The driver sets that once, when it connects. On systems that are no Unix it does not
/// show its socket, and what it set stays.
#[cfg(unix)]
pub(super) fn wait_for(connection: &Conn, patience: Duration) -> io::Result<()> {
    use std::mem::ManuallyDrop;
    use std::net::TcpStream;
    use std::os::fd::{AsRawFd, FromRawFd};

    let socket = connection.as_raw_fd();
    // SAFETY: the connection is borrowed, so its socket stays open, and is not closed
    // here. The one call below sets an option, which every kind of socket has.
    let socket = ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(socket) });
    socket.set_read_timeout(Some(patience.max(Duration::from_millis(1))))
}

#[cfg(not(unix))]
pub(super) fn wait_for(_connection: &Conn, _patience: Duration) -> io::Result<()> {
    Ok(())
}

//! A socket that clients connect to.

use std::net::TcpListener;
#[cfg(unix)]
use std::os::unix::net::UnixListener;

/// A socket that is bound and listens. Whether it blocks is up to who accepts.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

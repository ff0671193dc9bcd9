//! Sockets that clients connect to: how they are bound, and taken away.

mod accept;
mod unix;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use socket2::{Domain, Socket, Type};

pub(crate) use self::accept::{Acceptor, Stream};
pub(crate) use self::unix::SocketFile;

/// A socket that is bound and listens. Whether it blocks is up to who accepts.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket, by its path; empty where it has none.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Connections that wait to be accepted; the system has a limit of its own.
const BACKLOG: i32 = 1024;

impl Listener {
    /// Binds a TCP socket. With `dual_stack`, one of IPv6 also accepts IPv4 where the system can.
    pub(crate) fn bind(address: SocketAddr, dual_stack: bool) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        // The same address means the same, whatever the system's default is.
        if address.is_ipv6() && !(dual_stack && socket.set_only_v6(false).is_ok()) {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(Self::Tcp(socket.into()))
    }

    /// Sees that a socket which somebody else has bound listens, where the system says that.
    ///
    /// # Errors
    /// It does not, such as one connection that a service manager has accepted itself.
    pub(crate) fn check_listens(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let listens = match self {
                Self::Tcp(listener) => rustix::net::sockopt::socket_acceptconn(listener),
                Self::Unix(listener) => rustix::net::sockopt::socket_acceptconn(listener),
            };
            if !listens? {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the socket that was handed over is not one that listens: say Accept=no in \
                     its unit, and hand over what is bound and listens",
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Self::Unix(listener) => {
                let address = listener.local_addr()?;
                let path = address.as_pathname().unwrap_or("".as_ref());
                Ok(Address::Unix(path.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dual_stack_socket_accepts_ipv4() {
        let wildcard = "[::]:0".parse().unwrap();
        for dual_stack in [false, true] {
            let bound = Listener::bind(wildcard, dual_stack);
            if !ringflake_kit::has(bound.is_ok(), "this machine has no IPv6") {
                return;
            }
            let listener = bound.unwrap();
            let Address::Tcp(address) = listener.address().unwrap() else {
                panic!("{listener:?}")
            };
            let connect = |host| std::net::TcpStream::connect((host, address.port()));
            connect("::1").unwrap();
            assert_eq!(connect("127.0.0.1").is_ok(), dual_stack);
        }
    }

    #[test]
    fn a_port_is_bound_once() {
        let first = Listener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let Address::Tcp(address) = first.address().unwrap() else {
            panic!("{first:?}")
        };
        std::net::TcpStream::connect(address).unwrap();
        let error = Listener::bind(address, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}

//! Why a server did not start.

use std::error::Error;
use std::fmt;
use std::io;

use ringflake::LocalError;

use crate::config::{ConfigError, Protocol};
use crate::listener::Address;
use crate::namespaces::OpenError;
use crate::wording::ForOperators;

/// Why a server did not start. Its sockets are closed, and its leases given back.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration, or a file that it names.
    Config(ConfigError),
    /// A socket could not be bound.
    Bind {
        /// The protocol of the socket.
        protocol: Protocol,
        /// Where.
        address: Address,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The data directory can't be used.
    DataDir(LocalError),
    /// A namespace of the configuration could not be opened.
    Namespace {
        /// Its name.
        name: String,
        /// The reason.
        source: OpenError,
    },
    /// The threads of a front could not be started.
    Front {
        /// Which one.
        protocol: Protocol,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl From<ConfigError> for StartError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Bind {
                protocol,
                address,
                source,
            } => {
                write!(f, "{protocol} can't listen on {address}")?;
                match source.kind() {
                    io::ErrorKind::AddrInUse => in_use(f, *protocol, address),
                    io::ErrorKind::PermissionDenied => f.write_str(
                        ": ports below 1024 are root's, and sockets need a directory that this \
                         user may write; choose another, or have the service manager bind it",
                    ),
                    _ => Ok(()),
                }
            }
            Self::DataDir(error) => ForOperators(error).fmt(f),
            Self::Namespace { name, .. } => write!(f, "namespace {name:?} can't be opened"),
            Self::Front { protocol, .. } => {
                write!(f, "the threads of {protocol} can't be started")
            }
        }
    }
}

/// The likely holder of the address, and the way out.
fn in_use(f: &mut fmt::Formatter<'_>, protocol: Protocol, address: &Address) -> fmt::Result {
    let Address::Tcp(address) = address else {
        return f.write_str(": another server listens there; stop it, or choose another path");
    };
    match protocol {
        Protocol::Resp if address.port() == 6379 => f.write_str(
            ": it is in use, maybe by a Redis; choose another port with --resp 127.0.0.1:6380, or \
             none with --resp off",
        ),
        _ => {
            let mut next = *address;
            next.set_port(address.port().checked_add(1).unwrap_or(1024));
            write!(
                f,
                ": it is in use, maybe by another server; choose another port, as --{protocol} \
                 {next}, or none with --{protocol} off"
            )
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // These print the error they hold, so the source is that error's source.
            Self::Config(error) => error.source(),
            Self::DataDir(error) => error.source(),
            Self::Bind { source, .. } | Self::Front { source, .. } => Some(source),
            Self::Namespace { source, .. } => Some(source),
        }
    }
}

//! Why a server did not start.

use std::error::Error;
use std::fmt;
use std::io;

use ringflake::{LocalError, shell_quoted as quoted};

use crate::config::{ConfigError, Protocol};
use crate::listener::Address;
use crate::namespaces::OpenError;
use crate::wording::help_of_local;

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
    /// The threads of a protocol could not be started.
    Workers {
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
                    io::ErrorKind::AddrInUse => f.write_str(", which is in use"),
                    _ => Ok(()),
                }
            }
            Self::DataDir(error) => error.fmt(f),
            Self::Namespace { name, .. } => write!(f, "namespace {name:?} can't be opened"),
            Self::Workers { protocol, .. } => {
                write!(f, "the threads of {protocol} can't be started")
            }
        }
    }
}

impl StartError {
    /// Why it matters, in one sentence; none where the first line says all.
    pub fn note(&self) -> Option<&'static str> {
        match self {
            Self::DataDir(error) => error.note(),
            Self::Namespace { source, .. } => source.note(),
            _ => None,
        }
    }

    /// What an operator can do about it; none where the first line says it. Allocates.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Config(error) => error.help(),
            Self::Bind {
                protocol,
                address,
                source,
            } => match source.kind() {
                io::ErrorKind::AddrInUse => Some(in_use(*protocol, address)),
                io::ErrorKind::PermissionDenied => Some(
                    "choose a port from 1024 on, or a socket in a directory that this user may \
                     write, or let the service manager bind it"
                        .to_owned(),
                ),
                io::ErrorKind::NotFound => missing_directory(address),
                _ => None,
            },
            Self::DataDir(error) => help_of_local(error, None),
            Self::Namespace { source, .. } => source.help(),
            Self::Workers { .. } => None,
        }
    }
}

/// What to do about a socket whose directory does not exist.
fn missing_directory(address: &Address) -> Option<String> {
    let Address::Unix(path) = address else {
        return None;
    };
    let directory = quoted(path.parent()?.display());
    Some(format!(
        "create its directory for the user of the server: 'mkdir -p {directory}'"
    ))
}

/// What to do about an address that another program has.
fn in_use(protocol: Protocol, address: &Address) -> String {
    let Address::Tcp(address) = address else {
        return "stop the server that listens there, or choose another path".to_owned();
    };
    if protocol == Protocol::Resp && address.port() == 6379 {
        return "a Redis may listen there: choose another port with --resp 127.0.0.1:6380, or none \
                with --resp off"
            .to_owned();
    }
    let mut next = *address;
    next.set_port(address.port().checked_add(1).unwrap_or(1024));
    format!("choose another port, such as --{protocol} {next}, or none with --{protocol} off")
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // These print the error they hold, so the source is that error's source.
            Self::Config(error) => error.source(),
            Self::DataDir(error) => error.source(),
            Self::Bind { source, .. } | Self::Workers { source, .. } => Some(source),
            Self::Namespace { source, .. } => Some(source),
        }
    }
}

//! Why a configuration is refused.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why a configuration is refused. Nothing was bound and no lease was taken. It holds no
/// secret and no URL.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's answer, or what is wrong with the file's rights.
        source: io::Error,
    },
    /// A file is no TOML, or has a key or a value that is none.
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The fault, and the values that are allowed.
        reason: String,
    },
    /// A value is out of its range, or two contradict each other.
    Value {
        /// The key of a file or the variable.
        key: String,
        /// The fault, and the values that are allowed.
        reason: String,
    },
    /// A file does not hold what it has to.
    Content {
        /// The file.
        path: PathBuf,
        /// The fault, and the content that is allowed. Quotes nothing from the file.
        reason: String,
    },
    /// Everybody on the network could take IDs, or read along.
    OpenToTheNetwork {
        /// An address that is not loopback.
        address: SocketAddr,
        /// Whether there is a token for taking IDs.
        has_token: bool,
        /// Whether there is a certificate.
        has_tls: bool,
    },
    /// There is no socket to listen on.
    NoSocket,
}

impl ConfigError {
    pub(crate) fn value(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Value {
            key: key.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn content(path: &Path, reason: impl Into<String>) -> Self {
        let (path, reason) = (path.to_owned(), reason.into());
        Self::Content { path, reason }
    }

    pub(crate) fn unreadable(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Unreadable { path, source }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, .. } => write!(f, "{} can't be read", path.display()),
            Self::Syntax { path, line, reason } => {
                write!(f, "{}, line {line}: {reason}", path.display())
            }
            Self::Value { key, reason } => write!(f, "{key}: {reason}"),
            Self::Content { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::OpenToTheNetwork {
                address,
                has_token,
                has_tls,
            } => {
                let missing = match (has_token, has_tls) {
                    (false, false) => "tokens and TLS",
                    (false, true) => "tokens",
                    _ => "TLS",
                };
                write!(f, "{address} is open to the network without {missing}")
            }
            Self::NoSocket => f.write_str("no socket to listen on was given"),
        }
    }
}

impl ConfigError {
    /// What an operator can do about it; none where the first line says it. Allocates.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::OpenToTheNetwork {
                has_token, has_tls, ..
            } => {
                let missing = match (has_token, has_tls) {
                    (false, false) => "a take token (tokens.take) and a certificate (tls)",
                    (false, true) => "a take token (tokens.take)",
                    _ => "a certificate (tls) that protects tokens in transit",
                };
                Some(format!(
                    "give {missing}, listen on 127.0.0.1 or a Unix socket, or accept the risk with \
                     --open-to-the-network-without-tokens-or-tls"
                ))
            }
            Self::NoSocket => Some(
                "give an address for the Redis protocol (resp.listen) or HTTP (http.listen), or a \
                 Unix socket (resp.unix, http.unix)"
                    .to_owned(),
            ),
            Self::Unreadable { .. }
            | Self::Syntax { .. }
            | Self::Value { .. }
            | Self::Content { .. } => None,
        }
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}

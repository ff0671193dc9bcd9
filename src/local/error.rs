//! The errors of a local ID space.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::cipher::{IdWidth, SecretError};
use crate::lease::{Namespace, NamespaceError, OpenError, StoreError};

/// Why an ID space of this machine can't be used. No ID was issued from it.
#[derive(Debug)]
#[non_exhaustive]
pub enum LocalError {
    /// The name is none of a namespace. Nothing was made.
    Name(NamespaceError),
    /// The name is too long: a suffix must fit as well. Nothing was made.
    NameLength {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The name ends in `-plain`, as those of plain IDs do. Nothing was made.
    ReservedName {
        /// The name.
        name: String,
    },
    /// The platform knows no home directory, and no other one was given.
    NoHome,
    /// The directory can't be made, or a file in it can't be used.
    Directory {
        /// The directory or the file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The path of the directory is none in which a file can be.
    Place(OpenError),
    /// A secret can't be read, or none can be drawn.
    Secret(SecretError),
    /// A secret can't be written.
    SecretFile {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// There is no secret, and none was to be made.
    NoSecret {
        /// The namespace's name.
        namespace: String,
        /// Where its secret would be.
        path: PathBuf,
    },
    /// The namespace is on record, but its secret is gone.
    SecretLost {
        /// The namespace's name.
        namespace: String,
        /// Where its secret was.
        path: PathBuf,
    },
    /// The namespace was made with another secret than the one that is there now.
    OtherSecret {
        /// The namespace's name.
        namespace: String,
        /// The file of its secret.
        path: PathBuf,
    },
    /// The namespace has the secret, and was made for IDs of another width.
    OtherWidth {
        /// The namespace's name.
        namespace: String,
        /// The width on record.
        recorded: IdWidth,
        /// The width that was asked for.
        given: IdWidth,
    },
    /// The secret was not drawn in this directory, and has no record there: others may
    /// be making IDs with it. Or it was given to a store. No secret and no record were
    /// made.
    SecretBrought {
        /// The file of a named space's secret; none for one that was given.
        path: Option<PathBuf>,
        /// The directory.
        directory: PathBuf,
    },
    /// IDs are made with the secret from this directory, and so can't be made with it
    /// under leases from elsewhere.
    SecretUsed {
        /// The namespace that has it.
        namespace: String,
        /// The directory.
        directory: PathBuf,
    },
    /// A secret was given beside a space that keeps its own.
    SecretGiven,
    /// The directory is a copy, and IDs may have been made from the original.
    Copied {
        /// The directory.
        directory: PathBuf,
    },
    /// An error of the store of leases.
    Store(StoreError),
}

impl From<StoreError> for LocalError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for LocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::NameLength { bytes } => write!(
                f,
                "the namespace's name has {bytes} bytes: give 1 to {}",
                Namespace::MAX_NAME - "-plain".len()
            ),
            Self::ReservedName { name } => write!(
                f,
                "the namespace's name {name:?} ends in -plain, as those of plain IDs do: leave \
                 that away and choose plain IDs, or take another name"
            ),
            Self::NoHome => f.write_str(
                "there is no home directory to keep leases and secrets in: name a directory \
                 with RINGFLAKE_DATA_DIR, or in the program",
            ),
            Self::Directory { path, .. } => write!(
                f,
                "{} can't be made or used to keep processes apart: see that this user may \
                 write there, or name another directory with RINGFLAKE_DATA_DIR",
                path.display()
            ),
            Self::Place(error) => error.fmt(f),
            Self::Secret(error) => error.fmt(f),
            Self::SecretFile { path, .. } => write!(
                f,
                "the secret can't be written to {}: see that this user may write there, and \
                 that the disk has room",
                path.display()
            ),
            Self::NoSecret { namespace, path } => write!(
                f,
                "namespace {namespace:?} has no secret yet in {}: the first program that makes \
                 IDs in it makes one; to read IDs, name the directory that they were made in",
                path.display()
            ),
            Self::SecretLost { namespace, path } => write!(
                f,
                "namespace {namespace:?} was used before, and its secret {} is gone: put it \
                 back from a backup, or take another name",
                path.display()
            ),
            Self::OtherSecret { namespace, path } => write!(
                f,
                "namespace {namespace:?} was made with another secret than the one that is now \
                 in {}: put the first one back, or take another name",
                path.display()
            ),
            Self::OtherWidth {
                namespace,
                recorded,
                given,
            } => write!(
                f,
                "namespace {namespace:?} was made for IDs of {} bits ({recorded}), not of {} \
                 ({given}), and with one secret IDs of both would come twice: choose \
                 `id_width(IdWidth::{recorded:?})`, or another name, which has a secret of its own",
                recorded.bits(),
                given.bits()
            ),
            Self::SecretBrought { path, directory } => {
                match path {
                    Some(path) => write!(f, "the secret {}", path.display()),
                    None => f.write_str("the secret that is given"),
                }?;
                write!(
                    f,
                    " was not made in {}, or was given to a store since, and IDs may be made \
                     with it elsewhere: where they are, share a store with `lease_store`; where \
                     nobody else has it, say so once, with `LocalSpace::init`: `History::New` if no \
                     ID was ever made with it, and else `History::Unknown`",
                    directory.display()
                )
            }
            Self::SecretUsed {
                namespace,
                directory,
            } => write!(
                f,
                "IDs are made with this secret from leases.db in {} (namespace {namespace}), and \
                 with leases from elsewhere as well they would come twice: use another secret \
                 there",
                directory.display()
            ),
            Self::SecretGiven => f.write_str(
                "a local namespace has a secret of its own: leave `secret` out, or use it with \
                 `lease_store`",
            ),
            Self::Copied { directory } => write!(
                f,
                "{} is a copy, and IDs may have been made from the original: go back to that, \
                 or, if nobody can use it any more, adopt this one: raise the floor of one of its \
                 namespaces over lost grants",
                directory.display()
            ),
            Self::Store(StoreError::NotDurable { store, reason }) => write!(
                f,
                "{store} can lose what it has confirmed, and then IDs come twice: {reason}; name \
                 a directory on a local disk with RINGFLAKE_DATA_DIR, or accept the risk with \
                 `Local::accept_best_effort`"
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for LocalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // These print the error they hold, so the source is that error's
            // source.
            Self::Name(error) => error.source(),
            Self::Place(error) => error.source(),
            Self::Secret(error) => error.source(),
            Self::Store(error) => error.source(),
            Self::Directory { source, .. } | Self::SecretFile { source, .. } => Some(source),
            _ => None,
        }
    }
}

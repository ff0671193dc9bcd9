//! The errors of a local ID space.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use crate::cipher::{IdWidth, SecretError};
use crate::describe::describe;
use crate::lease::{Namespace, NamespaceError, OpenError, StoreError};

/// Why an ID space of this machine can't be used. No ID was issued from it. `Display` says
/// what is wrong, in one line; [`note`](Self::note) says why it matters, and
/// [`help`](Self::help) what to do.
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

describe! {
    LocalError,
    /// Why it matters, in one sentence; none where the first line says all.
    ///
    /// Names no item of this crate, so that an operator can read it. Costs no allocation.
    note,
    /// What to do about it, in one sentence; none where the first line says it.
    ///
    /// Names no item of this crate and no command, so that each program can add its own.
    /// Costs no allocation.
    help;

    Self::Name(error) => "{error}";
    Self::NameLength { bytes } => (
        "the namespace's name must have 1 to {} bytes, got {bytes}",
        Namespace::MAX_NAME - "-plain".len());
    Self::ReservedName { name } =>
        "the namespace's name {name:?} ends in -plain, which is reserved for plain IDs",
        help: "leave the ending out, and ask for plain IDs by the option; or use another name";
    Self::NoHome => "this user has no home directory for leases and secrets",
        help: "set RINGFLAKE_DATA_DIR to a directory";
    Self::Directory { path, source } if source.kind() == io::ErrorKind::TimedOut => (
        "{} can't be created, written or locked", path.display()),
        help: "let that process go on or end it, and try again";
    Self::Directory { path, .. } => ("{} can't be created, written or locked", path.display()),
        help: "run as the user that it belongs to, and check that its disk is writable and has \
               free space; only if it does not exist yet, set RINGFLAKE_DATA_DIR to another \
               directory, whose IDs can equal those of any other";
    Self::Place(error) => "{error}";
    Self::Secret(error) => "{error}";
    Self::SecretFile { path, .. } => ("the secret can't be written to {}", path.display()),
        help: "run as the user that its directory belongs to, and check that the disk is writable \
               and has free space";
    Self::NoSecret { namespace, path } => (
        "namespace {namespace:?} has no secret yet: {} does not exist", path.display()),
        help: "the first program that issues IDs there creates it; to read IDs, use the directory \
               that they were issued from";
    Self::SecretLost { namespace, path } => (
        "the secret of namespace {namespace:?}, {}, is missing", path.display()),
        note: "without it nobody can read the IDs issued so far",
        help: "restore it from a backup, or use another name, and keep its IDs apart from the old \
               ones";
    Self::OtherSecret { namespace, path } => (
        "namespace {namespace:?} was created with another secret than the one in {}",
        path.display()),
        help: "restore the first secret, or use another name, and keep its IDs apart from the old \
               ones";
    Self::OtherWidth { namespace, recorded, given } => (
        "namespace {namespace:?} was created for IDs of {} bits ({recorded}), not {} ({given})",
        recorded.bits(), given.bits()),
        note: "IDs of two widths under one secret can be the same",
        help: "use the width that it was created for; or another name, which has its own secret, \
               and keep its IDs apart from the old ones";
    Self::SecretBrought { path, directory } => (
        "the {} has no history in {}",
        path.as_ref().map_or("given secret".into(), |path| format!("secret {}", path.display())),
        directory.display()),
        note: "IDs may already have been issued with it somewhere else; a fresh history here could \
               repeat them",
        help: "if other programs use the secret with a store, use that store; if all of them have \
               stopped for good, and the clock is right, initialise a namespace here once with its \
               history unknown, and with the horizon and failover time of that store, at least 11 \
               minutes and 1 minute; as new only if no ID with a present or future time was issued with the secret";
    Self::SecretUsed { namespace, directory } => (
        "namespace {namespace:?} in {} already issues IDs with this secret", directory.display()),
        note: "with leases from elsewhere as well, IDs would be issued twice",
        help: "use another secret for the store";
    Self::SecretGiven => "a secret was given for a local namespace, which has its own",
        help: "leave the secret out, or use it with a store";
    Self::Copied { directory } => ("{} is a copy of another directory", directory.display()),
        note: "IDs may have been issued from the original after it was copied",
        help: "go back to the original; if nobody can use it any more, and the clock is right, \
               adopt this copy by raising the floor over lost grants, for all its namespaces";
    Self::Store(error @ StoreError::NotDurable { .. }) => "{error}",
        note: via error,
        help: "set RINGFLAKE_DATA_DIR to a directory on a local disk, or accept the risk \
               explicitly";
    Self::Store(error) => via error;
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

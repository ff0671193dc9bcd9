//! Where the file is, and whether it may be there.

use std::fs::{File, OpenOptions as FileOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::system;
use super::{filesystem, identity};
use crate::lease::error::StoreError;
use crate::lease::store::connect::durability::DurabilityGate;
use crate::lease::store::options::{OpenError, OpenOptions};
use crate::lease::store::report::Durability;

/// The path of the file, and whether the place keeps files.
#[derive(Debug)]
pub(super) struct Location {
    /// Absolute, so that it never reads as a URI or as one of SQLite's special
    /// names, and stays the same when the process changes its directory.
    path: PathBuf,
    /// Of the store, by the name that it has in errors and reports.
    gate: DurabilityGate,
}

impl Location {
    /// The file at `path`, relative to the directory that the process is in. `scheme` is that of
    /// the store's URL.
    pub(super) fn new(scheme: &str, path: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
        if path == Path::new(":memory:") {
            return Err(invalid(
                "a database in memory is lost with its process: give a path, or use the \
                 memory store",
            ));
        }
        let name = path.as_os_str().as_encoded_bytes();
        if path.file_name().is_none() || name.contains(&0) || name.ends_with(b"/") {
            return Err(invalid(
                "the path names no file: give one, such as sqlite:leases.db or \
                 sqlite:///var/lib/app/leases.db",
            ));
        }
        let path = std::path::absolute(path)
            .map_err(|error| invalid(format!("the path can't be made absolute: {error}")))?;
        let name = format!("{scheme}:{}", path.display());
        Ok(Self {
            path,
            gate: DurabilityGate::new(name, options.accepts_best_effort()),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The store's name in errors and reports.
    pub(super) fn name(&self) -> &str {
        self.gate.store()
    }

    /// Sees that the file is there, and in a place that keeps it; answers how well. None
    /// if there is no file.
    pub(super) fn find(&mut self) -> Result<Option<Durability>, StoreError> {
        match self.path.metadata() {
            Ok(found) if found.is_file() => self.judge(&self.path.clone()).map(Some),
            Ok(_) => Err(StoreError::unavailable(format!(
                "{} is not a file: give the path of one",
                self.path.display()
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.find_directory()?;
                Ok(None)
            }
            Err(error) => Err(failed(&self.path, &error)),
        }
    }

    /// Makes the file, without any content, unless it exists. Its name is durable
    /// when this returns.
    pub(super) fn create(&mut self) -> Result<(), StoreError> {
        self.admit()?;
        create_file(&self.path).map_err(|error| failed(&self.path, &error))
    }

    /// Sees that the directory is there, and keeps files; answers how well.
    pub(super) fn admit(&mut self) -> Result<Durability, StoreError> {
        let directory = self.find_directory()?.to_owned();
        self.judge(&directory)
    }

    fn find_directory(&self) -> Result<&Path, StoreError> {
        let directory = self.path.parent().unwrap_or(&self.path);
        match directory.metadata() {
            Ok(found) if found.is_dir() => Ok(directory),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(directory, &error)),
            _ => Err(StoreError::unavailable(format!(
                "there is no directory {}: make it, or mount what holds it",
                directory.display()
            ))),
        }
    }

    /// Refuses a place that does not keep files, unless that was accepted.
    fn judge(&mut self, path: &Path) -> Result<Durability, StoreError> {
        let objection = filesystem::objection(path).map_err(|error| failed(path, &error))?;
        let durability = Durability::of(objection.as_deref());
        match self.gate.refusal(objection.as_slice()) {
            None => Ok(durability),
            Some(reason) => Err(StoreError::NotDurable {
                store: self.name().to_owned(),
                reason,
            }),
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> StoreError {
    StoreError::unavailable(identity::at(path, error))
}

/// Makes an empty file for its owner alone, unless it exists. Its name is durable when this
/// returns.
pub(crate) fn create_file(path: &Path) -> io::Result<()> {
    if !path.exists() {
        refuse_foreign(path)?;
    }
    match private_file().create_new(true).open(path) {
        // To close it would drop the locks of another thread that has opened the file since.
        // Lost is one descriptor, once in a file's life.
        Ok(file) => std::mem::forget(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    sync(path.parent().unwrap_or(path))
}

/// To read and write a file that, if it is made, is its owner's alone.
pub(crate) fn private_file() -> FileOptions {
    let mut options = FileOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Refuses to let root make this file or directory in a place of another user, whom it would
/// lock out.
pub fn refuse_foreign(path: &Path) -> io::Result<()> {
    let mut ancestors = path.ancestors().skip(1);
    let Some(place) = ancestors.find(|place| place.exists()) else {
        return Ok(());
    };
    match system::owner_if_not_ours(&place.metadata()?) {
        None => Ok(()),
        Some(owner) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} belongs to user {owner}, and root would make {} there, which that user could \
                 not open: run the same command as that user, with sudo -E -u '#{owner}'",
                place.display(),
                path.display()
            ),
        )),
    }
}

/// Makes the names in `directory` durable, where the system can do that.
pub(crate) fn sync(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

fn invalid(reason: impl Into<String>) -> OpenError {
    OpenError::Invalid {
        scheme: "sqlite",
        reason: reason.into(),
    }
}

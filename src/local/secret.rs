//! Secrets that a data directory keeps.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use super::error::LocalError;
use crate::cipher::{Secret, SecretError};
use crate::lease::Fingerprint;
use crate::lease::past::Lock;
use crate::lease::{refuse_foreign, sync};

pub(super) fn read(path: &Path) -> Result<Option<Secret>, LocalError> {
    match Secret::from_file(path) {
        Ok(secret) => Ok(Some(secret)),
        Err(SecretError::FileUnreadable { source, .. })
            if source.kind() == io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        Err(error) => Err(LocalError::Secret(error)),
    }
}

/// The mark of a secret that was drawn here. It reveals nothing of the secret.
pub(super) fn mark(secret: &Secret) -> String {
    Fingerprint::of(secret).to_string()
}

/// Puts a new secret into this file, unless there is one, and its mark into the
/// note; answers whether it did.
///
/// The mark is there first. The file is complete by the time it has its name, and on
/// the disk when this returns. It is never overwritten.
pub(super) fn keep(path: &Path, lock: &Lock) -> Result<bool, LocalError> {
    let failed = |source| LocalError::SecretFile {
        path: path.to_owned(),
        source,
    };
    let directory = path.parent().unwrap_or(path);
    let mut draft = OsString::from(".");
    draft.push(path.file_name().unwrap_or_default());
    draft.push("-new");
    let draft = directory.join(draft);
    if fs::exists(path).map_err(failed)? {
        return Ok(false);
    }
    refuse_foreign(path).map_err(failed)?;
    // One that a process left which was killed.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
    .map_err(failed)?;
    let secret = Secret::generate().map_err(LocalError::Secret)?;
    lock.note_secret(&mark(&secret)).map_err(failed)?;
    secret.to_new_file(&draft).map_err(failed)?;
    // Unlike a renaming this never overwrites.
    let linked = fs::hard_link(&draft, path);
    fs::remove_file(&draft).map_err(failed)?;
    match linked {
        Ok(()) => {
            sync(directory).map_err(failed)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

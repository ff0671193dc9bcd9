//! The user of this process.

use std::fs::Metadata;

/// The owner of a file, if that is another user than this process's.
#[cfg(unix)]
pub(crate) fn other_owner(found: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    // SAFETY: the call has no arguments and always succeeds.
    let own = unsafe { libc::geteuid() };
    (found.uid() != own).then(|| found.uid())
}

#[cfg(not(unix))]
pub(crate) fn other_owner(_found: &Metadata) -> Option<u32> {
    None
}

//! Direct calls of the operating system, Linux only, and what Unix knows of a file. Elsewhere
//! every question has the answer "unknown".
//!
//! All of it goes by path. A file of SQLite's must never be opened here: POSIX
//! drops all locks that a process has on a file as soon as it closes any
//! descriptor of that file.

use std::fs::Metadata;
use std::io;
use std::path::Path;

/// The number by which Linux knows the kind of file system that `path` lies on,
/// `f_type` of `statfs(2)`; none elsewhere.
#[cfg(target_os = "linux")]
pub(super) fn file_system_type(path: &Path) -> io::Result<Option<u32>> {
    Ok(Some(type_of(&statfs(path)?)))
}

#[cfg(target_os = "linux")]
fn type_of(found: &libc::statfs) -> u32 {
    // Its type differs from platform to platform; the numbers have 32 bits.
    #[allow(clippy::unnecessary_cast)]
    let number = found.f_type as u32;
    number
}

/// The number of a btrfs subvolume; none on any other file system. A snapshot has another one,
/// though its files have the same inodes and times of birth.
///
/// It is `f_fsid` of `statfs(2)`, made from the numbers of the file system and of the subvolume,
/// and stays from mount to mount. Only a cloned device that is mounted beside its original has
/// another one at each mount.
#[cfg(target_os = "linux")]
pub(super) fn subvolume(path: &Path) -> io::Result<Option<u64>> {
    const BTRFS: u32 = 0x9123_683e;

    let found = statfs(path)?;
    if type_of(&found) != BTRFS {
        return Ok(None);
    }
    // SAFETY: two integers of 32 bits, which libc keeps private.
    let [first, second] = unsafe { std::mem::transmute::<libc::fsid_t, [u32; 2]>(found.f_fsid) };
    Ok(Some(u64::from(first) << 32 | u64::from(second)))
}

#[cfg(target_os = "linux")]
fn statfs(path: &Path) -> io::Result<libc::statfs> {
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;

    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: a terminated string, and room for what the call writes.
    if unsafe { libc::statfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, and has filled it in.
    Ok(unsafe { found.assume_init() })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn file_system_type(_path: &Path) -> io::Result<Option<u32>> {
    Ok(None)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn subvolume(_path: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}

/// The numbers by which Unix knows a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease) struct FileNumbers {
    pub(in crate::lease) device: u64,
    pub(in crate::lease) inode: u64,
    /// How many names (hard links) it has.
    pub(in crate::lease) names: u64,
}

impl FileNumbers {
    #[cfg(unix)]
    pub(in crate::lease) fn of(found: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;

        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            names: found.nlink(),
        })
    }

    #[cfg(not(unix))]
    pub(in crate::lease) fn of(_found: &Metadata) -> Option<Self> {
        None
    }
}

/// The owner of a file, if this process is root and another user owns it.
#[cfg(target_os = "linux")]
pub(super) fn owner_if_not_ours(found: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    // SAFETY: the call has no arguments and always succeeds.
    let own = unsafe { libc::geteuid() };
    (own == 0 && found.uid() != 0).then(|| found.uid())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn owner_if_not_ours(_found: &Metadata) -> Option<u32> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_answers() {
        assert_eq!(file_system_type(Path::new("/proc")).unwrap(), Some(0x9fa0));
        let missing = file_system_type(Path::new("/nowhere/at all")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}

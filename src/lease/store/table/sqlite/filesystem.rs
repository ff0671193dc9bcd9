//! Where a lease store may lie.
//!
//! SQLite is as durable as the sync of its file system, and keeps two writers
//! apart no better than its locks do. Both hold on a local disk. They don't on a
//! network file system: SQLite's own list of ways to corrupt a database names
//! locks over a network first. And one machine's clock and one machine's
//! identity are what this store counts on.
//!
//! So file systems are accepted from a list. One that is not on it is refused, and can be used
//! only by accepting best effort. The refusal names the common ones:
//!
//! | found | why it is refused |
//! |---|---|
//! | NFS, SMB, 9p, Ceph | the file is shared between machines |
//! | FUSE (sshfs, s3fs, virtiofs, ...) | the storage behind it is not known |
//! | tmpfs | the file is gone after a reboot, and with it the record of grants |
//! | FAT, exFAT | a file's number changes from mount to mount, so that a copy is not noticed |
//!
//! An overlay, as containers have for their root, counts as what it mostly is:
//! layers on a local disk. It keeps the file for as long as the container, so a
//! volume is the better place.
//!
//! Two more arrangements put the journal where a process that recovers from a
//! crash doesn't look for it, whatever the file system: a file with a second
//! name (hard link), and a file that is mounted by itself into a container.
//!
//! Elsewhere than on Linux only the number of names is looked at.

use std::io;
use std::path::Path;

use super::system::{self, FileNumbers};
use super::witness;

/// Why the store must not lie at `path`; none if it may. Either a file or the
/// directory that it will be in.
pub(super) fn objection(path: &Path) -> io::Result<Option<String>> {
    match system::file_system_type(path)?.and_then(objection_to) {
        Some(reason) => Ok(Some(reason)),
        None => Ok(severed(path)?.or_else(witness::objection)),
    }
}

/// Why the journal beside `path` may not be the one that others look for.
fn severed(path: &Path) -> io::Result<Option<String>> {
    let found = path.metadata()?;
    if !found.is_file() {
        return Ok(None);
    }
    if let Some(FileNumbers {
        names: names @ 2.., ..
    }) = FileNumbers::of(&found)
    {
        return Ok(Some(format!(
            "the file has {names} names (hard links), and a crash while it is used by one \
             of them can't be mended by the others: keep one"
        )));
    }
    // Linux only; a process may be kept from reading it.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    Ok(is_mounted(&mounts, &path.canonicalize()?).then(|| {
        "the file is mounted by itself, so that its journal is not where others who \
         mend it after a crash look: mount its directory instead"
            .to_owned()
    }))
}

/// Whether a file is itself a mount point, by the text of
/// `/proc/self/mountinfo`, whose fifth column is the mount point.
fn is_mounted(mounts: &str, path: &Path) -> bool {
    // Blanks in it are written as octal numbers.
    let escaped: String = path.to_string_lossy().chars().fold(
        String::new(),
        |mut escaped, character| match character {
            ' ' | '\t' | '\n' | '\\' => escaped + &format!("\\{:03o}", u32::from(character)),
            _ => {
                escaped.push(character);
                escaped
            }
        },
    );
    mounts
        .lines()
        .any(|line| line.split(' ').nth(4) == Some(&escaped))
}

/// Local file systems, by their numbers in `linux/magic.h` and in GNU coreutils' table of names:
/// ext4, xfs, btrfs, f2fs, bcachefs, zfs, jfs, nilfs2, reiserfs, ubifs, ecryptfs, ntfs3, overlayfs.
const LOCAL: [u32; 13] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
    0x3153_464a,
    0x3434,
    0x5265_4973,
    0x2405_1905,
    0xf15f,
    0x7366_746e,
    0x794c_7630,
];

/// Why a store must not lie on a file system with this number; none if it may.
fn objection_to(number: u32) -> Option<String> {
    const SHARED: &str = "is shared between machines, and its locks and syncs don't hold";
    const UNSTABLE: &str = "assigns new inode numbers at each mount, so a copy can't be detected";

    if LOCAL.contains(&number) {
        return None;
    }
    let (name, reason) = match number {
        0x6969 => ("nfs", SHARED),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => ("smb", SHARED),
        0x0102_1997 => ("9p", SHARED),
        0x00c3_6400 => ("ceph", SHARED),
        0x6573_5546 => ("fuse", "hides the storage behind it"),
        0x0102_1994 => (
            "tmpfs",
            "is gone after a reboot, and with it all knowledge of what was granted",
        ),
        0x4d44 => ("fat", UNSTABLE),
        0x2011_bab0 => ("exfat", UNSTABLE),
        _ => {
            return Some(format!(
                "the file system has the number {number:#x}, which is not among those known to be \
                 local and durable: move the file to ext4, xfs or btrfs on a disk of this machine"
            ));
        }
    };
    Some(format!(
        "the file system is {name}, which {reason}: move the file to ext4, xfs or btrfs on a disk \
         of this machine, or use a store with a server"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_file_systems_are_accepted_and_no_others() {
        for (number, name, accepted) in [
            (0xef53, "ext4", true),
            (0x794c_7630, "overlayfs", true),
            (0x6969, "nfs", false),
            (0xff53_4d42, "smb", false),
            (0x6573_5546, "fuse", false),
            (0x0102_1994, "tmpfs", false),
            (0x4d44, "fat", false),
            (0x1234_5678, "0x12345678", false),
        ] {
            match objection_to(number) {
                None => assert!(accepted, "{name} was accepted"),
                Some(reason) => {
                    assert!(!accepted, "{name}: {reason}");
                    assert!(reason.contains(name), "{name} is not in: {reason}");
                    assert!(reason.contains("move the file"), "{reason}");
                }
            }
        }
    }

    #[test]
    fn a_file_mounted_by_itself_is_found() {
        let mounts = "23 28 0:21 / /proc rw,relatime shared:14 - proc proc rw\n\
                      99 28 254:0 /srv/a /data/le\\040ases.db rw - ext4 /dev/vda rw\n";
        assert!(is_mounted(mounts, Path::new("/data/le ases.db")));
        assert!(!is_mounted(mounts, Path::new("/data/leases.db")));
        assert!(!is_mounted(mounts, Path::new("/data")));
    }

    #[cfg(unix)]
    #[test]
    fn a_second_name_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::write(&file, "").unwrap();
        assert_eq!(severed(&file).unwrap(), None);
        std::fs::hard_link(&file, &link).unwrap();
        assert!(severed(&file).unwrap().unwrap().contains("2 names"));
        assert_eq!(severed(directory.path()).unwrap(), None);
    }
}

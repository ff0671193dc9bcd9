//! The identity of a file, which its copies do not have.
//!
//! A copy of a lease store grants the same rectangles as the original, and raising the floor once
//! would not help: the original goes on granting, and soon passes any floor. So a copy must be
//! refused until somebody confirms that the original is out of use. To detect a copy, the file
//! holds its own identity, and each commit compares that with the file at hand. Raising the floor
//! of any of its namespaces over lost grants is the confirmation: the copy is adopted, which is a
//! new incarnation for all of them.
//!
//! # The identity
//! * **The machine**: a hash of `/etc/machine-id` (see `machine-id(5)`), which
//!   outlives reboots and which images for cloning leave empty. The hash is
//!   keyed as that page asks, since the number itself is confidential.
//! * **The inode number and the time of birth**, to the nanosecond, from
//!   `statx(2)`. A copy is another inode, born later, whatever else it
//!   preserves. `mv` within a file system, `chmod` and writing keep both.
//!
//! * **The subvolume**, on btrfs: a snapshot has the same files with the same
//!   inode numbers and times of birth.
//!
//! Left out: the device number, which may change at each boot; the number of other
//! file systems, which on some is made from the device number; the inode's
//! generation, for which the file would have to be opened (see `system`). Two
//! file systems that hold the same inode number born in the same nanosecond are
//! two copies of one file system.
//!
//! # Lives
//! The incarnation of a file is its identity and its life, as in
//! `machine 0011, inode 7, born 123.000000004, life 2`. A file that may be an older state of
//! itself begins a new life; see `witness`. With another identity it is a copy.
//!
//! # Not noticed
//! A machine that was suspended, cloned with its memory and resumed twice; a clone of the file
//! system (by LVM, or of a cluster's volume) used beside the original under the same machine ID, or
//! none, where each has a `/dev/shm` of its own. A process with a confirmed end above the lost
//! state raises the floor when it asks for blocks (S8). Where none lives, this needs
//! [`raise_floor`](crate::lease::LeaseStore::raise_floor) by hand.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::system::{self, FileNumbers};
use crate::lease::store::record::Incarnation;

/// The identity of the file at `path`, as a text for people, too.
pub(super) fn identity(path: &Path) -> io::Result<String> {
    let found = path.metadata().map_err(|error| at(path, &error))?;
    Ok(describe(
        machine()?.as_deref(),
        FileNumbers::of(&found).map(|numbers| numbers.inode),
        found.created().ok(),
        system::subvolume(path).map_err(|error| at(path, &error))?,
    ))
}

fn describe(
    machine: Option<&str>,
    inode: Option<u64>,
    born: Option<SystemTime>,
    subvolume: Option<u64>,
) -> String {
    let unknown = || "unknown".to_owned();
    let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let subvolume = subvolume.map_or_else(String::new, |it| format!(", subvolume {it:016x}"));
    format!(
        "machine {}, inode {}, born {}{subvolume}",
        machine.unwrap_or("unknown"),
        inode.map_or_else(unknown, |inode| inode.to_string()),
        born.map_or_else(unknown, |born| format!(
            "{}.{:09}",
            born.as_secs(),
            born.subsec_nanos()
        )),
    )
}

/// The machine's name for this purpose; none where it has none, as in many
/// containers.
fn machine() -> io::Result<Option<String>> {
    for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                if let Some(machine) = machine_of(&text) {
                    return Ok(Some(machine));
                }
            }
            // Any other failure would pass for another machine.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(path.as_ref(), &error)),
        }
    }
    Ok(None)
}

/// Says where an error is from.
pub(super) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Sixteen hexadecimal digits for the text of a machine ID; none for a file that
/// is still to be filled in.
fn machine_of(text: &str) -> Option<String> {
    let id = text.trim();
    if id.is_empty() || id == "uninitialized" {
        return None;
    }
    let digest = hmac_sha256::HMAC::mac(b"ringflake sqlite lease store", id);
    let (kept, _) = digest.split_at(8);
    Some(kept.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The incarnation of a file in this life of it.
pub(super) fn incarnation(identity: &str, life: u64) -> Incarnation {
    Incarnation::new(format!("{identity}, life {life}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_part_counts() {
        let born = UNIX_EPOCH + Duration::new(1_700_000_000, 5);
        let one = describe(Some("aa"), Some(7), Some(born), None);
        assert_eq!(one, "machine aa, inode 7, born 1700000000.000000005");
        let later = born + Duration::from_nanos(1);
        for other in [
            describe(Some("ab"), Some(7), Some(born), None),
            describe(None, Some(7), Some(born), None),
            describe(Some("aa"), Some(8), Some(born), None),
            describe(Some("aa"), Some(7), Some(later), None),
            describe(Some("aa"), Some(7), None, None),
            describe(Some("aa"), Some(7), Some(born), Some(1)),
        ] {
            assert_ne!(other, one);
        }
    }

    #[test]
    fn a_machine_id_is_hashed_and_may_be_missing() {
        let id = "0123456789abcdef0123456789abcdef";
        let machine = machine_of(&format!("{id}\n")).unwrap();
        assert_eq!(machine, machine_of(id).unwrap());
        assert_eq!(machine.len(), 16);
        assert!(!id.contains(&machine));
        for empty in ["", "\n", "uninitialized\n"] {
            assert_eq!(machine_of(empty), None);
        }
    }
}

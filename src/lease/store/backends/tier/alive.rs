//! Which processes are alive, of those that share a file.
//!
//! Each keeps a file of its own locked, in a directory beside; the system lets go of
//! the lock when the process ends, however that happens. No rule of the protocol
//! depends on it: a sub-grant of a process that is taken for dead stays granted up
//! to its end. It is for those that start after a crash, so that they need not wait for
//! that end.

use std::fs::{self, File, TryLockError as TryLock};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::fork::PerProcess;
use crate::lease::store::table::sqlite::location::refuse_foreign;

/// The signs of this process, one for each file that it shares. A forked child needs its own.
static SIGNS: PerProcess<Mutex<Vec<Sign>>> = PerProcess::new();

/// A file that is locked for as long as the process lives.
#[derive(Debug)]
struct Sign {
    of: PathBuf,
    name: String,
    _locked: File,
}

/// The name of this process's sign among those of the file at `path`; none where it
/// can't have one.
pub(super) fn sign(path: &Path) -> Option<String> {
    let signs = SIGNS.get(|_| Ok(Mutex::default())).ok()?;
    let mut signs = signs.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sign) = signs.iter().find(|sign| sign.of == path) {
        return Some(sign.name.clone());
    }
    let sign = Sign::new(path, process::id()).ok()?;
    let name = sign.name.clone();
    signs.push(sign);
    Some(name)
}

impl Sign {
    fn new(path: &Path, process: u32) -> io::Result<Self> {
        let directory = directory(path);
        if !directory.exists() {
            refuse_foreign(&directory)?;
        }
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        for other in fs::read_dir(&directory)? {
            // Removes signs of processes that have ended.
            is_gone(path, &other?.file_name().to_string_lossy());
        }
        // Process numbers are used again, and each container has its own.
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let name = format!("{process}-{nanos}");
        let sign = directory.join(&name);
        let locked = File::create_new(&sign)?;
        locked.try_lock()?;
        // Somebody who looked in between has taken it for one of a process that ended.
        sign.metadata()?;
        Ok(Self {
            of: path.to_owned(),
            name,
            _locked: locked,
        })
    }
}

/// Whether another process is certainly alive that shares the file at `path`.
pub(super) fn is_shared(path: &Path) -> bool {
    let own = sign(path);
    let Ok(signs) = fs::read_dir(directory(path)) else {
        return false;
    };
    let names = signs.filter_map(|sign| Some(sign.ok()?.file_name().to_str()?.to_owned()));
    names
        .filter(|name| own.as_ref() != Some(name))
        .any(|name| is_locked(&directory(path).join(name)))
}

fn is_locked(sign: &Path) -> bool {
    let locked = File::open(sign).map(|sign| sign.try_lock());
    matches!(locked, Ok(Err(TryLock::WouldBlock)))
}

/// Whether the process with this sign, of the file at `path`, has ended. If that is unknown, the
/// process counts as alive.
pub(super) fn is_gone(path: &Path, name: &str) -> bool {
    // A name that leads out of the directory belongs to no process.
    if name.is_empty() || name.contains(['/', '\\', '.']) {
        return true;
    }
    let sign = directory(path).join(name);
    match File::open(&sign) {
        Ok(file) => {
            let is_gone = file.try_lock().is_ok();
            if is_gone {
                let _ = fs::remove_file(&sign);
            }
            is_gone
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn directory(path: &Path) -> PathBuf {
    let mut directory = path.as_os_str().to_owned();
    directory.push(".alive");
    directory.into()
}

#[cfg(test)]
mod tests {
    use ringflake_kit::eventually;

    use super::*;

    #[test]
    fn a_process_is_alive_until_its_lock_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tier.db");
        let name = sign(&path).unwrap();
        assert_eq!(
            sign(&path),
            Some(name.clone()),
            "one for all of the process"
        );
        assert!(!is_gone(&path, &name));
        // Another process, as far as the lock goes.
        let other = Sign::new(&path, 7).unwrap();
        let (other_name, sign_of_other) = (other.name.clone(), directory(&path).join(&other.name));
        assert!(!is_gone(&path, &other_name));
        drop(other);
        assert!(sign_of_other.exists());
        // A child that another test has forked keeps it locked for as long as it lives.
        eventually("the sign is free", || is_gone(&path, &other_name));
        assert!(!sign_of_other.exists() && is_gone(&path, &other_name));
        assert!(!is_gone(&path, &name));
    }

    // `fork` of glibc leaves the allocator usable.
    #[cfg(all(unix, target_env = "gnu", not(miri), not(all(loom, feature = "loom"))))]
    #[test]
    fn a_child_has_a_sign_of_its_own_also_where_its_parent_held_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tier.db");
        let name = sign(&path).unwrap();
        let signs = SIGNS.get(|_| Ok(Mutex::default())).unwrap();
        let held = signs.lock().unwrap();
        let child = ringflake_kit::child::in_a_fork(|| {
            let own = sign(&path);
            u8::from(own == sign(&path) && own.is_some_and(|own| own != name))
        });
        drop(held);
        assert_eq!(child, Ok(1));
    }

    #[test]
    fn who_comes_removes_the_signs_of_those_that_ended() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tier.db");
        drop(Sign::new(&path, 7).unwrap());
        let name = sign(&path).unwrap();
        let left = fs::read_dir(directory(&path)).unwrap();
        let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
        assert_eq!(left, [name.as_str()]);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_nobodys() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tier.db");
        let name = sign(&path).unwrap();
        let back = format!("../tier.db.alive/{name}");
        assert!(is_gone(&path, &back) && is_gone(&path, ""));
        assert!(!is_gone(&path, &name));
    }
}

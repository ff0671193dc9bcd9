//! Files that this process has locked.

use std::fs::File;
use std::ops::{Deref, DerefMut};

/// A locked file, which is unlocked when this is dropped.
///
/// Closing the file would not unlock it while a child that another thread has forked has the
/// same open file. Such a child, in turn, must not unlock what its parent has locked.
#[derive(Debug)]
pub(in crate::lease) struct Locked {
    file: File,
    process: u32,
}

impl Locked {
    /// Of a file that this process has locked.
    pub(in crate::lease) fn new(file: File) -> Self {
        let process = std::process::id();
        Self { file, process }
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // Nothing more can be done than to close it.
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_forked_child_has_inherited_is_unlocked_by_its_parent_alone() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let open = || File::open(&path).unwrap();
        let locked = || {
            let file = open();
            file.try_lock().unwrap();
            Locked::new(file)
        };
        let is_free = || open().try_lock().is_ok();

        let held = locked();
        // The same open file, as a child has it.
        let inherited = held.try_clone().unwrap();
        assert!(!is_free());
        drop(held);
        assert!(is_free());

        let mut parents = locked();
        parents.process += 1;
        let still_open = parents.try_clone().unwrap();
        drop(parents);
        assert!(!is_free());
        drop((inherited, still_open));
    }
}

//! The first record of a namespace on a program's word.
//!
//! A program says [`History::New`] at each of its starts. That is true of a file
//! that was never there, and false of one that was removed. The note of
//! [`past`](super::past) tells the two apart. It lies in `PATH.lock` beside the
//! file, and is made before the file is:
//!
//! | past | `New` |
//! |---|---|
//! | none, recorded | the namespace never was |
//! | lost, another's copy | refused |
//!
//! A file that was made by other means has no note and counts as lost, since it
//! may have been put there in place of another. Initialise by hand there.

use std::path::PathBuf;

use super::SqliteStore;
use super::past::{Lock, Past};
use super::session::unavailable;
use crate::lease::voucher::Voucher;
use crate::lease::{Durability, History, Init, LeaseStore, Namespace, StoreError, StoreRecord};

impl SqliteStore {
    pub(super) fn init_for_a_program(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        let durability = match self.location.admit()? {
            None => Durability::Durable,
            Some(reason) => Durability::BestEffort { reason },
        };
        Voucher::Program.check(namespace, init, durability)?;
        if init.history == History::Unknown {
            return self.init(namespace, init);
        }
        let lock = Lock::of(&self.lock_path(), self.path()).map_err(unavailable)?;
        let past = lock.past(false).map_err(unavailable)?;
        let reason = match past {
            Past::None | Past::Recorded => {
                lock.begin(past).map_err(unavailable)?;
                match self.init(namespace, init) {
                    Err(StoreError::Copied { .. }) => {
                        // Others were lost with it.
                        lock.begin(Past::Lost).map_err(unavailable)?;
                        "it was put back to an earlier state"
                    }
                    outcome => return outcome,
                }
            }
            Past::Lost if self.path().exists() => {
                "it has no note, made beside it at its first use, that it is the first one there"
            }
            Past::Lost => "there was one, and it was removed",
            Past::AnothersCopy => "it was copied here together with the note beside it",
        };
        // Another process may have been faster.
        if let Ok(_) | Err(StoreError::FingerprintMismatch { .. }) = self.list(namespace) {
            return Err(StoreError::AlreadyInitialised {
                namespace: namespace.name().to_owned(),
            });
        }
        Err(StoreError::HistoryUnknown {
            namespace: namespace.name().to_owned(),
            reason: format!("{}: {reason}", self.location.name()),
        })
    }

    /// Where the note on the file's past is.
    fn lock_path(&self) -> PathBuf {
        let mut path = self.path().as_os_str().to_owned();
        path.push(".lock");
        path.into()
    }
}

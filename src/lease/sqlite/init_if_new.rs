//! The first record of a namespace, and the note beside the file.
//!
//! A program says [`History::New`] at each of its starts. That is true of a file
//! that was never there, and false of one that was removed. The note of
//! [`past`](super::past) tells the two apart. It lies in `PATH.lock` beside the
//! file, and is made before the file is:
//!
//! | past | a program's `New` | a person's word |
//! |---|---|---|
//! | none | the namespace never was | taken; after `Unknown` the past is lost |
//! | recorded | the namespace never was | taken |
//! | lost, another's copy | refused | taken for this namespace |
//!
//! A file that was put there by other means has no note and counts as lost, since
//! another may have been there before. A data directory has a note of its own, and
//! makes its records without this one.

use std::io;
use std::path::PathBuf;

use super::SqliteStore;
use super::past::{Lock, Past};
use super::session::unavailable;
use crate::lease::voucher::Voucher;
use crate::lease::{
    Durability, History, Incarnation, Init, LeaseStore, Namespace, StoreError, StoreRecord,
};

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
            return self.init_for_a_person(namespace, init);
        }
        let lock = self.lock()?;
        let past = lock.past(false).map_err(|error| self.failed(&error))?;
        let reason = match past {
            Past::None | Past::Recorded => {
                lock.begin(past).map_err(|error| self.failed(&error))?;
                match self.init_record(namespace, init) {
                    Err(StoreError::Copied { .. }) => {
                        // Others were lost with it.
                        lock.begin(Past::Lost)
                            .map_err(|error| self.failed(&error))?;
                        "it was put back to an earlier state"
                    }
                    outcome => return outcome,
                }
            }
            Past::Lost if self.path().exists() => {
                "no note beside it says that it is the first one there"
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

    /// Notes what a person says of the past.
    pub(super) fn init_for_a_person(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        // What is out of range must not leave a file behind.
        StoreRecord::create(namespace, init, &Incarnation::new(""), self.clock.unix_ms())?;
        self.location.admit()?;
        let lock = self.lock()?;
        let past = match lock.past(false).map_err(|error| self.failed(&error))? {
            Past::None if init.history == History::Unknown => Past::Lost,
            past => past,
        };
        lock.begin(past).map_err(|error| self.failed(&error))?;
        self.init_record(namespace, init)
    }

    /// Keeps others from making records by the note for as long as it is held.
    fn lock(&self) -> Result<Lock, StoreError> {
        Lock::of(&self.lock_path(), self.path()).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> StoreError {
        unavailable(format!("{}: {error}", self.lock_path().display()))
    }

    /// Where the note on the file's past is.
    fn lock_path(&self) -> PathBuf {
        let mut path = self.path().as_os_str().to_owned();
        path.push(".lock");
        path.into()
    }
}

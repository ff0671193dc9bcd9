//! The first record of a namespace, and the note beside the file.
//!
//! A program says [`History::New`] at each of its starts. This is true if the file never existed,
//! and false if it was removed. The note of [`past`](super::past) distinguishes the two. It lies in
//! `PATH.lock` beside the file, and is made before the file is:
//!
//! | past | a program's `New` | a person's word |
//! |---|---|---|
//! | none | the namespace never was | taken; after `Unknown` the past is lost |
//! | recorded | the namespace never was | taken |
//! | doubtful, lost, another's copy | refused | taken for this namespace, unless `leases.db` is a copy |
//!
//! Doubtful is a file that has no note of its last write (see [`SqliteStore`]), as
//! after a reboot; one that does not agree with its note has lost something. The first write
//! makes a note again, and a new life of the file. What was granted before ends by the horizon
//! and the failover time; until they have passed since, the past stays doubtful.
//!
//! A file that was put there by other means is not the one noted and counts as lost,
//! since another may have been there before.

use std::io;

use super::SqliteStore;
use super::past::{Lock, Past, lock_file};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::store::lease_store::LeaseStore;
use crate::lease::store::limits::StoreLimits;
use crate::lease::store::record::StoreRecord;
use crate::lease::store::request::{History, Init};
use crate::lease::store::table::sqlite::Verdict;
use crate::lease::store::voucher::Voucher;

impl SqliteStore {
    pub(super) fn init_for_a_program(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        let durability = self.table_mut().admit()?;
        Voucher::Program.check(namespace, init, durability)?;
        self.check_init(namespace, init)?;
        if init.history == History::Unknown {
            return self.init_for_a_person(namespace, init);
        }
        let lock = self.lock()?;
        let past = self.past(&lock, false, &init.limits)?;
        let reason = match past {
            Past::None | Past::Recorded => {
                self.noted(lock.begin(past))?;
                return self.init_noted(&lock, namespace, init);
            }
            Past::Doubtful => {
                "it may have been put back to an earlier state, which nothing shows after the \
                 machine was started"
            }
            Past::Lost if self.path().exists() => {
                "going by the note beside it, it was brought here, or put back to an earlier state"
            }
            Past::Lost => "there was such a file, and it was removed",
            Past::AnothersCopy => "it was copied here together with the note beside it",
        };
        // Another process may have been faster.
        let recorded = self.list(namespace);
        if let Ok(_) | Err(StoreError::FingerprintMismatch { .. } | StoreError::Format { .. }) =
            recorded
        {
            return Err(namespace.already_initialised());
        }
        Err(StoreError::HistoryUnknown {
            namespace: namespace.name().to_owned(),
            reason: format!("{}: {reason}", self.leases.table().name()),
        })
    }

    /// Makes the record on a person's word about the past.
    pub(super) fn init_for_a_person(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.check_init(namespace, init)?;
        self.table_mut().admit()?;
        let lock = self.lock()?;
        let past = match self.past(&lock, false, &init.limits)? {
            Past::None if init.history == History::Unknown => Past::Lost,
            past => past,
        };
        self.noted(lock.begin(past))?;
        self.init_noted(&lock, namespace, init)
    }

    /// Makes the record under the lock, and notes that there is one more, after
    /// [`check_init`](Self::check_init).
    pub(crate) fn init_noted(
        &mut self,
        lock: &Lock,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        // The caller's clock was compared before the locks were waited for.
        let init = Init {
            now_unix_ms: self.leases.table().unix_ms(),
            ..init.clone()
        };
        let record = self.leases.init(namespace, &init)?;
        let records = self.namespaces()?.len() as u64;
        self.noted(lock.note_records(records))?;
        Ok(record)
    }

    /// The past as far as it is known, where a secret may have been used (or not). What may be
    /// missing had limits like these, or like those on record.
    pub(crate) fn past(
        &mut self,
        lock: &Lock,
        secret: bool,
        limits: &StoreLimits,
    ) -> Result<Past, StoreError> {
        let past = self.noted(lock.past(secret))?;
        if past != Past::Recorded {
            return Ok(past);
        }
        let records = self.records()?;
        if self.noted(lock.note_records(records.len() as u64))? {
            return Ok(Past::Lost);
        }
        let reach = |limits: &StoreLimits| limits.horizon_ms() + 2 * limits.failover_ms();
        let on_record = records.iter().map(|record| reach(&record.limits));
        let longest = on_record.fold(reach(limits), u64::max);
        let now_unix_ms = self.leases.table().unix_ms();
        let file = self.table_mut().past()?;
        let is_fresh = file.life_began_unix_ms.saturating_add(longest) > now_unix_ms;
        Ok(match file.verdict {
            Verdict::Older => Past::Lost,
            _ if file.is_copy => Past::Lost,
            Verdict::Unwitnessed => Past::Doubtful,
            Verdict::Last if file.life_began_unix_ms > 0 && is_fresh => Past::Doubtful,
            Verdict::Last => Past::Recorded,
        })
    }

    /// Before a copy is adopted: notes that what it does not know of may have been lost, whether
    /// the note was copied with it or not.
    pub(super) fn adopt_note(&mut self) -> Result<(), StoreError> {
        let path = self.path().canonicalize();
        let has_note = path.is_ok_and(|path| lock_file(&path).exists());
        if !has_note {
            // Which says as much.
            return Ok(());
        }
        let lock = self.lock()?;
        let is_anothers = self.noted(lock.past(true))? == Past::AnothersCopy;
        if is_anothers || self.table_mut().past()?.is_copy {
            self.noted(lock.adopt())?;
        }
        Ok(())
    }

    /// Keeps others from making records by the note for as long as it is held.
    fn lock(&self) -> Result<Lock, StoreError> {
        self.noted(Lock::of(self.path(), self.leases.table().timeout()))
    }

    fn noted<T>(&self, outcome: io::Result<T>) -> Result<T, StoreError> {
        outcome.map_err(|error| {
            let text = format!("{}: {error}", lock_file(self.path()).display());
            StoreError::unavailable(io::Error::new(error.kind(), text))
        })
    }
}

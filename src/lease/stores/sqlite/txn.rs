//! The view of a step of the protocol on its transaction.

use rusqlite::Connection;

use super::clock_step::{self, Judgement, SETTLE, Uptime};
use super::session::StepError;
use super::tables::{self, Space};
use crate::lease::error::StoreError;
use crate::lease::record::Incarnation;
use crate::lease::report::Durability;

/// A namespace, the file that it is in, and the time.
#[derive(Debug)]
pub(in crate::lease::stores) struct Txn<'a> {
    pub(in crate::lease::stores) connection: &'a Connection,
    /// The store's name.
    pub(in crate::lease::stores) store: &'a str,
    pub(super) durability: &'a Durability,
    pub(in crate::lease::stores) space: Space,
    /// Of the file at hand, in this life of it.
    pub(in crate::lease::stores) incarnation: Incarnation,
    /// The clock before the lock was waited for, in milliseconds since 1970.
    pub(in crate::lease::stores) arrived_unix_ms: u64,
    /// The clock now that the lock is held, in milliseconds since 1970.
    pub(in crate::lease::stores) unix_ms: u64,
    pub(super) uptime: Option<Uptime>,
}

impl Txn<'_> {
    /// Refuses a file that is not the one for which the record was written.
    pub(super) fn refuse_copies(&self) -> Result<(), StoreError> {
        let recorded = &self.space.record.incarnation;
        if recorded.is_same_file(&self.incarnation) {
            return Ok(());
        }
        Err(StoreError::Copied {
            store: self.store.to_owned(),
            recorded: recorded.identity().to_owned(),
            found: self.incarnation.identity().to_owned(),
        })
    }

    /// Makes the file at hand the one for which the record was written.
    pub(in crate::lease::stores) fn adopt(&mut self) {
        self.space.record.incarnation = self.incarnation.clone();
    }

    /// Makes the file at hand one of its own, which has nothing in common with the one that the
    /// record was written for.
    pub(in crate::lease::stores) fn part_from_original(&mut self) -> Result<(), StepError> {
        self.adopt();
        tables::rename_file(self.connection)
    }

    /// Why the clock is not believed, if it isn't; the doubt is then written.
    pub(in crate::lease::stores) fn doubt_clock(
        &mut self,
    ) -> Result<Option<StoreError>, StepError> {
        let (clock, error) = match self.judge() {
            None => return Ok(None),
            Some(Judgement::Believed(clock)) => (clock, None),
            Some(Judgement::Doubted(clock, _, error)) => (clock, Some(error)),
        };
        let clock = Some(clock);
        let changed = self.space.clock != clock;
        self.space.clock = clock;
        if error.is_some() && changed {
            self.save()?;
        }
        Ok(error)
    }

    /// The time by the clock if that is believed, and otherwise by the uptime, in
    /// milliseconds since 1970.
    pub(in crate::lease::stores) fn expected_unix_ms(&self) -> u64 {
        match self.judge() {
            Some(Judgement::Doubted(_, expected_unix_ms, _)) => expected_unix_ms,
            Some(Judgement::Believed(_)) | None => self.unix_ms,
        }
    }

    fn judge(&self) -> Option<Judgement> {
        // A step as long as grants reach ahead anyway does no great harm.
        let limit = self.space.record.limits.horizon().max(SETTLE);
        let uptime = self.uptime.as_ref()?;
        let recorded = self.space.clock.as_ref();
        Some(clock_step::judge(recorded, uptime, self.unix_ms, limit))
    }

    /// Writes the record.
    pub(in crate::lease::stores) fn save(&mut self) -> Result<(), StepError> {
        tables::update_space(self.connection, &self.space)
    }

    /// Writes the first record of a namespace.
    pub(in crate::lease::stores) fn insert(&mut self) -> Result<(), StepError> {
        if let Some(Judgement::Believed(clock)) = self.judge() {
            self.space.clock = Some(clock);
        }
        tables::insert_space(self.connection, &self.space)
    }
}

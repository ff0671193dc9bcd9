//! Where a grant log is kept.

#[cfg(feature = "sqlite")]
use super::file::{change_log, create_log};
use super::grant_log::{Caller, GrantLog};
use super::memory::MemoryTier;
use super::operation::Operation;
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::store::lease_store::LeaseStore;
#[cfg(feature = "sqlite")]
use crate::lease::store::leases::Leases;
#[cfg(feature = "sqlite")]
use crate::lease::store::table::sqlite::SqliteTable;

#[derive(Debug)]
pub(super) enum TierStorage {
    #[cfg(feature = "sqlite")]
    File(Box<Leases<SqliteTable>>),
    Memory(MemoryTier),
}

impl TierStorage {
    /// Its name, without credentials.
    pub(super) fn name(&self) -> String {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(file) => file.table().name().to_owned(),
            Self::Memory(..) => "tier in memory".to_owned(),
        }
    }

    /// The machine's clock, in milliseconds since 1970.
    pub(super) fn unix_ms(&self) -> u64 {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(file) => file.table().unix_ms(),
            Self::Memory(memory) => memory.unix_ms(),
        }
    }

    /// Writes the first grant log of a namespace, unless there is one.
    pub(super) fn create(&mut self, log: GrantLog) -> Result<(), StoreError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(file) => create_log(file.table_mut(), &log),
            Self::Memory(memory) => {
                memory.create(log);
                Ok(())
            }
        }
    }

    /// Runs one step in one transaction. Its writes are durable when this returns, and
    /// are undone if it [failed](GrantLog::is_to_be_kept).
    pub(super) fn change<T>(
        &mut self,
        operation: Operation,
        namespace: &Namespace,
        step: impl FnOnce(&mut GrantLog, &Caller) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(file) => change_log(file.table_mut(), operation, namespace, step),
            Self::Memory(memory) => {
                let _ = operation;
                memory.change(namespace, step)
            }
        }
    }

    /// Asks the entries as a store, for what needs no rule of a tier.
    pub(super) fn leases<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn LeaseStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(file) => ask(&mut **file),
            Self::Memory(memory) => ask(&mut memory.leases()),
        }
    }
}

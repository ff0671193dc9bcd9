//! A transaction on the file, from the lock to the commit.

use std::time::{Duration, Instant};

use super::session::{Access, Session, StepError, unavailable};
use super::tables::{self, Space};
use super::txn::Txn;
use super::{SqliteStore, identity};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::record::Incarnation;
use crate::lease::report::Durability;

/// A transaction on the file, with the state of the place and the clock before it began.
#[derive(Debug)]
pub(in crate::lease::stores) struct Opened {
    pub(in crate::lease::stores) name: String,
    durability: Durability,
    witnessed: u64,
    arrived_unix_ms: u64,
    pub(in crate::lease::stores) session: Session,
}

impl SqliteStore {
    pub(super) fn deadline(&self) -> Instant {
        const LONG: Duration = Duration::from_secs(365 * 24 * 3600);
        Instant::now() + self.timeout.min(LONG)
    }

    pub(in crate::lease::stores) fn open(
        &mut self,
        namespace: &Namespace,
        access: Access,
    ) -> Result<Opened, StoreError> {
        let deadline = self.deadline();
        let arrived_unix_ms = self.clock.unix_ms();
        let found = self.location.find()?;
        let durability = found.ok_or_else(|| namespace.not_initialised())?;
        let name = self.location.name().to_owned();
        // Read before the lock is had, so that it is never later than what the
        // lock shows.
        let witnessed = identity::witnessed(self.path(), namespace);
        let session = Session::begin(self.path(), access, &self.queue, deadline)
            .and_then(|session| {
                tables::refuse_other_kind(session.connection(), &name, self.kind)?;
                Ok(session)
            })
            .map_err(|error| error.into_error(&name))?;
        Ok(Opened {
            name,
            durability,
            witnessed,
            arrived_unix_ms,
            session,
        })
    }

    pub(in crate::lease::stores) fn txn<'a>(
        &self,
        opened: &'a Opened,
        space: Space,
    ) -> Result<Txn<'a>, StoreError> {
        let identity = identity::identity(self.path()).map_err(unavailable)?;
        Ok(Txn {
            connection: opened.session.connection(),
            store: &opened.name,
            durability: &opened.durability,
            space,
            identity: Incarnation::new(identity),
            witnessed: opened.witnessed,
            arrived_unix_ms: opened.arrived_unix_ms,
            unix_ms: self.clock.unix_ms(),
            uptime: self.uptime.and_then(|read| read()),
        })
    }

    /// Runs one step on a namespace that was initialised. Its writes are
    /// kept if it answers, be it a refusal; its outer error undoes them.
    pub(in crate::lease::stores) fn run<T>(
        &mut self,
        operation: &'static str,
        namespace: &Namespace,
        access: Access,
        step: impl FnOnce(&mut Txn<'_>) -> Result<Result<T, StoreError>, StepError>,
    ) -> Result<T, StoreError> {
        let opened = self.open(namespace, access)?;
        let described = |error: StepError| error.into_error(&opened.name);
        let space = tables::read_space(opened.session.connection(), &opened.name, namespace)
            .map_err(described)?
            .ok_or_else(|| namespace.not_initialised())?;
        space.record.verify(namespace)?;
        let mut txn = self.txn(&opened, space)?;
        let answer = step(&mut txn).map_err(described)?;
        let writes = txn.space.writes;
        match access {
            Access::Read => answer,
            Access::Write => {
                let committed = self.commit(opened, operation, namespace, writes);
                // A refusal is one, whether it could be noted or not.
                answer.and_then(|answer| committed.map(|()| answer))
            }
        }
    }

    pub(in crate::lease::stores) fn commit(
        &self,
        opened: Opened,
        operation: &'static str,
        namespace: &Namespace,
        writes: u64,
    ) -> Result<(), StoreError> {
        opened.session.commit(operation)?;
        identity::witness(self.path(), namespace, writes);
        Ok(())
    }
}

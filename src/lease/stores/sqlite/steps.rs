//! The steps of the protocol, each in one transaction.

use std::ops::Range;

use rusqlite::Connection;

use super::SqliteStore;
use super::session::{Access, Session, StepError};
use super::tables::{self, Space};
use super::txn::Txn;
use crate::lease::batch::in_steps;
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::grant::Grant;
use crate::lease::key::StoreKey;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::Quarantined;
use crate::lease::record::{Incarnation, LowestMarks, StoreRecord};
use crate::lease::report::{Listing, StoreReport};
use crate::lease::request::{Acquire, Floor, Init, Renew};
use crate::lease::store::LeaseStore;

impl SqliteStore {
    /// The namespaces that the file has on record, by name; none if there is no
    /// file.
    pub(crate) fn namespaces(&mut self) -> Result<Vec<Namespace>, StoreError> {
        if self.location.find()?.is_none() {
            return Ok(Vec::new());
        }
        let name = self.location.name().to_owned();
        Session::begin(self.path(), Access::Read, &self.queue, self.deadline())
            .and_then(|session| {
                tables::refuse_other_kind(session.connection(), &name, self.kind)?;
                tables::read_namespaces(session.connection(), &name)
            })
            .map_err(|error| error.into_error(&name))
    }

    /// Sees that the file's directory keeps files, before one is made there.
    pub(crate) fn admit(&mut self) -> Result<(), StoreError> {
        self.location.admit().map(drop)
    }

    /// Refuses what is out of range, and a caller's clock that is far from this machine's,
    /// before anything is written, and before locks are waited for.
    pub(crate) fn check_init(&self, namespace: &Namespace, init: &Init) -> Result<(), StoreError> {
        let unix_ms = self.clock.unix_ms();
        StoreRecord::create(namespace, init, &Incarnation::new(""), unix_ms).map(drop)
    }

    /// Makes the file unless it is there, and the namespace's record in it, after
    /// [`check_init`](Self::check_init).
    pub(crate) fn init_record(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        // What is out of range must not leave a file behind.
        let unix_ms = self.clock.unix_ms();
        let record = StoreRecord::create_at(namespace, init, &Incarnation::new(""), unix_ms)?;
        self.location.create()?;

        let mut opened = self.open(namespace, Access::Write)?;
        tables::make(opened.session.connection(), &opened.name, self.kind)
            .map_err(|error| error.into_error(&opened.name))?;
        self.look_at_file(&mut opened, Access::Write)?;
        let described = |error: StepError| error.into_error(&opened.name);
        let connection = opened.session.connection();
        let known = tables::read_row(connection, &opened.name, namespace).map_err(described)?;
        if known.is_some() {
            return Err(namespace.already_initialised());
        }
        refuse_second_use(connection, namespace, &init.claims(namespace)).map_err(described)?;
        let mut txn = self.txn(&opened, Space::new(record))?;
        let record = StoreRecord::create_at(namespace, init, &txn.incarnation, txn.unix_ms)?;
        txn.space.record = record.clone();
        txn.insert().map_err(described)?;
        self.commit(opened, "init")?;
        Ok(record)
    }

    /// As [`acquire`](LeaseStore::acquire), out of these blocks alone: for a process
    /// that is to have certain nodes.
    ///
    /// Time grows with the number of blocks ever granted, where that of `acquire`
    /// grows with its logarithm.
    ///
    /// # Errors
    /// [`StoreError::Exhausted`] when all of these blocks are held,
    /// [`StoreError::Invalid`] for a range that is empty or ends after the last
    /// block, and those of `acquire`.
    ///
    /// # Examples
    /// ```
    /// use ringflake::{Clock, Layout, SystemClock};
    /// use ringflake::lease::{
    ///     Acquire, Fingerprint, History, Init, LeaseStore, Namespace, OpenOptions, SqliteStore,
    /// };
    ///
    /// let directory = tempfile::tempdir()?;
    /// // The examples run on any file system. Leave this out.
    /// let options = OpenOptions::new().accept_best_effort(true);
    /// let mut store = SqliteStore::new(directory.path().join("leases.db"), &options)?;
    /// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
    /// let now = SystemClock.unix_ms();
    /// store.init(&orders, &Init::new(History::New, now))?;
    /// let grants = store.acquire_within(&orders, &Acquire::new(1, 600, now), 7..9)?;
    /// assert_eq!(grants[0].block.index(), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire_within(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
        blocks: Range<u64>,
    ) -> Result<Vec<Grant>, StoreError> {
        acquire.validate()?;
        let (min, max) = (blocks.start.saturating_add(1), namespace.blocks());
        if !(min..=max).contains(&blocks.end) {
            return Err(StoreError::Invalid {
                what: "the end of the range of blocks",
                value: blocks.end,
                min,
                max,
            });
        }
        self.run("acquire", namespace, Access::Write, |txn| {
            txn.refuse_copies()?;
            if let Some(stepped) = txn.doubt_clock()? {
                return Ok(Err(stepped));
            }
            let now = txn.space.record.tick_at(txn.unix_ms)?;
            // When it was asked, not after it has waited for the lock.
            let asked_unix_ms = acquire.now_unix_ms;
            let record = &mut txn.space.record;
            record.check_skew(txn.arrived_unix_ms, asked_unix_ms)?;
            // Kept, whatever becomes of the rest.
            let is_raised = record.observe(&txn.incarnation, now);
            if is_raised {
                txn.save()?;
            }

            let record = &txn.space.record;
            let candidates = match record.mark_window(now, acquire) {
                Some(window) => {
                    let wanted = acquire.blocks;
                    tables::candidates(txn.connection, namespace, &blocks, window, wanted)?
                }
                None => Vec::new(),
            };
            for confirmed in &acquire.evidence {
                let known = tables::read_block(txn.connection, namespace, confirmed.block)?;
                if let Err(lost) = record.check_evidence(now, known.as_ref(), confirmed) {
                    txn.space.record.raise_floor(Floor::OverLostGrants, now)?;
                    txn.save()?;
                    return Ok(Err(lost));
                }
            }
            let grant = |block| record.granted(now, txn.unix_ms, block, acquire);
            let (grants, granted): (Vec<_>, Vec<_>) = candidates.iter().filter_map(grant).unzip();
            if grants.is_empty() {
                let lowest = tables::least_marks(txn.connection, namespace, &blocks)?;
                let lowest = LowestMarks::of(&lowest);
                let refusal = record.refusal(txn.unix_ms, now, acquire, lowest);
                return match is_raised {
                    true => Ok(Err(refusal)),
                    false => Err(refusal.into()),
                };
            }
            tables::write_blocks(txn.connection, namespace, &granted)?;
            txn.save()?;
            Ok(Ok(grants))
        })
    }

    /// As [`release`](LeaseStore::release) for each of these grants, in one
    /// transaction. Those that are not their block's last are passed over.
    ///
    /// # Errors
    /// Those of every method of [`LeaseStore`]; then none was released.
    pub fn release_all(
        &mut self,
        namespace: &Namespace,
        grants: &[(Block, Epoch)],
    ) -> Result<(), StoreError> {
        self.run("release", namespace, Access::Write, |txn| {
            txn.refuse_copies()?;
            let mut released = Vec::with_capacity(grants.len());
            for &(block, epoch) in grants {
                let known = tables::read_block(txn.connection, namespace, block)?;
                let known = known.and_then(Result::ok);
                released.extend(StoreRecord::released(block, epoch, known));
            }
            tables::write_blocks(txn.connection, namespace, &released)?;
            txn.save()?;
            Ok(Ok(()))
        })
    }
}

/// Refuses a secret that another namespace has. In the end an index does; this says
/// which namespace it is.
pub(in crate::lease::stores) fn refuse_second_use(
    connection: &Connection,
    namespace: &Namespace,
    claims: &[Fingerprint],
) -> Result<(), StepError> {
    for &claimed in claims {
        let owner = tables::read_name(connection, claimed)?;
        namespace.check_secret(claimed, owner.as_deref())?;
    }
    Ok(())
}

/// The block of a grant that is to be changed.
pub(super) fn subject(
    txn: &Txn<'_>,
    namespace: &Namespace,
    block: Block,
) -> Result<Option<BlockState>, StepError> {
    let known = tables::read_block(txn.connection, namespace, block)?;
    Ok(known
        .transpose()
        .map_err(|found| found.fence(namespace, block))?)
}

impl LeaseStore for SqliteStore {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.init_for_a_person(namespace, init)
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.init_for_a_program(namespace, init)
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        self.acquire_within(namespace, acquire, 0..namespace.blocks())
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        self.renew_one(namespace, renew)
    }

    fn renew_all(&mut self, renewals: &[(&Namespace, &Renew)]) -> Vec<Result<u64, StoreError>> {
        in_steps(self, renewals)
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.run("release", namespace, Access::Write, |txn| {
            txn.refuse_copies()?;
            let known = subject(txn, namespace, block)?;
            let released = StoreRecord::released(block, epoch, known)?;
            tables::write_blocks(txn.connection, namespace, &[released])?;
            txn.save()?;
            Ok(Ok(()))
        })
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        self.run("list", namespace, Access::Read, |txn| {
            let judged = tables::read_blocks(txn.connection, namespace)?;
            Ok(Ok(Listing::of_judged(txn.space.record.clone(), judged)))
        })
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        self.run("repair", namespace, Access::Write, |txn| {
            txn.refuse_copies()?;
            // The mark is never lowered again, and must be above all.
            if let Some(stepped) = txn.doubt_clock()? {
                return Ok(Err(stepped));
            }
            let record = &txn.space.record;
            record.check_skew(txn.arrived_unix_ms, now_unix_ms)?;
            let now = record.tick_at(txn.unix_ms)?;
            let known = tables::read_block(txn.connection, namespace, block)?;
            let Some(Err(Quarantined { block: Some(_), .. })) = known else {
                return Err(StoreError::NotQuarantined { block }.into());
            };
            let mark = tables::read_mark(txn.connection, namespace, block)?;
            let repaired = record.repaired(now, block, mark);
            tables::write_repair(txn.connection, namespace, &repaired)?;
            txn.save()?;
            Ok(Ok(repaired))
        })
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.run("raise_floor", namespace, Access::Write, |txn| {
            if floor == Floor::OverLostGrants {
                // A floor that is raised by a wrong clock is never lowered again.
                if let Some(stepped) = txn.doubt_clock()? {
                    return Ok(Err(stepped));
                }
                txn.adopt();
            } else {
                txn.refuse_copies()?;
            }
            if floor.heeds_clocks() {
                // When it was asked, not after it has waited for the lock.
                let record = &txn.space.record;
                record.check_skew(txn.arrived_unix_ms, now_unix_ms)?;
            }
            // Where the clock is in doubt, a tick is far from the time that was expected.
            let store_unix_ms = txn.expected_unix_ms();
            let record = &mut txn.space.record;
            let now = record.tick_at(store_unix_ms)?;
            record.raise_floor(floor, now)?;
            let raised = record.floor;
            txn.save()?;
            Ok(Ok(raised))
        })
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        self.run("check", namespace, Access::Read, |txn| {
            tables::inspect(txn.connection, txn.store)?;
            let store_unix_ms = txn.expected_unix_ms();
            let now = txn.space.record.tick_at(store_unix_ms)?;
            let judged = tables::read_blocks(txn.connection, namespace)?;
            let report = StoreReport::new(
                txn.store,
                txn.space.record.clone(),
                txn.incarnation.clone(),
                txn.durability.clone(),
                now_unix_ms,
            );
            Ok(Ok(report.at(store_unix_ms).with_blocks(now, judged)))
        })
    }

    /// Saves the record as it is, in a transaction like that of a grant.
    fn write_test(&mut self, namespace: &Namespace, _: u64) -> Result<(), StoreError> {
        self.run("write_test", namespace, Access::Write, |txn| {
            txn.refuse_copies()?;
            txn.save()?;
            Ok(Ok(()))
        })
    }

    fn key(&self) -> Option<StoreKey> {
        self.key.clone()
    }
}

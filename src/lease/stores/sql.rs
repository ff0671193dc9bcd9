//! The common part of the stores on SQL servers: the steps of each operation, their
//! order, and the meaning of a failure. The servers differ behind [`Session`].
//!
//! # Tables
//! | table | a row for |
//! |---|---|
//! | `ringflake_namespace` | each namespace: the columns of [`RecordRow`]; an index lets no two have one secret |
//! | `ringflake_block` | each of its blocks, from `init` on; `epoch` 0 is one never granted |
//!
//! # An acquisition
//! ```text
//!                    incarnation on record
//! begin, record shared ---------------------> candidates --> decide --> write, commit
//!          | another                              ^  \none, all refused, or history lost
//!          v                                      |   `--------> roll back
//! roll back; begin, record exclusive --> observe -+   (a raised floor is committed)
//! ```
//! Each row of the picture is one transaction. The record is locked first, then
//! the blocks; the clock is read after both.
//!
//! * **S1** A grant begins at or after the mark that was read under the block's
//!   own row lock, and writes the next mark in the same transaction. Nobody else
//!   writes the row before that transaction has ended.
//! * **Floor and incarnation** A transaction that changes them holds the record alone,
//!   so they stand still while a shared lock is held. A shared lock is never turned
//!   into an exclusive one: two transactions that tried it would wait for each
//!   other. The transaction is given up, and another takes the exclusive lock at
//!   once.
//! * **Nobody queues** Blocks that others have locked are skipped. Only when
//!   nothing is left is one waited for, and one alone, so that no circle of
//!   waiters can form; then "exhausted" is true and not the chance of a moment.
//! * **S8** The caller's evidence is compared with the rows after the blocks were
//!   chosen. A transaction that puts rows back commits before that, and is seen; or
//!   waits for the rows under lock.
//! * **S2** The statements that decide go out once. What is not answered after
//!   that is [`Failure::Unknown`]; before it, the server has nothing to commit
//!   and rolls back by itself.
//!
//! Rows that can't be true ([quarantine](crate::lease::quarantine)) are met where they are
//! read. An acquisition that meets one among its candidates searches once more, for
//! those that are sound; so damage costs a second search and no more. A repair holds the
//! record alone and the block's row, reads the clock after both, and writes what it has
//! judged.
//!
//! A renewal and a release are a single guarded update, which finds its row or
//! does not. Why it did not is looked up afterwards, and said by the rules of
//! [`StoreRecord`]. Several [renewals] are moved by one step, as far as that goes.

mod choice;
mod failure;
mod guard;
mod reading;
mod renewals;
mod rows;
mod session;

use std::thread;
use std::time::{Duration, Instant};

use self::choice::{choose, history_lost, refuse};
pub(super) use self::failure::{Cause, Failure, Stage, Verdict};
pub(super) use self::guard::{Guard, expect_rows};
use self::reading::{lock_record, look, look_at};
pub(super) use self::rows::Marks;
pub(super) use self::session::{
    Lock, Locked, Search, ServerState, Session, Snapshot, Which, Writes,
};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::connect::deadline;
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::grant::Grant;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::Quarantined;
use crate::lease::record::StoreRecord;
use crate::lease::report::{Listing, StoreReport};
use crate::lease::request::{Acquire, Floor, Init, Renew};
use crate::lease::stores::row::{BlockRow, RecordRow};
use crate::lease::voucher::Voucher;

/// The most blocks that a namespace may have in a SQL store, where each is a row
/// that `init` writes.
pub(super) const MAX_BLOCKS: u64 = 1 << 17;

/// A connection that was idle for longer is tried before it is used: a server
/// that went away in the meantime is then noticed while nothing is at stake.
const IDLE: Duration = Duration::from_secs(1);

/// A connection that nobody will need for so long, as far as is known, is closed. Both
/// servers keep a thread or a process for each, one of a few hundred; a new one costs them
/// some milliseconds.
const CLOSES_FOR: Duration = Duration::from_secs(20);

/// And nobody must have used it for so long: who starts one generator may start more.
const LINGERS: Duration = Duration::from_secs(2);

/// How long a transaction waits before it is repeated; doubled up to the second.
const PAUSE: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// The operations of a store, over a session that is opened when needed and kept
/// while it is sound.
pub(super) struct Client<S: Session> {
    server: S::Server,
    timeout: Duration,
    /// With the time of its last use.
    session: Option<(S, Instant)>,
}

impl<S: Session> Client<S> {
    pub(super) fn new(server: S::Server, timeout: Duration) -> Self {
        Self {
            server,
            timeout,
            session: None,
        }
    }

    pub(super) fn server(&self) -> &S::Server {
        &self.server
    }

    pub(super) fn init(
        &mut self,
        namespace: &Namespace,
        init: &Init,
        voucher: Voucher,
    ) -> Result<StoreRecord, StoreError> {
        let blocks = namespace.blocks();
        if blocks > MAX_BLOCKS {
            return Err(StoreError::Invalid {
                what: "the number of blocks of the namespace",
                value: blocks,
                min: 1,
                max: MAX_BLOCKS,
            });
        }
        let asked = Instant::now();
        self.run(namespace, "init", |session| {
            let present = session.begin_init(namespace.name())?;
            let present = present.ok_or_else(|| namespace.already_initialised())?;
            voucher.check(namespace, init, session.gate().durability())?;
            let ServerState {
                unix_ms,
                incarnation,
            } = present;
            let record = StoreRecord::create_at(namespace, init, &incarnation, unix_ms)?;
            // When it was asked, not after it has waited for others that make tables and blocks.
            let waited = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
            let asked_unix_ms = unix_ms.saturating_sub(waited);
            let nearest = init.now_unix_ms.clamp(asked_unix_ms, unix_ms);
            record.check_skew(nearest, init.now_unix_ms)?;
            let claims = init.claims(namespace);
            let (own, others) = claims.split_at(claims.len().min(1));
            refuse_second_use(session, namespace, own)?;
            match session.insert(&RecordRow::new(&record)) {
                // Another one was faster, and has the name or the secret.
                Err(Failure::Duplicate(cause)) => Err(Failure::Again(cause)),
                inserted => inserted,
            }?;
            // No index compares these. Of two transactions at once that claim one secret at
            // two widths, each has its row in place by now, so one of them meets the other's.
            refuse_second_use(session, namespace, others)?;
            session.add_blocks(namespace.name(), blocks)?;
            Ok(record)
        })
    }

    pub(super) fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        acquire.validate()?;
        self.run(namespace, "acquire", |session| {
            let mut at = lock_record(session, namespace, Lock::Shared)?;
            at.record.check_skew(at.unix_ms, acquire.now_unix_ms)?;
            let mut raised = false;
            let mut grants = Vec::new();
            let mut lost = None;
            if at.record.incarnation == at.incarnation {
                grants = choose(session, &mut at, acquire)?;
                lost = history_lost(session, &at, &acquire.evidence)?;
            }
            if at.record.incarnation != at.incarnation || lost.is_some() {
                session.roll_back()?;
                at = lock_record(session, namespace, Lock::Exclusive)?;
                at.record.check_skew(at.unix_ms, acquire.now_unix_ms)?;
                raised = at.record.observe(&at.incarnation, at.now);
                grants = choose(session, &mut at, acquire)?;
                lost = history_lost(session, &at, &acquire.evidence)?;
                if lost.is_some() {
                    grants.clear();
                    at.record.raise_floor(Floor::OverLostGrants, at.now)?;
                    raised = true;
                }
            }
            let refusal = match (lost, grants.as_slice()) {
                (Some(lost), _) => Some(lost),
                (None, []) => Some(refuse(session, &at, acquire)?),
                (None, _) => None,
            };
            if raised || refusal.is_none() {
                let writes = Writes {
                    record: raised.then_some(&at.record),
                    namespace,
                    grants: &grants,
                    granted_unix_ms: at.unix_ms,
                    holder: acquire.holder.as_ref(),
                };
                let written = session.commit(&writes);
                written.map_err(Failure::with_the_record_there)?;
            }
            refusal.map_or(Ok(grants), |refusal| Err(refusal.into()))
        })
    }

    pub(super) fn renew(
        &mut self,
        namespace: &Namespace,
        renew: &Renew,
    ) -> Result<u64, StoreError> {
        renew.validate()?;
        self.run(namespace, "renew", |session| {
            if let Some(end) = session.extend(namespace, renew)? {
                return Ok(end);
            }
            let (at, block) = look_at(session, namespace, renew.block)?;
            let block = block.as_ref();
            at.record.check_renewal(&at.incarnation, block, renew)?;
            Err(overtaken())
        })
    }

    pub(super) fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.run(namespace, "release", |session| {
            if session.mark_released(namespace, block, epoch)? {
                return Ok(());
            }
            StoreRecord::released(block, epoch, look_at(session, namespace, block)?.1)?;
            Err(overtaken())
        })
    }

    pub(super) fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        self.run(namespace, "list", |session| {
            let (at, judged) = look(session, namespace, Which::Granted)?;
            Ok(Listing::of_judged(at.record, judged))
        })
    }

    pub(super) fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        self.run(namespace, "repair", |session| {
            let at = lock_record(session, namespace, Lock::Exclusive)?;
            // An index that no column holds is of no row.
            let row = match i64::try_from(block.index()) {
                Ok(_) => session.lock_block(namespace.name(), block)?,
                Err(_) => None,
            };
            let mark = row.as_ref().and_then(BlockRow::mark);
            let Some(Err(Quarantined { block: Some(_), .. })) = row.map(|row| row.judge(namespace))
            else {
                return Err(StoreError::NotQuarantined { block }.into());
            };
            let unix_ms = session.clock()?;
            at.record.check_skew(unix_ms, now_unix_ms)?;
            let now = at.record.tick_at(unix_ms)?;
            let repaired = at.record.repaired(now, block, mark);
            let written = session.write_repair(namespace.name(), &repaired);
            written.map_err(Failure::with_the_record_there)?;
            Ok(repaired)
        })
    }

    pub(super) fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.run(namespace, "raise_floor", |session| {
            let mut at = lock_record(session, namespace, Lock::Exclusive)?;
            if floor.heeds_clocks() {
                at.record.check_skew(at.unix_ms, now_unix_ms)?;
            }
            at.record.raise_floor(floor, at.now)?;
            let writes = Writes {
                record: Some(&at.record),
                namespace,
                grants: &[],
                granted_unix_ms: at.unix_ms,
                holder: None,
            };
            let written = session.commit(&writes);
            written.map_err(Failure::with_the_record_there)?;
            Ok(at.record.floor)
        })
    }

    pub(super) fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        self.run(namespace, "check", |session| {
            let (at, judged) = look(session, namespace, Which::Granted)?;
            let gate = session.gate();
            let report = StoreReport::new(
                gate.store(),
                at.record,
                at.incarnation,
                gate.durability(),
                now_unix_ms,
            );
            Ok(report.at(at.unix_ms).with_blocks(at.now, judged))
        })
    }

    /// Lets `work` use the connection, if one is open, for something that is no
    /// operation of a store; closes the connection if that fails.
    #[cfg(feature = "mysql")]
    pub(super) fn also<E>(&mut self, work: impl FnOnce(&mut S) -> Result<(), E>) -> Result<(), E> {
        let Some((mut session, _)) = self.session.take() else {
            return Ok(());
        };
        work(&mut session)?;
        self.session = Some((session, Instant::now()));
        Ok(())
    }

    /// Closes a connection that would be idle for so long that the server does better
    /// with a new one.
    pub(super) fn rest(&mut self, at_least: Duration) {
        let idle = |(_, used): &mut (S, Instant)| used.elapsed() >= LINGERS;
        if at_least >= CLOSES_FOR {
            // Closed by its drop.
            self.session.take_if(idle);
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Runs `step`, again and again while the server takes it back and time is
    /// left. A failure becomes the caller's error.
    fn run<T>(
        &mut self,
        namespace: &Namespace,
        operation: &'static str,
        mut step: impl FnMut(&mut S) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let name = || namespace.name().to_owned();
        let deadline = self.deadline();
        let mut session = self
            .open(deadline)
            .map_err(|f| f.into_store_error(operation, name()))?;
        let [mut pause, longest] = PAUSE;
        loop {
            session.start(deadline);
            let failure = match step(&mut session) {
                Ok(answer) => {
                    self.session = Some((session, Instant::now()));
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            // A session that is not sound is dropped, which ends its connection
            // and with that its transaction.
            if !failure.connection_usable() || session.roll_back().is_err() {
                return Err(failure.into_store_error(operation, name()));
            }
            if !matches!(failure, Failure::Again(_)) || Instant::now() + pause >= deadline {
                self.session = Some((session, Instant::now()));
                return Err(failure.into_store_error(operation, name()));
            }
            thread::sleep(pause);
            pause = longest.min(pause * 2);
        }
    }

    fn open(&mut self, deadline: Instant) -> Result<S, Failure> {
        if let Some((mut session, used)) = self.session.take() {
            session.start(deadline);
            if used.elapsed() < IDLE || session.ping(deadline::of_a_try(self.timeout)).is_ok() {
                return Ok(session);
            }
        }
        S::connect(&self.server, deadline)
    }
}

/// Another transaction came between a look and an update, or the other way round.
fn overtaken() -> Failure {
    Failure::Again("another transaction changed the same rows at that moment".into())
}

/// Refuses a secret of which another namespace has one of these fingerprints. In the end an
/// index does for the namespace's own; this says which namespace it is.
fn refuse_second_use<S: Session>(
    session: &mut S,
    namespace: &Namespace,
    claims: &[Fingerprint],
) -> Result<(), Failure> {
    for &claimed in claims {
        let owner = session.namespace_of(&claimed.to_string())?;
        namespace.check_secret(claimed, owner.as_deref())?;
    }
    Ok(())
}

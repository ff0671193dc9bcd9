//! Reading a namespace's record and blocks: under lock, or as a snapshot.

use super::{Failure, Lock, ServerState, Session, Which};
use crate::lease::block::{Block, BlockState};
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::Judged;
use crate::lease::record::{Incarnation, StoreRecord};
use crate::lease::stores::row::RecordRow;

/// A record as a transaction reads it, with the server's state.
pub(super) struct Opened {
    pub(super) record: StoreRecord,
    /// The server's, not the one on record.
    pub(super) incarnation: Incarnation,
    /// The server's clock; under lock, read after the lock was granted.
    pub(super) unix_ms: u64,
    /// The same, in ticks.
    pub(super) now: u64,
}

/// Begins a transaction with the record under lock.
pub(super) fn lock_record<S: Session>(
    session: &mut S,
    namespace: &Namespace,
    lock: Lock,
) -> Result<Opened, Failure> {
    let (record, present) = session.begin(namespace.name(), lock)?;
    verified(record, present, namespace)
}

/// The record of a row, if it is the one that the caller means.
fn verified(
    record: Option<RecordRow>,
    present: ServerState,
    namespace: &Namespace,
) -> Result<Opened, Failure> {
    let record = record.ok_or(Failure::NoTable)?.into_record()?;
    record.verify(namespace)?;
    Ok(Opened {
        now: record.tick_at(present.unix_ms)?,
        record,
        incarnation: present.incarnation,
        unix_ms: present.unix_ms,
    })
}

/// Reads the record and the blocks, each judged, without a lock.
pub(super) fn look<S: Session>(
    session: &mut S,
    namespace: &Namespace,
    which: Which,
) -> Result<(Opened, Vec<Judged>), Failure> {
    let snapshot = session.snapshot(namespace.name(), which)?;
    let snapshot = snapshot.ok_or(Failure::NoTable)?;
    let at = verified(Some(snapshot.record), snapshot.state, namespace)?;
    let judged = snapshot.blocks.into_iter().map(|row| row.judge(namespace));
    Ok((at, judged.collect()))
}

/// As [`look`], of one block; a quarantined one is a [fence](crate::lease::quarantine::Quarantined::fence).
pub(super) fn look_at<S: Session>(
    session: &mut S,
    namespace: &Namespace,
    block: Block,
) -> Result<(Opened, Option<BlockState>), Failure> {
    let (at, judged) = look(session, namespace, Which::One(block))?;
    let judged = judged.into_iter().next().transpose();
    let known = judged.map_err(|found| found.fence(namespace, block))?;
    Ok((at, known))
}

//! The interface between an operation and a connection.

use std::time::{Duration, Instant};

use super::{Failure, Marks};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::connect::durability::DurabilityGate;
use crate::lease::grant::Grant;
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::record::{Incarnation, MarkWindow, StoreRecord};
use crate::lease::request::Renew;
use crate::lease::stores::row::{BlockRow, Columns, RecordRow};

/// How the record is locked until the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) enum Lock {
    /// Against changes.
    Shared,
    /// To change it.
    Exclusive,
}

/// How to treat blocks that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease::stores) enum Locked {
    /// Do without them.
    Skip,
    /// Wait for them.
    Wait,
}

/// The server at the moment of asking.
#[derive(Clone, Debug)]
pub(in crate::lease::stores) struct ServerState {
    pub(in crate::lease::stores) unix_ms: u64,
    pub(in crate::lease::stores) incarnation: Incarnation,
}

/// Which blocks can be granted.
#[derive(Clone, Debug)]
pub(in crate::lease::stores) struct Search<'a> {
    pub(in crate::lease::stores) namespace: &'a Namespace,
    /// Without those that are quarantined, by the rule of
    /// [`fault`](crate::lease::quarantine::fault).
    pub(in crate::lease::stores) sound: bool,
    pub(in crate::lease::stores) window: MarkWindow,
    pub(in crate::lease::stores) limit: u32,
}

/// The writes of an acquisition.
#[derive(Clone, Debug)]
pub(in crate::lease::stores) struct Writes<'a> {
    /// The record, where it has changed.
    pub(in crate::lease::stores) record: Option<&'a StoreRecord>,
    pub(in crate::lease::stores) namespace: &'a Namespace,
    pub(in crate::lease::stores) grants: &'a [Grant],
    pub(in crate::lease::stores) granted_unix_ms: u64,
    pub(in crate::lease::stores) holder: Option<&'a Holder>,
}

/// A namespace as one moment saw it.
#[derive(Clone, Debug)]
pub(in crate::lease::stores) struct Snapshot {
    pub(in crate::lease::stores) record: RecordRow,
    pub(in crate::lease::stores) state: ServerState,
    pub(in crate::lease::stores) blocks: Vec<BlockRow>,
}

impl Snapshot {
    /// Out of the rows that were read; none if the record is not among them.
    pub(in crate::lease::stores) fn read<C: Columns<Error = Failure>>(
        record: &[C],
        state: ServerState,
        blocks: &[C],
    ) -> Result<Option<Self>, Failure> {
        let Some(record) = record.first() else {
            return Ok(None);
        };
        Ok(Some(Self {
            record: RecordRow::read(record)?,
            state,
            blocks: blocks
                .iter()
                .map(BlockRow::read)
                .collect::<Result<_, _>>()?,
        }))
    }
}

/// Which blocks a snapshot holds.
#[derive(Clone, Copy, Debug)]
pub(in crate::lease::stores) enum Which {
    /// Those that were granted, by index.
    Granted,
    /// This one, if it was granted.
    One(Block),
}

/// A connection to a server, with the steps of every operation.
///
/// A session answers [`Failure::Refused`] with
/// [`NotDurable`](crate::lease::error::StoreError::NotDurable) wherever it hands out a [`ServerState`],
/// if the server can lose what it confirms and nobody accepted that.
pub(in crate::lease::stores) trait Session: Sized {
    /// How to reach the server.
    type Server;

    /// Connects, and checks what the server is and how it is set up.
    fn connect(server: &Self::Server, deadline: Instant) -> Result<Self, Failure>;

    /// Begins an operation that must be over by `deadline`.
    fn start(&mut self, deadline: Instant);

    /// One round trip, to see whether the server is there. No answer within `patience`
    /// is a failure.
    fn ping(&mut self, patience: Duration) -> Result<(), Failure>;

    /// Ends a transaction without effect, if there is one.
    fn roll_back(&mut self) -> Result<(), Failure>;

    /// The server's name and durability.
    fn gate(&self) -> &DurabilityGate;

    /// Makes the tables and columns that are missing, and begins
    /// a transaction; none if the namespace is on record.
    fn begin_init(&mut self, namespace: &str) -> Result<Option<ServerState>, Failure>;

    /// The namespace that has this fingerprint in the present format. Waits for the end of
    /// another transaction that has written it; or there is no other since
    /// [`begin_init`](Self::begin_init).
    fn namespace_of(&mut self, fingerprint: &str) -> Result<Option<String>, Failure>;

    /// Writes the record.
    fn insert(&mut self, record: &RecordRow) -> Result<(), Failure>;

    /// Writes the rows of as many blocks, and commits.
    fn add_blocks(&mut self, namespace: &str, blocks: u64) -> Result<(), Failure>;

    /// Begins a transaction with the record locked, if there is one.
    fn begin(
        &mut self,
        namespace: &str,
        lock: Lock,
    ) -> Result<(Option<RecordRow>, ServerState), Failure>;

    /// Locks the blocks to be granted, the lowest mark first.
    fn candidates(&mut self, search: &Search<'_>, locked: Locked)
    -> Result<Vec<BlockRow>, Failure>;

    /// Those of these blocks that were granted, as they are now, without locks.
    fn known(&mut self, namespace: &str, blocks: &[i64]) -> Result<Vec<BlockRow>, Failure>;

    /// The lowest marks of blocks that were granted.
    fn marks(&mut self, namespace: &str) -> Result<Marks, Failure>;

    /// The server's clock, in milliseconds since 1970.
    fn clock(&mut self) -> Result<u64, Failure>;

    /// Writes, and commits.
    fn commit(&mut self, writes: &Writes<'_>) -> Result<(), Failure>;

    /// Locks a row of a block within a transaction, and reads it.
    fn lock_block(&mut self, namespace: &str, block: Block) -> Result<Option<BlockRow>, Failure>;

    /// Writes a repaired block, which is under lock, and commits.
    fn write_repair(&mut self, namespace: &str, repaired: &BlockState) -> Result<(), Failure>;

    /// Moves the end of a grant if everything agrees, in a transaction of its
    /// own, and answers where it is now. The rules are those of
    /// [`StoreRecord::check_renewal`] and [`StoreRecord::renewed_end`].
    fn extend(&mut self, namespace: &Namespace, renew: &Renew) -> Result<Option<u64>, Failure>;

    /// As [`extend`](Self::extend) for each of these, in one transaction: where each end is
    /// now, in their order, and none for those that were left as they were. No two are of
    /// one block. Rows that others have locked are passed over.
    ///
    /// A failure but for [`Failure::Unknown`] means that none was moved.
    fn extend_all(
        &mut self,
        renewals: &[(&Namespace, &Renew)],
    ) -> Result<Vec<Option<u64>>, Failure>;

    /// Notes a release if everything agrees, in a transaction of its own, and
    /// answers whether it did.
    fn mark_released(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<bool, Failure>;

    /// Reads, in a transaction of its own that locks nothing.
    fn snapshot(&mut self, namespace: &str, which: Which) -> Result<Option<Snapshot>, Failure>;
}

//! The statements of each step, in as few round trips as possible: a statement that does
//! not need the answer to the one before is pipelined behind it.

mod calls;
mod renewal;

use std::time::{Duration, Instant};

use futures_util::future::{join, join3, join5};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::columns::{Parameter, column, first};
use super::failure::silent;
use super::lock::RecordLock;
use super::server::Server;
use super::statements as sql;
use super::wire::Wire;
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::connect::durability::DurabilityGate;
use crate::lease::grant::Grant;
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::record::{Incarnation, StoreRecord};
use crate::lease::request::Renew;
use crate::lease::stores::row::{BlockRow, RecordRow, from_column, to_column};
use crate::lease::stores::sql::{
    Failure, Lock, Locked, Marks, Search, ServerState, Session, Snapshot, Stage, Which, Writes,
    expect_rows,
};

/// The first version with `AS MATERIALIZED`, as `server_version_num` has it.
const OLDEST: i32 = 12_00_00;

pub(super) struct PgSession {
    wire: Wire,
    /// [`sql::BEGIN`] and [`sql::BEGIN_READ`] with the limits on time.
    begin: String,
    begin_read: String,
    in_transaction: bool,
    gate: DurabilityGate,
}

impl PgSession {
    fn update_record(&mut self, record: &StoreRecord) -> Result<(), Failure> {
        let row = RecordRow::new(record);
        let changed = self.change(
            sql::UPDATE_RECORD,
            &[
                (&row.name, Type::TEXT),
                (&row.floor, Type::INT8),
                (&row.incarnation, Type::TEXT),
            ],
        )?;
        expect_rows(changed, 1)
    }

    /// What [`sql::SERVER_STATE`] says, if the server may be used.
    fn server_state(&mut self, row: &Row) -> Result<ServerState, Failure> {
        let Some(incarnation) = column::<Option<String>>(row, 1)? else {
            return Err(Failure::NotDone(
                "the server is a standby in recovery: connect to the primary, \
                 for instance with several hosts and target_session_attrs=read-write"
                    .into(),
            ));
        };
        let mut reasons = Vec::new();
        for (index, setting) in [(2, "fsync"), (3, "full_page_writes")] {
            let value: String = column(row, index)?;
            if value != "on" {
                reasons.push(format!("{setting} is {value}, and must be on"));
            }
        }
        if let Some(tables) = column::<Option<String>>(row, 4)? {
            reasons.push(format!(
                "not permanent, but unlogged or temporary: {tables}"
            ));
        }
        self.gate.admit_all(&reasons)?;
        Ok(ServerState {
            unix_ms: from_column("the server's clock", column(row, 0)?)?,
            incarnation: Incarnation::new(incarnation),
        })
    }
}

impl Session for PgSession {
    type Server = Server;

    fn connect(server: &Server, deadline: Instant) -> Result<Self, Failure> {
        let wire = Wire::connect(server, deadline)?;
        let ms = server.timeout_ms();
        let limits = format!(
            " SET LOCAL lock_timeout = {ms}; SET LOCAL statement_timeout = {ms}; \
             SET LOCAL idle_in_transaction_session_timeout = {ms}"
        );
        let mut session = Self {
            wire,
            begin: format!("{}{limits}", sql::BEGIN),
            begin_read: format!("{}{limits}", sql::BEGIN_READ),
            in_transaction: false,
            // Until its version is known.
            gate: DurabilityGate::new(String::new(), server.accepts_best_effort),
        };
        let version: i32 = column(&session.query_one(sql::VERSION)?, 0)?;
        if version < OLDEST {
            let oldest = OLDEST / 1_00_00;
            return Err(Failure::NotDone(
                format!("the server has version number {version}: PostgreSQL {oldest} is needed")
                    .into(),
            ));
        }
        let (major, minor) = (version / 1_00_00, version % 1_00_00);
        let name = format!("PostgreSQL {major}.{minor} ({server})");
        session.gate = DurabilityGate::new(name, server.accepts_best_effort);
        let row = session.query_one(sql::SERVER_STATE)?;
        session.server_state(&row)?;
        Ok(session)
    }

    fn start(&mut self, deadline: Instant) {
        self.wire.start(deadline);
    }

    fn ping(&mut self, patience: Duration) -> Result<(), Failure> {
        self.wire.start(Instant::now() + patience);
        self.batch("")
    }

    fn roll_back(&mut self) -> Result<(), Failure> {
        if self.in_transaction {
            self.batch(sql::ROLLBACK)?;
            self.in_transaction = false;
        }
        Ok(())
    }

    fn gate(&self) -> &DurabilityGate {
        &self.gate
    }

    fn begin_init(&mut self, namespace: &str) -> Result<Option<ServerState>, Failure> {
        self.in_transaction = true;
        let begin = self.begin.as_str();
        let answers = self.wire.call(async |client| {
            join3(
                client.batch_execute(begin),
                client.execute_typed(sql::INIT_LOCK, &[]),
                client.query_typed(sql::HAS_TABLES, &[]),
            )
            .await
        });
        let (begun, locked, has_tables) = answers.map_err(silent)?;
        self.answered(begun, Stage::Before)?;
        self.answered(locked, Stage::Before)?;
        let has_tables = first(self.answered(has_tables, Stage::Before)?)?;
        if !column::<bool>(&has_tables, 0)? {
            self.batch(sql::CREATE_TABLES)?;
        }

        let name: Parameter<'_> = (&namespace, Type::TEXT);
        let answers = self.wire.call(async |client| {
            join(
                client.query_typed(sql::IS_RECORDED, std::slice::from_ref(&name)),
                client.query_typed(sql::SERVER_STATE, &[]),
            )
            .await
        });
        let (recorded, present) = answers.map_err(silent)?;
        let recorded = first(self.answered(recorded, Stage::Before)?)?;
        let present = first(self.answered(present, Stage::Before)?)?;
        if column(&recorded, 0)? {
            return Ok(None);
        }
        self.server_state(&present).map(Some)
    }

    fn insert(&mut self, record: &RecordRow) -> Result<(), Failure> {
        let made = self.change(
            sql::CREATE_RECORD,
            &[
                (&record.format, Type::INT8),
                (&record.name, Type::TEXT),
                (&record.layout, Type::TEXT),
                (&record.block_bits, Type::INT8),
                (&record.fingerprint, Type::TEXT),
                (&record.horizon_ms, Type::INT8),
                (&record.failover_ms, Type::INT8),
                (&record.skew_ms, Type::INT8),
                (&record.floor, Type::INT8),
                (&record.incarnation, Type::TEXT),
            ],
        )?;
        expect_rows(made, 1)
    }

    fn add_blocks(&mut self, namespace: &str, blocks: u64) -> Result<(), Failure> {
        let made = self.change(
            sql::CREATE_BLOCKS,
            &[(&namespace, Type::TEXT), (&to_column(blocks), Type::INT8)],
        )?;
        expect_rows(made, blocks)?;
        self.end_transaction()
    }

    fn namespace_of(&mut self, fingerprint: &str) -> Result<Option<String>, Failure> {
        let rows = self.query(sql::NAMESPACE_OF, &[(&fingerprint, Type::TEXT)])?;
        rows.first().map(|row| column(row, 0)).transpose()
    }

    fn begin(
        &mut self,
        namespace: &str,
        lock: Lock,
    ) -> Result<(Option<RecordRow>, ServerState), Failure> {
        let (begin, record) = match lock {
            Lock::Shared => (self.begin.clone(), sql::RECORD_SHARED),
            Lock::Exclusive => {
                let lock = RecordLock::of(namespace).exclusive();
                (format!("{}; {lock}", self.begin), sql::RECORD_EXCLUSIVE)
            }
        };
        self.in_transaction = true;
        let name: Parameter<'_> = (&namespace, Type::TEXT);
        let answers = self.wire.call(async |client| {
            join3(
                client.batch_execute(&begin),
                client.query_typed(record, std::slice::from_ref(&name)),
                client.query_typed(sql::SERVER_STATE, &[]),
            )
            .await
        });
        let (begun, record, present) = answers.map_err(silent)?;
        self.answered(begun, Stage::Before)?;
        let record = self.answered(record, Stage::Before)?;
        let present = first(self.answered(present, Stage::Before)?)?;
        let record = record.first().map(RecordRow::read).transpose()?;
        Ok((record, self.server_state(&present)?))
    }

    fn candidates(
        &mut self,
        search: &Search<'_>,
        locked: Locked,
    ) -> Result<Vec<BlockRow>, Failure> {
        let sql = match locked {
            Locked::Skip => sql::CANDIDATES,
            Locked::Wait => sql::CANDIDATES_WAITING,
        };
        let namespace = search.namespace;
        let idle_until = to_column(search.window.idle_until);
        let released_below = to_column(search.window.released_below);
        let limit = i64::from(search.limit);
        let rows = self.query(
            sql,
            &[
                (&namespace.name(), Type::TEXT),
                (&idle_until, Type::INT8),
                (&released_below, Type::INT8),
                (&limit, Type::INT8),
                (&search.sound, Type::BOOL),
                (&to_column(namespace.blocks()), Type::INT8),
                (&to_column(namespace.layout().ticks()), Type::INT8),
            ],
        )?;
        rows.iter().map(BlockRow::read).collect()
    }

    fn known(&mut self, namespace: &str, blocks: &[i64]) -> Result<Vec<BlockRow>, Failure> {
        let parameters = [
            (&namespace as _, Type::TEXT),
            (&blocks as _, Type::INT8_ARRAY),
        ];
        let rows = self.query(sql::KNOWN, &parameters)?;
        rows.iter().map(BlockRow::read).collect()
    }

    fn marks(&mut self, namespace: &str) -> Result<Marks, Failure> {
        let row = first(self.query(sql::MARKS, &[(&namespace, Type::TEXT)])?)?;
        Ok(Marks {
            held: column(&row, 0)?,
            released: column(&row, 1)?,
        })
    }

    fn clock(&mut self) -> Result<u64, Failure> {
        let row = self.query_one(sql::CLOCK)?;
        Ok(from_column("the server's clock", column(&row, 0)?)?)
    }

    fn commit(&mut self, writes: &Writes<'_>) -> Result<(), Failure> {
        if let Some(record) = writes.record {
            self.update_record(record)?;
        }
        if !writes.grants.is_empty() {
            let numbers = |of: fn(&Grant) -> u64| -> Vec<i64> {
                writes.grants.iter().map(|g| to_column(of(g))).collect()
            };
            let rows = self.query(
                sql::GRANT,
                &[
                    (&writes.namespace.name(), Type::TEXT),
                    (&numbers(|grant| grant.block.index()), Type::INT8_ARRAY),
                    (&numbers(|grant| grant.epoch.get()), Type::INT8_ARRAY),
                    (&numbers(|grant| grant.ticks.start), Type::INT8_ARRAY),
                    (&numbers(|grant| grant.ticks.end), Type::INT8_ARRAY),
                    (&to_column(writes.granted_unix_ms), Type::INT8),
                    (&writes.holder.map(Holder::host), Type::TEXT),
                    (&writes.holder.map(Holder::instance), Type::TEXT),
                    (&to_column(a_week_before(writes)), Type::INT8),
                ],
            )?;
            let row = first(rows)?;
            let all = writes.grants.len() as u64;
            for index in [0, 1] {
                expect_rows(from_column("a count", column(&row, index)?)?, all)?;
            }
        }
        self.end_transaction()
    }

    fn lock_block(&mut self, namespace: &str, block: Block) -> Result<Option<BlockRow>, Failure> {
        let block = to_column(block.index());
        let parameters = [(&namespace as _, Type::TEXT), (&block as _, Type::INT8)];
        let rows = self.query(sql::ONE_LOCKED, &parameters)?;
        rows.first().map(BlockRow::read).transpose()
    }

    fn write_repair(&mut self, namespace: &str, repaired: &BlockState) -> Result<(), Failure> {
        let numbers = [
            repaired.block.index(),
            repaired.epoch.get(),
            repaired.hwm_end,
        ];
        let [block, epoch, hwm_end] = numbers.map(to_column);
        let changed = self.change(
            sql::REPAIR,
            &[
                (&namespace, Type::TEXT),
                (&block, Type::INT8),
                (&epoch, Type::INT8),
                (&hwm_end, Type::INT8),
            ],
        )?;
        expect_rows(changed, 1)?;
        self.end_transaction()
    }

    fn extend(&mut self, namespace: &Namespace, renew: &Renew) -> Result<Option<u64>, Failure> {
        self.extend_one(namespace, renew)
    }

    fn extend_all(
        &mut self,
        renewals: &[(&Namespace, &Renew)],
    ) -> Result<Vec<Option<u64>>, Failure> {
        self.extend_many(renewals)
    }

    fn mark_released(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<bool, Failure> {
        self.release_one(namespace, block, epoch)
    }

    fn snapshot(&mut self, namespace: &str, which: Which) -> Result<Option<Snapshot>, Failure> {
        let begin = self.begin_read.as_str();
        let name: Parameter<'_> = (&namespace, Type::TEXT);
        let index;
        let (sql, parameters) = match which {
            Which::Granted => (sql::GRANTED, vec![name.clone()]),
            Which::One(block) => {
                index = to_column(block.index());
                (sql::GRANTED_ONE, vec![name.clone(), (&index, Type::INT8)])
            }
        };
        let answers = self.wire.call(async |client| {
            join5(
                client.batch_execute(begin),
                client.query_typed(sql::RECORD, std::slice::from_ref(&name)),
                client.query_typed(sql::SERVER_STATE, &[]),
                client.query_typed(sql, &parameters),
                client.batch_execute(sql::COMMIT),
            )
            .await
        });
        let (begun, record, present, blocks, ended) = answers.map_err(silent)?;
        self.answered(begun, Stage::Before)?;
        let record = self.answered(record, Stage::Before)?;
        let present = first(self.answered(present, Stage::Before)?)?;
        let blocks = self.answered(blocks, Stage::Before)?;
        self.answered(ended, Stage::Before)?;
        let present = self.server_state(&present)?;
        Snapshot::read(&record, present, &blocks)
    }
}

/// The tick that the ledger's rows must have reached to be kept.
fn a_week_before(writes: &Writes<'_>) -> u64 {
    const WEEK_MS: u64 = 7 * 24 * 3600 * 1000;
    let then = writes.granted_unix_ms.saturating_sub(WEEK_MS);
    writes.namespace.layout().tick_at(then).unwrap_or(0)
}

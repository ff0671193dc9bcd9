//! The statements of each step.

mod calls;
mod renewal;

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Error, Opts, Value};

use super::columns::{column, guard};
use super::failure::{before, no_connection, silent};
use super::flavour::Flavour;
use super::server::{Server, address_of};
use super::socket;
use super::statements::{self as sql, Statements};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::connect::durability::DurabilityGate;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::record::{Incarnation, StoreRecord};
use crate::lease::request::Renew;
use crate::lease::stores::row::{BlockRow, RecordRow, from_column, to_column};
use crate::lease::stores::sql::{
    Cause, Failure, Lock, Locked, Marks, Search, ServerState, Session, Snapshot, Which, Writes,
    expect_rows,
};

pub(super) struct MySession {
    connection: Conn,
    statements: Statements,
    in_transaction: bool,
    timeout: Duration,
    patience: Duration,
    /// When the last statement of the operation may be sent.
    latest: Instant,
    gate: DurabilityGate,
}

impl MySession {
    fn server_state(&mut self) -> Result<ServerState, Failure> {
        let statement = std::mem::take(&mut self.statements.present);
        let row = self.row(&statement, ());
        self.statements.present = statement;
        let row = row?;
        let setting = |index| column::<String>(&row, index).map(|text| text.to_uppercase());

        let is_on = |value: &str| !matches!(value, "0" | "OFF");
        if is_on(&setting(6)?) {
            return Err(Failure::NotDone(
                "the server is read-only, as replicas are: connect to the primary".into(),
            ));
        }
        let mut reasons = Vec::new();
        let flush = setting(2)?;
        if flush != "1" {
            reasons.push(format!(
                "innodb_flush_log_at_trx_commit is {flush}, and must be 1"
            ));
        }
        let sync = setting(4)?;
        if is_on(&setting(3)?) && sync != "1" {
            reasons.push(format!(
                "sync_binlog is {sync}, and must be 1 where log_bin is on"
            ));
        }
        let doublewrite = setting(5)?;
        if matches!(doublewrite.as_str(), "0" | "OFF" | "DETECT_ONLY") {
            reasons.push(format!(
                "innodb_doublewrite is {doublewrite}, and must be on"
            ));
        }
        self.gate.admit_all(&reasons)?;
        Ok(ServerState {
            unix_ms: from_column("the server's clock", column(&row, 0)?)?,
            incarnation: Incarnation::new(column::<String>(&row, 1)?),
        })
    }

    fn judge_engines(&mut self) -> Result<(), Failure> {
        let rows = self.rows(sql::OTHER_ENGINES, ())?;
        let names: Result<Vec<String>, Failure> = rows.iter().map(|row| column(row, 0)).collect();
        let names = names?;
        let weakness = (!names.is_empty())
            .then(|| format!("{} must be tables of InnoDB", names.join(" and ")));
        Ok(self.gate.admit(weakness)?)
    }

    fn update_record(&mut self, record: &StoreRecord) -> Result<(), Failure> {
        let row = RecordRow::new(record);
        let parameters = (row.floor, row.incarnation, row.name);
        expect_rows(self.change(sql::UPDATE_RECORD, parameters)?, 1)
    }

    fn at(server: &Server, host: &Opts, deadline: Instant) -> Result<Self, Failure> {
        let connection = server.connect(host).map_err(no_connection)?;
        let mut session = Self {
            connection,
            // Until it is known which it is.
            statements: Statements::new(Flavour::MySql),
            in_transaction: false,
            timeout: server.timeout,
            patience: server.patience,
            latest: deadline,
            // Until its version is known.
            gate: DurabilityGate::new(String::new(), server.accepts_best_effort),
        };
        session.start(deadline);
        let lock_wait = server.patience.as_secs().clamp(1, 1 << 20);
        for statement in sql::set_up(lock_wait as u32) {
            session.run(&statement)?;
        }
        let version: String = column(&session.row(sql::VERSION, ())?, 0)?;
        let flavour = Flavour::of(&version).map_err(|old| Failure::NotDone(old.into()))?;
        session.statements = Statements::new(flavour);
        let name = format!(
            "{} {version} ({} at {})",
            flavour.name(),
            host.get_db_name().unwrap_or_default(),
            address_of(host)
        );
        session.gate = DurabilityGate::new(name, server.accepts_best_effort);
        session.server_state()?;
        session.judge_engines()?;
        Ok(session)
    }

    /// Adds a row to `WORKER_NODE`, as long as there is time before `deadline`.
    pub(super) fn note_launch(
        &mut self,
        holder: Option<&Holder>,
        deadline: Instant,
    ) -> Result<(), Cause> {
        self.start(deadline);
        if Instant::now() > self.latest {
            return Err(self.too_late());
        }
        let parameters = (holder.map(Holder::host), holder.map(Holder::instance));
        Ok(self.connection.exec_drop(sql::NOTE_LAUNCH, parameters)?)
    }
}

impl Session for MySession {
    type Server = Server;

    /// Tries one host after another: one that is gone, lets nobody in or is a replica
    /// is passed over.
    fn connect(server: &Server, deadline: Instant) -> Result<Self, Failure> {
        let mut last = None;
        for host in server.in_turn() {
            if last.is_some() && Instant::now() > deadline - server.patience {
                break;
            }
            match Self::at(server, host, deadline) {
                Err(failure @ (Failure::NotDone(_) | Failure::Denied(_))) => {
                    server.pass_on();
                    last = Some(failure);
                }
                other => return other,
            }
        }
        Err(last.unwrap_or_else(|| Failure::NotDone("there is no host to connect to".into())))
    }

    fn start(&mut self, deadline: Instant) {
        self.latest = deadline - self.patience;
    }

    fn ping(&mut self, patience: Duration) -> Result<(), Failure> {
        self.in_time()?;
        socket::wait_for(&self.connection, patience.min(self.patience)).map_err(silent)?;
        self.connection.ping().map_err(before)?;
        socket::wait_for(&self.connection, self.patience).map_err(silent)
    }

    fn roll_back(&mut self) -> Result<(), Failure> {
        if self.in_transaction {
            self.run(sql::ROLLBACK)?;
            self.in_transaction = false;
        }
        Ok(())
    }

    fn gate(&self) -> &DurabilityGate {
        &self.gate
    }

    fn begin_init(&mut self, namespace: &str) -> Result<Option<ServerState>, Failure> {
        // A table is made in a transaction of its own, and only if it is not
        // there: somebody else may make it at the same time.
        let tables: u64 = column(&self.row(sql::COUNT_TABLES, ())?, 0)?;
        if tables < sql::CREATE_TABLES.len() as u64 {
            for statement in sql::CREATE_TABLES {
                self.run(statement)?;
            }
        }
        if column::<u64>(&self.row(sql::COUNT_ADDITIONS, ())?, 0)? == 0 {
            for statement in sql::ADD {
                self.add(statement)?;
            }
        }
        self.judge_engines()?;
        self.in_time()?;
        match self.connection.query_drop(sql::CREATE_WORKER_NODE) {
            // Nothing depends on it. A store that misses it will say so.
            Ok(()) | Err(Error::MySqlError(_)) => {}
            Err(silent) => return Err(before(silent)),
        }
        self.begin_transaction()?;
        if column(&self.row(sql::IS_RECORDED, (namespace,))?, 0)? {
            return Ok(None);
        }
        self.server_state().map(Some)
    }

    fn insert(&mut self, record: &RecordRow) -> Result<(), Failure> {
        self.change(
            sql::CREATE_RECORD,
            (
                record.format,
                &record.name,
                &record.layout,
                record.block_bits,
                &record.fingerprint,
                record.horizon_ms,
                record.failover_ms,
                record.skew_ms,
                record.floor,
                &record.incarnation,
                secret(record),
            ),
        )
        .map(drop)
    }

    fn add_blocks(&mut self, namespace: &str, blocks: u64) -> Result<(), Failure> {
        self.change(sql::CREATE_FIRST_BLOCK, (namespace,))?;
        // A power of two, as the nodes of every layout and block are.
        let mut made = 1;
        while made < blocks {
            self.change(sql::DOUBLE_BLOCKS, (made, namespace))?;
            made *= 2;
        }
        self.end_transaction()
    }

    fn namespace_of(&mut self, fingerprint: &str) -> Result<Option<String>, Failure> {
        let rows = self.rows(sql::NAMESPACE_OF, (fingerprint,))?;
        rows.first().map(|row| column(row, 0)).transpose()
    }

    fn begin(
        &mut self,
        namespace: &str,
        lock: Lock,
    ) -> Result<(Option<RecordRow>, ServerState), Failure> {
        self.begin_transaction()?;
        let record = self.rows(
            match lock {
                Lock::Shared => sql::RECORD_SHARED,
                Lock::Exclusive => sql::RECORD_EXCLUSIVE,
            },
            (namespace,),
        )?;
        let present = self.server_state()?;
        Ok((record.first().map(RecordRow::read).transpose()?, present))
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
        let rows = self.rows(
            sql,
            (
                search.namespace.name(),
                to_column(search.window.idle_until),
                to_column(search.window.released_below),
                search.sound,
                to_column(search.namespace.blocks()),
                to_column(search.namespace.layout().ticks()),
                search.limit,
            ),
        )?;
        rows.iter().map(BlockRow::read).collect()
    }

    fn known(&mut self, namespace: &str, blocks: &[i64]) -> Result<Vec<BlockRow>, Failure> {
        let mut parameters: Vec<Value> = vec![namespace.into()];
        parameters.extend(blocks.iter().map(|&block| Value::from(block)));
        let rows = self.rows(&sql::known(blocks.len()), parameters)?;
        rows.iter().map(BlockRow::read).collect()
    }

    fn marks(&mut self, namespace: &str) -> Result<Marks, Failure> {
        let row = self.row(sql::MARKS, (namespace,))?;
        Ok(Marks {
            held: column(&row, 0)?,
            released: column(&row, 1)?,
        })
    }

    fn clock(&mut self) -> Result<u64, Failure> {
        let row = self.row(sql::CLOCK, ())?;
        Ok(from_column("the server's clock", column(&row, 0)?)?)
    }

    fn commit(&mut self, writes: &Writes<'_>) -> Result<(), Failure> {
        if let Some(record) = writes.record {
            self.update_record(record)?;
        }
        let grants = writes.grants;
        if !grants.is_empty() {
            let mut parameters: Vec<Value> = Vec::with_capacity(3 * grants.len() + 4);
            for grant in grants {
                parameters.push(to_column(grant.block.index()).into());
                parameters.push(to_column(grant.ticks.end).into());
            }
            parameters.push(to_column(writes.granted_unix_ms).into());
            parameters.push(writes.holder.map(Holder::host).into());
            parameters.push(writes.holder.map(Holder::instance).into());
            parameters.push(writes.namespace.name().into());
            let blocks = grants.iter().map(|g| to_column(g.block.index()).into());
            parameters.extend(blocks);
            let moved = self.change(&sql::grant(grants.len()), parameters)?;
            expect_rows(moved, grants.len() as u64)?;
        }
        self.end_transaction()
    }

    fn lock_block(&mut self, namespace: &str, block: Block) -> Result<Option<BlockRow>, Failure> {
        let parameters = (namespace, to_column(block.index()));
        let rows = self.rows(sql::ONE_LOCKED, parameters)?;
        rows.first().map(BlockRow::read).transpose()
    }

    fn write_repair(&mut self, namespace: &str, repaired: &BlockState) -> Result<(), Failure> {
        let numbers = [
            repaired.epoch.get(),
            repaired.hwm_end,
            repaired.block.index(),
        ];
        let [epoch, hwm_end, block] = numbers.map(to_column);
        let parameters = (epoch, hwm_end, namespace, block);
        expect_rows(self.change(sql::REPAIR, parameters)?, 1)?;
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
        let parameters = guard(namespace, block, epoch);
        self.guarded(&sql::release(), parameters.to_vec())
    }

    fn snapshot(&mut self, namespace: &str, which: Which) -> Result<Option<Snapshot>, Failure> {
        for statement in sql::BEGIN_READ {
            self.run(statement)?;
        }
        self.in_transaction = true;
        let record = self.rows(sql::RECORD, (namespace,))?;
        let present = self.server_state()?;
        let blocks = match which {
            Which::Granted => self.rows(sql::GRANTED, (namespace,))?,
            Which::One(block) => {
                self.rows(sql::GRANTED_ONE, (namespace, to_column(block.index())))?
            }
        };
        self.run(sql::COMMIT)?;
        self.in_transaction = false;
        Snapshot::read(&record, present, &blocks)
    }
}

/// The value that no two records share: the fingerprint of a secret.
fn secret(record: &RecordRow) -> Option<&str> {
    let is_plain = record.fingerprint == Fingerprint::PLAIN.to_string();
    (!is_plain).then_some(&record.fingerprint)
}

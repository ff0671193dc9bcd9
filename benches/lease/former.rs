//! A renewal that shares a lock on the record's row, as a yardstick.

use futures_util::future::join4;
use ringflake::lease::{Namespace, Renew};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls};

use crate::{Outcome, Renewer};

const BEGIN: &str = "\
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SET LOCAL synchronous_commit = on;
    SET LOCAL client_min_messages = error;
    SET LOCAL lock_timeout = 30000; SET LOCAL statement_timeout = 30000;
    SET LOCAL idle_in_transaction_session_timeout = 30000";

const HEAR: &str = "SET LOCAL client_min_messages = warning";

const EXTEND: &str = "
    WITH record AS MATERIALIZED (
        SELECT number, floor, incarnation, horizon_ms FROM ringflake_namespace
        WHERE name = $1 AND format = $2 AND layout = $3 AND block_bits = $4
            AND fingerprint = $5
        FOR SHARE
    ), moved AS (
        UPDATE ringflake_block AS b
        SET hwm_end = greatest($8, least($9, $12,
                (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - $10) / $11
                    + record.horizon_ms / $11)),
            released = false
        FROM record
        WHERE b.namespace = $1 AND b.block = $6 AND b.epoch = $7 AND b.epoch > 0
            AND b.hwm_end = $8 AND record.floor <= $8
            AND floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint >= $10
            AND record.incarnation = CASE WHEN pg_is_in_recovery() THEN NULL
                ELSE concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
                    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
                    to_regclass('ringflake_block')::oid) END
            AND ($13 OR current_setting('fsync') = 'on'
                AND current_setting('full_page_writes') = 'on')
        RETURNING b.hwm_end
    ), noted AS (
        UPDATE ringflake_ledger AS l
        SET ticks = int8range(lower(l.ticks), moved.hwm_end)
        FROM moved, record
        WHERE l.number = record.number AND l.block = $6 AND l.epoch = $7
            AND upper(l.ticks) < moved.hwm_end
    )
    SELECT hwm_end FROM moved";

/// A connection of the yardstick's own.
pub(crate) struct Former {
    runtime: Runtime,
    client: Client,
}

impl Former {
    pub(crate) fn connect(url: &str) -> Outcome<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls))?;
        runtime.spawn(connection);
        Ok(Self { runtime, client })
    }
}

impl Renewer for Former {
    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Outcome<u64> {
        let layout = space.layout();
        let (shape, fingerprint) = (layout.to_string(), space.fingerprint().to_string());
        let (name, format) = (space.name(), 2_i64);
        let number = |number: u64| i64::try_from(number);
        let block_bits = i64::from(space.block_bits());
        let block = number(renew.block.index())?;
        let epoch = number(renew.epoch.get())?;
        let known_end = number(renew.known_end)?;
        let new_end = number(renew.new_end)?;
        let epoch_unix_ms = number(layout.epoch_unix_ms())?;
        let (tick_ms, ticks) = (number(layout.tick_ms())?, number(layout.ticks())?);
        let parameters: [(&(dyn ToSql + Sync), Type); 13] = [
            (&name, Type::TEXT),
            (&format, Type::INT8),
            (&shape, Type::TEXT),
            (&block_bits, Type::INT8),
            (&fingerprint, Type::TEXT),
            (&block, Type::INT8),
            (&epoch, Type::INT8),
            (&known_end, Type::INT8),
            (&new_end, Type::INT8),
            (&epoch_unix_ms, Type::INT8),
            (&tick_ms, Type::INT8),
            (&ticks, Type::INT8),
            (&false, Type::BOOL),
        ];
        let client = &self.client;
        let (begun, rows, sound, committed) = self.runtime.block_on(async {
            join4(
                client.batch_execute(BEGIN),
                client.query_typed(EXTEND, &parameters),
                client.batch_execute(HEAR),
                client.batch_execute("COMMIT"),
            )
            .await
        });
        begun?;
        let rows = rows?;
        sound?;
        committed?;
        let row = rows.first().ok_or("the renewal was refused")?;
        Ok(u64::try_from(row.try_get::<_, i64>(0)?)?)
    }
}

//! PostgreSQL.

use super::PutBack;
use super::served::Server;
use ringflake_kit::server::Postgres;

impl Server for Postgres {
    /// All tables, in one transaction.
    fn keep_rows(&self, _: &str) -> PutBack {
        let admin = self.admin();
        admin.execute(
            "BEGIN ISOLATION LEVEL REPEATABLE READ;
             DROP TABLE IF EXISTS kept, kept_ledger;
             CREATE TABLE kept AS SELECT key, value, rank FROM ringflake;
             CREATE TABLE kept_ledger AS SELECT * FROM ringflake_ledger;
             COMMIT;",
        );
        Box::new(move || {
            let done = admin.try_execute(
                "BEGIN;
                 -- Without the trigger.
                 SET LOCAL session_replication_role = replica;
                 LOCK TABLE ringflake, ringflake_ledger;
                 DELETE FROM ringflake;
                 DELETE FROM ringflake_ledger;
                 INSERT INTO ringflake (key, value, rank) SELECT * FROM kept;
                 INSERT INTO ringflake_ledger SELECT * FROM kept_ledger;
                 COMMIT;",
            );
            done.map_err(|error| format!("{error:?}"))
        })
    }

    fn damage(&self, namespace: &str, block: u64) {
        self.admin().execute(&format!(
            "UPDATE ringflake SET value = '{{' WHERE key = '{namespace}/block/{block:020}'"
        ));
    }
}

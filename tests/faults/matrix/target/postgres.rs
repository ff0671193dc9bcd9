//! PostgreSQL.

use super::served::Server;
use super::{PutBack, with_impossible_mark};
use ringflake_kit::server::Postgres;

impl Server for Postgres {
    /// All tables, in one transaction.
    fn keep_rows(&self, _: &str) -> PutBack {
        let admin = self.admin();
        admin.execute(
            "BEGIN ISOLATION LEVEL REPEATABLE READ;
             DROP TABLE IF EXISTS kept_namespace, kept_block, kept_ledger;
             CREATE TABLE kept_namespace AS SELECT * FROM ringflake_namespace;
             CREATE TABLE kept_block AS SELECT * FROM ringflake_block;
             CREATE TABLE kept_ledger AS SELECT * FROM ringflake_ledger;
             COMMIT;",
        );
        Box::new(move || {
            let done = admin.try_execute(
                "BEGIN;
                 UPDATE ringflake_namespace AS n
                     SET floor = k.floor, incarnation = k.incarnation
                     FROM kept_namespace AS k WHERE n.name = k.name;
                 DELETE FROM ringflake_ledger;
                 DELETE FROM ringflake_block;
                 INSERT INTO ringflake_block SELECT * FROM kept_block;
                 INSERT INTO ringflake_ledger SELECT * FROM kept_ledger;
                 COMMIT;",
            );
            done.map_err(|error| format!("{error:?}"))
        })
    }

    fn damage(&self, namespace: &str, block: u64) {
        self.admin()
            .execute(&with_impossible_mark(namespace, block));
    }
}

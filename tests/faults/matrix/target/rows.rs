//! Rows of a namespace that are kept, and put back while everything goes on. A server
//! that this is done to shows nothing of it: it is the same one, with the same clock
//! and the same history of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::sqlite::patient;
use crate::matrix::Outcome;
use ringflake_kit::server::Reachable as _;
use ringflake_kit::server::{self, mariadb, postgres};

/// Puts back what was kept.
pub(crate) type PutBack = Box<dyn Fn() -> Outcome<()>>;

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// All tables, in one transaction.
pub(super) fn of_postgres(server: &postgres::Postgres) -> PutBack {
    let admin = server.admin();
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

/// A dump of the database, which drops and makes the tables when it is loaded.
pub(super) fn of_mariadb(server: &mariadb::MariaDb) -> PutBack {
    let port = server.port();
    let client = move |program: &str| {
        let program = server::locate(program).expect("it comes with the server");
        let mut command = Command::new(program);
        command.args(["--no-defaults", "--host=127.0.0.1", "--user=root"]);
        command.arg(format!("--port={port}"));
        command
    };
    let dump = client("mariadb-dump")
        .args(["--single-transaction", "app"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&dump.stderr);
    assert!(dump.status.success(), "{errors}");
    Box::new(move || {
        use std::io::Write as _;

        let mut load = client("mariadb").arg("app").stdin(Stdio::piped()).spawn();
        let load = load.as_mut().map_err(text)?;
        // The pipe is closed with this.
        let mut input = load.stdin.take().expect("it is piped");
        input.write_all(&dump.stdout).map_err(text)?;
        drop(input);
        let status = load.wait().map_err(text)?;
        let done = status.success().then_some(());
        done.ok_or_else(|| format!("the dump was not loaded: {status}"))
    })
}

/// `DUMP`, then `RESTORE`, of all keys at once.
pub(super) fn of_redis(url: &str, namespace: &str) -> PutBack {
    let client = ::redis::Client::open(url).unwrap();
    let pattern = format!("ringflake:{{{namespace}}}:*");
    let keys_of = move |connection: &mut ::redis::Connection| -> ::redis::RedisResult<Vec<String>> {
        ::redis::cmd("KEYS").arg(&pattern).query(connection)
    };
    let mut connection = client.get_connection().unwrap();
    let keys = keys_of(&mut connection).unwrap();
    let mut dump = ::redis::pipe();
    dump.atomic();
    for key in &keys {
        dump.cmd("DUMP").arg(key);
    }
    let values: Vec<Vec<u8>> = dump.query(&mut connection).unwrap();
    Box::new(move || {
        let mut connection = client.get_connection().map_err(text)?;
        let mut load = ::redis::pipe();
        load.atomic();
        for key in keys_of(&mut connection).map_err(text)? {
            load.cmd("DEL").arg(key).ignore();
        }
        for (key, value) in keys.iter().zip(&values) {
            let restore = load.cmd("RESTORE").arg(key).arg(0);
            restore.arg(value.as_slice()).arg("REPLACE").ignore();
        }
        load.exec(&mut connection).map_err(text)
    })
}

/// Keys and values as a client reads them, put back in one transaction.
pub(super) fn of_etcd(port: u16, namespace: &str) -> PutBack {
    let prefix = format!("ringflake/{namespace}");
    let keys = json!({
        "key": STANDARD.encode(format!("{prefix}/")),
        // '0' comes after '/'.
        "range_end": STANDARD.encode(format!("{prefix}0")),
    });
    let call = move |what: &str, body: &Value| -> Outcome<Value> {
        let url = format!("http://127.0.0.1:{port}/v3/kv/{what}");
        let mut reply = ureq::post(url).send(body.to_string()).map_err(text)?;
        let reply = reply.body_mut().read_to_string().map_err(text)?;
        serde_json::from_str(&reply).map_err(text)
    };
    let pairs = move || -> Outcome<Vec<(Value, Value)>> {
        let reply = call("range", &keys)?;
        let none = Vec::new();
        let kvs = reply["kvs"].as_array().unwrap_or(&none);
        let pair = |kv: &Value| (kv["key"].clone(), kv["value"].clone());
        Ok(kvs.iter().map(pair).collect())
    };
    let kept = pairs().unwrap();
    Box::new(move || {
        // No key may be changed twice in a transaction.
        let is_kept = |key: &Value| kept.iter().any(|(known, _)| known == key);
        let added = pairs()?.into_iter().filter(|(key, _)| !is_kept(key));
        let delete = |(key, _)| json!({ "request_delete_range": { "key": key } });
        let put = |(key, value): &(Value, Value)| json!({ "request_put": { "key": key, "value": value } });
        let changes: Vec<Value> = added.map(delete).chain(kept.iter().map(put)).collect();
        call("txn", &json!({ "success": changes })).map(drop)
    })
}

/// The blocks of a namespace, in one transaction. The record stays: its count of
/// writes would tell.
pub(super) fn of_sqlite(path: &Path, namespace: &str) -> PutBack {
    of_tables(path, namespace, &[BLOCKS])
}

/// The record of a namespace and its blocks, in one transaction. The note that the file
/// itself bears of the record's writes stays.
pub(crate) fn all_of_sqlite(path: &Path, namespace: &str) -> PutBack {
    of_tables(path, namespace, &[RECORD, BLOCKS])
}

/// A table, and the column that names the namespace. Rows of each refer to those of the
/// ones before it.
type Table = (&'static str, &'static str);
const RECORD: Table = ("ringflake_namespace", "name");
const BLOCKS: Table = ("ringflake_block", "namespace");

fn of_tables(path: &Path, namespace: &str, tables: &'static [Table]) -> PutBack {
    let (path, namespace) = (path.to_owned(), namespace.to_owned());
    let read = |connection: &Connection, (table, name): Table| {
        let sql = format!("SELECT * FROM {table} WHERE {name} = ?1");
        let mut statement = connection.prepare(&sql)?;
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect();
        let rows = statement.query_map([&namespace], row)?;
        rows.collect::<rusqlite::Result<Vec<Vec<rusqlite::types::Value>>>>()
    };
    let keep = || {
        let mut connection = patient(&path)?;
        // All as of one moment.
        let step = connection.transaction()?;
        let tables = tables.iter();
        tables.map(|&table| read(&step, table)).collect()
    };
    let kept: rusqlite::Result<Vec<_>> = keep();
    let kept = kept.unwrap();
    let put_back = move || -> rusqlite::Result<()> {
        let mut connection = patient(&path)?;
        let step =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // They forbid just this to all but the one who knows how.
        let triggers: Vec<(String, String)> = step
            .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (name, _) in &triggers {
            step.execute_batch(&format!("DROP TRIGGER {name}"))?;
        }
        for (table, name) in tables.iter().rev() {
            let delete = format!("DELETE FROM {table} WHERE {name} = ?1");
            step.execute(&delete, [&namespace])?;
        }
        for ((table, _), rows) in tables.iter().zip(&kept) {
            for row in rows {
                let places = vec!["?"; row.len()].join(", ");
                let insert = format!("INSERT INTO {table} VALUES ({places})");
                step.execute(&insert, rusqlite::params_from_iter(row))?;
            }
        }
        for (_, sql) in &triggers {
            step.execute_batch(sql)?;
        }
        step.commit()
    };
    Box::new(move || put_back().map_err(text))
}

//! Rows that are kept on each server, and put back while everything goes on.

use std::io::Write as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redis::{Client, Connection, RedisResult, cmd, pipe};
use ringflake_kit::server::{self, Etcd, MariaDb, Postgres, Redis, TestServer as _};
use serde_json::{Value, json};

use super::PutBack;
use crate::matrix::{Outcome, text};

/// Keys and values as a client reads them, put back in one transaction.
pub(super) fn etcd(server: &Etcd, namespace: &str) -> PutBack {
    let port = server.port();
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

/// A dump of the database, which drops and makes the tables when it is loaded.
pub(super) fn mariadb(server: &MariaDb, _: &str) -> PutBack {
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

/// All tables, in one transaction.
pub(super) fn postgres(server: &Postgres, _: &str) -> PutBack {
    let admin = server.admin();
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

/// `DUMP`, then `RESTORE`, of all keys at once.
pub(super) fn redis(server: &Redis, namespace: &str) -> PutBack {
    let client = Client::open(server.url()).unwrap();
    let pattern = format!("ringflake:{{{namespace}}}*");
    let keys_of = move |connection: &mut Connection| -> RedisResult<Vec<String>> {
        cmd("KEYS").arg(&pattern).query(connection)
    };
    let mut connection = client.get_connection().unwrap();
    let keys = keys_of(&mut connection).unwrap();
    let mut dump = pipe();
    dump.atomic();
    for key in &keys {
        dump.cmd("DUMP").arg(key);
    }
    let values: Vec<Vec<u8>> = dump.query(&mut connection).unwrap();
    Box::new(move || {
        let mut connection = client.get_connection().map_err(text)?;
        let mut load = pipe();
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

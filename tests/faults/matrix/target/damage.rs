//! What no store writes, put into the record of one block by a client of the server's
//! own while everything goes on.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::rows::text;
use super::sqlite::patient;
use crate::matrix::Outcome;
use ringflake_kit::server::Reachable as _;
use ringflake_kit::server::{self, mariadb, postgres, redis};

/// A mark that no layout has; the tables' own rules let it pass.
fn update(namespace: &str, block: u64) -> String {
    format!(
        "UPDATE ringflake_block SET hwm_end = 9000000000000000000 \
         WHERE namespace = '{namespace}' AND block = {block}"
    )
}

pub(super) fn in_postgres(server: &postgres::Postgres, namespace: &str, block: u64) -> Outcome<()> {
    let done = server.admin().try_execute(&update(namespace, block));
    done.map_err(|error| format!("{error:?}"))
}

pub(super) fn in_mariadb(server: &mariadb::MariaDb, namespace: &str, block: u64) -> Outcome<()> {
    let program = server::locate("mariadb").expect("it comes with the server");
    let status = Command::new(program)
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root", "app"])
        .arg(format!("--port={}", server.port()))
        .arg(format!("--execute={}", update(namespace, block)))
        .status()
        .map_err(text)?;
    let done = status.success().then_some(());
    done.ok_or_else(|| format!("the row was not changed: {status}"))
}

pub(super) fn in_redis(server: &redis::Redis, namespace: &str, block: u64) -> Outcome<()> {
    let mark = format!("ringflake:{{{namespace}}}:hwm_end");
    server.command(&["ZADD", &mark, "1.5", &format!("{block:016}")]);
    Ok(())
}

pub(super) fn in_etcd(port: u16, namespace: &str, block: u64) -> Outcome<()> {
    let body = json!({
        "key": STANDARD.encode(format!("ringflake/{namespace}/block/{block:020}")),
        "value": STANDARD.encode("{"),
    });
    let url = format!("http://127.0.0.1:{port}/v3/kv/put");
    let reply = ureq::post(url).send(body.to_string());
    reply.map(drop).map_err(text)
}

pub(super) fn in_sqlite(path: &Path, namespace: &str, block: u64) -> Outcome<()> {
    let change =
        || -> rusqlite::Result<usize> { patient(path)?.execute(&update(namespace, block), []) };
    change().map(drop).map_err(text)
}

//! PostgreSQL: a server of the benchmark's own, with its default settings.

use std::error::Error;
use std::pin::pin;

use ringflake_kit::server::TestServer;
use ringflake_kit::server::postgres::{Postgres as Server, Session};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls};

use super::key::{Key, Kind};
use super::{Cost, Table};

/// A heap, and the tree of its primary key beside it. Rows come by COPY in binary, so that no
/// key costs more to read than another.
pub struct Postgres {
    admin: Session,
    client: Client,
    runtime: Runtime,
    column: Type,
    /// Where the log stood before the first row.
    log: String,
}

impl Postgres {
    pub fn create(server: &Server, kind: Kind) -> Result<Self, Box<dyn Error>> {
        let owner = server.owner();
        let column = if kind.is_number() {
            Type::INT8
        } else {
            Type::UUID
        };
        owner.execute("drop table if exists orders");
        owner.execute(&format!(
            "create table orders (id {column} primary key, body text not null)"
        ));
        let admin = server.admin();
        admin.execute("checkpoint");
        let log = admin.value("select pg_current_wal_lsn()::text");

        let runtime = Builder::new_current_thread().enable_all().build()?;
        let url = server.url();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(&url, NoTls))?;
        runtime.spawn(connection);
        Ok(Self {
            admin,
            client,
            runtime,
            column,
            log,
        })
    }
}

async fn copy(client: &Client, column: &Type, keys: &[Key]) -> Result<(), Box<dyn Error>> {
    let sink = client.copy_in("copy orders from stdin binary").await?;
    let types = [column.clone(), Type::TEXT];
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    let body = &"forty characters that stand for an order";
    for key in keys {
        let key: &(dyn ToSql + Sync) = match key {
            Key::Number(number) => number,
            Key::Uuid(uuid) => uuid,
        };
        writer.as_mut().write(&[key, body]).await?;
    }
    writer.finish().await?;
    Ok(())
}

impl Table for Postgres {
    fn insert(&mut self, keys: &[Key]) -> Result<(), Box<dyn Error>> {
        self.runtime
            .block_on(copy(&self.client, &self.column, keys))
    }

    fn measure(&mut self) -> Result<(usize, Cost), Box<dyn Error>> {
        let value = |what: &str| self.admin.value(&format!("select ({what})::bigint"));
        let number = |what: &str| value(what).parse();
        let rows: usize = value("select count(*) from orders").parse()?;
        let cost = Cost {
            steps: Vec::new(),
            tree: number("pg_relation_size('orders_pkey')")?,
            all: number("pg_total_relation_size('orders')")?,
            log: Some(number(&format!(
                "pg_current_wal_lsn() - '{}'::pg_lsn",
                self.log
            ))?),
        };
        Ok((rows, cost))
    }
}

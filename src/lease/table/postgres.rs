//! A table in a PostgreSQL database.
//!
//! | promise | by |
//! |---|---|
//! | T1 | one guarded statement in a transaction ([`lock`], [`statements`]) |
//! | T2 | a transaction that reads one snapshot |
//! | T3 | `clock_timestamp()`, in a commit read after the locks |
//! | T4 | system identifier, timeline, and the numbers of database and table |
//! | T5 | `sqlstate`: a commit that was sent and has no definite reply is unknown |
//!
//! Each is one round trip: the statements of a transaction are pipelined, and a guarded
//! statement whose conditions do not hold writes nothing.

mod guard;
mod lock;
mod pgpass;
mod server;
mod session;
mod sqlstate;
mod statements;
mod tls;
mod wire;

use std::fmt;
use std::time::Duration;

use self::server::Server;
use self::session::PgSession;
use self::wire::off_runtime;
use super::sql::Client;
use super::{Commit, Description, Query, Snapshot, Table, TableError, Txn};
use crate::lease::key::StoreKey;
use crate::lease::options::{OpenError, OpenOptions};

/// The table of a [`PostgresStore`](crate::lease::PostgresStore).
pub struct PostgresTable {
    client: Client<PgSession>,
    key: StoreKey,
}

impl PostgresTable {
    /// The database at `url`. Connects to nothing yet.
    pub(in crate::lease) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let server = Server::from_url(url, options)?;
        let timeout = server.timeout;
        Ok(Self {
            client: Client::new(server, timeout),
            key: StoreKey::new(url, options),
        })
    }
}

impl Table for PostgresTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, TableError> {
        off_runtime(|| self.client.read(query))
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, TableError> {
        off_runtime(|| self.client.commit(txn, instead))
    }

    fn describe(&mut self) -> Result<Description, TableError> {
        off_runtime(|| self.client.describe())
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }

    fn rest(&mut self, at_least: Duration) {
        self.client.rest(at_least);
    }
}

impl fmt::Debug for PostgresTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTable")
            .field("server", &format_args!("{}", self.client.server()))
            .finish_non_exhaustive()
    }
}

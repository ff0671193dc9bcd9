//! A table in a MySQL or MariaDB database.
//!
//! | promise | by |
//! |---|---|
//! | T1 | one guarded update, or a transaction that locks, compares and counts ([`statements`]) |
//! | T2 | one statement, which reads one snapshot |
//! | T3 | `SYSDATE()`, in a commit read after the locks |
//! | T4 | `server_uuid`; of MariaDB `server_id`, host name and data directory |
//! | T5 | `errno`: a commit that was sent and has no definite reply is unknown |
//!
//! Entries that are compared and not written have a shared lock. Where they must be absent, the
//! gap is locked, in `REPEATABLE READ`; otherwise transactions are `READ COMMITTED`.

mod errno;
mod flavour;
mod key;
mod roots;
mod server;
mod session;
mod socket;
mod statements;

use std::fmt;
use std::time::Duration;

use self::server::Server;
use self::session::MySession;
use super::sql::Client;
use super::{Commit, Description, Query, Snapshot, Table, TableError, Txn};
use crate::lease::events;
use crate::lease::key::StoreKey;
use crate::lease::options::{OpenError, OpenOptions};

/// The table of a [`MysqlStore`](crate::lease::MysqlStore).
pub struct MysqlTable {
    client: Client<MySession>,
    key: StoreKey,
    /// Whether `WORKER_NODE` has a row of this process, or rejected it.
    is_noted: bool,
}

impl MysqlTable {
    /// The database at `url`. Connects to nothing yet.
    pub(in crate::lease) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let server = Server::from_url(url, options)?;
        let timeout = server.timeout;
        Ok(Self {
            client: Client::new(server, timeout),
            key: StoreKey::new(url, options),
            is_noted: false,
        })
    }
}

impl Table for MysqlTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, TableError> {
        self.client.read(query)
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, TableError> {
        let deadline = self.client.deadline();
        let outcome = self.client.commit(txn, instead)?;
        // The first entry with a rank is a block that is granted.
        let granted = txn.puts.iter().find(|put| put.rank.is_some());
        if let (Commit::Done, false, Some(put)) = (&outcome, self.is_noted, granted) {
            self.is_noted = true;
            let note = |session: &mut MySession| session.note_launch(&put.value, deadline);
            // The commit is done whatever becomes of this.
            if let Err(error) = self.client.also(note) {
                events::launch_not_noted(&self.client.server().to_string(), &error);
            }
        }
        Ok(outcome)
    }

    fn describe(&mut self) -> Result<Description, TableError> {
        self.client.describe()
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }

    fn rest(&mut self, at_least: Duration) {
        self.client.rest(at_least);
    }
}

impl fmt::Debug for MysqlTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlTable")
            .field("server", &format_args!("{}", self.client.server()))
            .finish_non_exhaustive()
    }
}

//! The store in PostgreSQL.

mod columns;
mod failure;
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
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::key::StoreKey;
use crate::lease::namespace::Namespace;
use crate::lease::options::{OpenError, OpenOptions};
use crate::lease::record::StoreRecord;
use crate::lease::report::{Listing, StoreReport};
use crate::lease::request::{Acquire, Floor, Init, Renew};
use crate::lease::store::LeaseStore;
use crate::lease::stores::sql::Client;
use crate::lease::voucher::Voucher;

/// A store in a PostgreSQL database, version 12 or later.
///
/// # Promises, and the settings that they need
/// A grant or a renewal that is confirmed is on disk. The server must show `fsync`
/// and `full_page_writes` on and permanent tables; otherwise the answer is
/// [`StoreError::NotDurable`]. That is read in every transaction that grants, and
/// each of them turns `synchronous_commit` on for itself.
///
/// Where `synchronous_standby_names` is set, the standbys named have it on disk
/// too, and any of them can be promoted without a loss. (`remote_apply` adds
/// nothing to that; it says when a standby shows what it has.) A wait for a
/// standby that somebody cancels is [`StoreError::Ambiguous`], though the server
/// says "committed" with a mere warning. Where it is not set, a promoted standby
/// can lack confirmed writes; its promotion is noticed, and the floor raised.
///
/// A standby that is still one is [`StoreError::Unavailable`]. With several hosts
/// and `target_session_attrs=read-write` in the URL, the primary is looked for at
/// each new connection.
///
/// # URL
/// `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETER=VALUE&...`, or
/// with `postgresql:`; special characters percent-encoded. A parameter that is not
/// listed is refused.
///
/// | parameter | value |
/// |---|---|
/// | `sslmode` | `disable`; `prefer`: TLS if the server has it; `require`; `verify-full`: with a certificate for this host. By default `prefer` if all hosts are of this machine, and `verify-full` if not |
/// | `sslrootcert` | a PEM file with the authorities that are trusted, instead of the system's; the certificate is verified, and `verify-full` is the default |
/// | `sslcert`, `sslkey` | PEM files with the client's certificate and key; `verify-full` is the default |
/// | `channel_binding` | `disable`, `prefer` (default), `require`: the password's exchange proves that nobody sits in between, without any authority |
/// | `host`, `hostaddr`, `port`, `user`, `password`, `dbname` | as libpq has them |
/// | `password_file` | a file with the password |
/// | `passfile` | a file in place of `~/.pgpass`, and of the one that `PGPASSFILE` names |
/// | `target_session_attrs`, `load_balance_hosts` | as libpq has them |
/// | `options` | for instance `-c search_path=ids`: the schema of the tables |
/// | `application_name` | `ringflake` by default |
/// | `connect_timeout` | for one host, in seconds; by default the operation's time, shared among the hosts |
/// | `tcp_user_timeout`, `keepalives`, `keepalives_idle`, `keepalives_interval`, `keepalives_retries` | as libpq has them; the first is the operation's time by default |
///
/// A host that is a directory (`?host=/run/postgresql`, or as `%2Frun%2Fpostgresql` before
/// the port) is that of a Unix socket.
///
/// The files are read at each new connection, so one that is replaced is taken up by
/// the next.
///
/// Of this machine are `localhost`, 127.0.0.0/8, `[::1]` and Unix sockets. As with
/// libpq, `prefer` and `require` alone keep others from reading, not from sitting in
/// between. Whatever the mode, a server that asks for the password in the clear gets
/// it over a Unix socket, or if its certificate was verified, and otherwise not; with
/// `scram-sha-256` and `md5` it gets a proof instead.
///
/// # Passwords
/// Where neither program nor URL nor `PGPASSWORD` have the password, it is looked up in
/// `~/.pgpass`: lines of `HOST:PORT:DATABASE:USER:PASSWORD`, of which the first that fits
/// counts, with `*` for anything, and `\:` and `\\` for a colon and a backslash. The user is
/// the URL's. A Unix socket goes by its directory, and by `localhost`. Another file is
/// that of `passfile` in the URL, or of `PGPASSFILE` in the environment. One that others
/// may read is refused: `chmod 600 ~/.pgpass`.
///
/// # Tables
/// `init` makes three tables if they are missing, and a row for each of a
/// namespace's blocks, of which there may be 2^17 = 131,072 at most:
/// `ringflake_namespace`, `ringflake_block` and `ringflake_ledger`. For the first
/// it needs the privilege to create tables in the schema; everything else needs
/// to select, insert, update and delete.
///
/// The ledger has a row for every grant, with its interval, which a renewal
/// extends. An exclusion constraint makes the database itself refuse two
/// intervals of a block that overlap: a grant or a renewal that meets it is
/// [`StoreError::Corrupt`], and is not made. When a block is granted, its rows
/// that ended more than a week before are deleted.
///
/// Nothing is kept in the session, not even a prepared statement, so a pooler may
/// stand in between that hands out connections by transaction.
///
/// # Locks
/// Renewals lock no row but their own block's, and so make no multixacts. What keeps the
/// namespace's record in place is an advisory lock of the database, of the class
/// 1919315051, until the end of the transaction: shared by renewals and releases, held
/// alone by an operation that raises the floor. Several renewals in one transaction take that of
/// each namespace, and pass over rows that are locked, to renew those alone afterwards.
///
/// # Incarnation
/// The cluster's system identifier, the timeline that is being written, and the
/// number of the table `ringflake_block`. It changes at once when a standby is
/// promoted or a backup recovered to some point, when the tables are restored in
/// another cluster, and when a dump is restored over them (`--clean`).
///
/// Not noticed is a copy of the data directory or a snapshot of its volume that is
/// started like after a crash, and rows restored into tables that were kept. After
/// that, and before anybody acquires, run [`raise_floor`](LeaseStore::raise_floor)
/// with [`Floor::OverLostGrants`].
///
/// # Cost
/// An operation blocks for its time-out at most, connecting included. Round trips
/// on an open connection: an acquisition takes 4, a renewal or a release, a
/// listing or a check 1, one more after a second of idleness. Up to 128 renewals in
/// [one call](LeaseStore::renew_all) take 1 together, and write to disk once.
///
/// The store has a Tokio runtime of its own, on the calling thread. Called from
/// within another one, it blocks that thread all the same, and works on a thread
/// that it starts for the call.
///
/// # Examples
/// ```
/// use ringflake::lease::{OpenOptions, PostgresStore};
///
/// let url = "postgres://ids:hunter2@db.example.com/ids";
/// let store = PostgresStore::from_url(url, &OpenOptions::new())?;
/// assert!(!format!("{store:?}").contains("hunter2"));
/// # Ok::<(), ringflake::lease::OpenError>(())
/// ```
pub struct PostgresStore {
    client: Client<PgSession>,
    key: StoreKey,
}

impl PostgresStore {
    /// The store that `url` names. Connects to nothing yet.
    ///
    /// # Errors
    /// [`OpenError::Invalid`], without any part of the URL but the name of a
    /// parameter.
    pub fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let server = Server::from_url(url, options)?;
        let timeout = server.timeout;
        Ok(Self {
            client: Client::new(server, timeout),
            key: StoreKey::new(url, options),
        })
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("server", &format_args!("{}", self.client.server()))
            .finish_non_exhaustive()
    }
}

impl LeaseStore for PostgresStore {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        off_runtime(|| self.client.init(namespace, init, Voucher::Person))
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        off_runtime(|| self.client.init(namespace, init, Voucher::Program))
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        off_runtime(|| self.client.acquire(namespace, acquire))
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        off_runtime(|| self.client.renew(namespace, renew))
    }

    fn renew_all(&mut self, renewals: &[(&Namespace, &Renew)]) -> Vec<Result<u64, StoreError>> {
        off_runtime(|| self.client.renew_all(renewals))
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        off_runtime(|| self.client.release(namespace, block, epoch))
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        off_runtime(|| self.client.list(namespace))
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        off_runtime(|| self.client.raise_floor(namespace, floor, now_unix_ms))
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        off_runtime(|| self.client.repair(namespace, block, now_unix_ms))
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        off_runtime(|| self.client.check(namespace, now_unix_ms))
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }

    fn rest(&mut self, at_least: Duration) {
        self.client.rest(at_least);
    }
}

//! The store in MySQL and MariaDB.

mod columns;
mod errno;
mod failure;
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
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::events;
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

/// A store in a MySQL (8.0 or later) or MariaDB (10.6 or later) database.
///
/// # Promises, and the settings that they need
/// A grant or a renewal that is confirmed is on disk. Before anything is granted,
/// the server must show `innodb_flush_log_at_trx_commit = 1`, `sync_binlog = 1`
/// where `log_bin` is on, an `innodb_doublewrite` that writes, and tables of
/// InnoDB; otherwise the answer is [`StoreError::NotDurable`]. What can be changed
/// while the server runs is read in every transaction that grants. A server that
/// is `read_only`, as replicas are, is [`StoreError::Unavailable`].
///
/// That holds for one server. Replication, semi-synchronous too (it falls back
/// when a replica is slow), confirms what a promoted replica may lack. The change
/// of server is noticed, and the floor raised. The nodes of a Galera cluster are
/// different servers to it, so use one node.
///
/// # URL
/// `mysql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETER=VALUE&...`, or with
/// `mariadb:`; special characters percent-encoded. A parameter that is not listed
/// is refused.
///
/// | parameter | value |
/// |---|---|
/// | `require_ssl` | `true`: TLS, with a certificate by an authority that this machine knows; `false`: none. By default `false` for `localhost`, 127.0.0.0/8 and `[::1]`, and `true` for all other hosts |
/// | `root_cert_path` | a PEM file with the authorities that are trusted, instead of this machine's; turns TLS on, as all that follow |
/// | `cert_chain_path`, `priv_key_path` | PEM files with the client's certificate and key |
/// | `danger_skip_domain_validation` | `true`: the certificate may have another name |
/// | `danger_accept_invalid_certs` | `true`: any certificate will do |
/// | `server_key_path` | a PEM file with the server's public key, for passwords without TLS |
/// | `password_file` | a file with the password; `MYSQL_PWD` is the variable for one |
/// | `socket` | a Unix socket, used in place of host and port |
/// | `tcp_connect_timeout_ms` | for one host; half of the operation's time by default, shared among the hosts |
/// | `tcp_user_timeout_ms`, `tcp_keepalive_time_ms`, `tcp_keepalive_probe_interval_secs`, `tcp_keepalive_probe_count` | as the system has them by default |
///
/// With several hosts each is tried in turn, the one that served last at first: one
/// that is gone, denies the login or is read-only, as replicas are, is passed over.
///
/// With `caching_sha2_password` a server may ask for the password and not for a proof
/// of it. It gets it over TLS, over a Unix socket, or encrypted with the key of
/// `server_key_path`. A key that the peer sends is not believed.
///
/// The public authorities of the web are trusted in any case: the driver knows them
/// by heart. The files are read at each new connection, so one that is replaced is
/// taken up by the next.
///
/// With TLS, and if the process has no default provider of cryptography for
/// rustls yet, *ring* becomes it: the driver needs one.
///
/// # Tables
/// `init` makes `ringflake_namespace` and `ringflake_block`, and a row for each of
/// a namespace's blocks, of which there may be 2^17 = 131,072 at most. It needs
/// the privilege to create tables only if they are missing; everything else needs
/// to select, insert and update.
///
/// For users of Baidu's uid-generator, `init` makes the table `WORKER_NODE` too,
/// or leaves the one that is there, and the first grant of each store adds a row:
/// host and instance of the [`Holder`](crate::lease::holder::Holder) as `HOST_NAME` and `PORT`.
/// Nothing reads it, and a row that can't be added is a warning and no error.
///
/// # Incarnation
/// MySQL: `server_uuid`, which belongs to the data directory and is in no backup.
/// MariaDB, which has none: `server_id`, `hostname` and `datadir`. So a replica
/// that is promoted is noticed (replication demands a `server_id` for each), and
/// what is restored on another machine.
///
/// Not noticed are rows that were restored, or rolled back, under the server that was
/// there before: a dump, a copy of its directory, a snapshot of its volume. After
/// that, and before anybody acquires, run [`raise_floor`](LeaseStore::raise_floor)
/// with [`Floor::OverLostGrants`]. The other way round, a MariaDB in a container
/// that is made anew needs a fixed host name, or each time counts as a loss.
///
/// # Cost
/// An operation blocks for its time-out at most: nothing is sent in the second
/// half of that time, and each answer is waited for as long as the other half.
/// Not bounded are the look-up of the host's name, the several answers that make
/// a connection, and a server that sends its answer in drops.
/// Round trips on an open connection: an acquisition takes 6, a renewal or a
/// release 1, a listing or a check 6, one more after a second of idleness.
/// Statements are prepared at their first use, which takes another each.
/// Up to 128 renewals in [one call](LeaseStore::renew_all) take 3, one for each
/// namespace and one for each renewal; but they write to disk once.
///
/// # Examples
/// ```
/// use ringflake::lease::{MysqlStore, OpenOptions};
///
/// let url = "mysql://ids:hunter2@db.example.com/ids";
/// let store = MysqlStore::from_url(url, &OpenOptions::new())?;
/// assert!(!format!("{store:?}").contains("hunter2"));
/// # Ok::<(), ringflake::lease::OpenError>(())
/// ```
pub struct MysqlStore {
    client: Client<MySession>,
    key: StoreKey,
    /// Whether `WORKER_NODE` has a row of this store, or refused it.
    noted: bool,
}

impl MysqlStore {
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
            noted: false,
        })
    }
}

impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlStore")
            .field("server", &format_args!("{}", self.client.server()))
            .finish_non_exhaustive()
    }
}

impl LeaseStore for MysqlStore {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.client.init(namespace, init, Voucher::Person)
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.client.init(namespace, init, Voucher::Program)
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        let deadline = self.client.deadline();
        let grants = self.client.acquire(namespace, acquire)?;
        if !self.noted {
            self.noted = true;
            let holder = acquire.holder.as_ref();
            let noted = self
                .client
                .also(|session| session.note_launch(holder, deadline));
            // The grants are made, and this does not unmake them.
            if let Err(error) = noted {
                events::launch_not_noted(&self.client.server().to_string(), &error);
            }
        }
        Ok(grants)
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        self.client.renew(namespace, renew)
    }

    fn renew_all(&mut self, renewals: &[(&Namespace, &Renew)]) -> Vec<Result<u64, StoreError>> {
        self.client.renew_all(renewals)
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.client.release(namespace, block, epoch)
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        self.client.list(namespace)
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.client.raise_floor(namespace, floor, now_unix_ms)
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        self.client.repair(namespace, block, now_unix_ms)
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        self.client.check(namespace, now_unix_ms)
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }

    fn rest(&mut self, at_least: Duration) {
        self.client.rest(at_least);
    }
}

//! The store in MySQL and MariaDB.

use crate::lease::store::leases::Leases;
use crate::lease::store::table::mysql::MysqlTable;

/// A store in a MySQL (8.0 or later) or MariaDB (10.6 or later) database. The
/// [runbook](crate::lease::guide::runbook_mysql) says how to set it up, what its tables and its
/// incarnation are, what operations cost, and what to do after a failover or a restore.
///
/// # Promises, and the settings that they need
/// A grant or a renewal that is confirmed is on disk. Before anything is granted,
/// the server must show `innodb_flush_log_at_trx_commit = 1`, `sync_binlog = 1`
/// where `log_bin` is on, an `innodb_doublewrite` that writes, an `innodb_flush_method` other
/// than `nosync`, and a table of InnoDB; otherwise operations fail with
/// [`StoreError::NotDurable`](crate::lease::StoreError::NotDurable). Settings that can change
/// while the server runs are compared in every commit. A server that is `read_only`, as replicas
/// are, is [`StoreError::Unavailable`](crate::lease::StoreError::Unavailable).
///
/// That holds for one server. Replication, semi-synchronous too (it falls back
/// when a replica is slow), confirms what a promoted replica may lack. The change
/// of server is noticed, and the floor raised.
///
/// # URL
/// `mysql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETER=VALUE&...`, or with
/// `mariadb:`. `tls`, `ca`, `cert`, `key` and `password_file` are
/// [those of every store](crate::lease::open); `MYSQL_PWD` is the variable for a password.
/// `socket` is a Unix socket, used in place of host and port.
///
/// Several hosts are tried in order at each new connection. A host that is gone, denies the
/// login or is read-only, as replicas are, is skipped.
///
/// With `caching_sha2_password` a server may ask for the password and not for a proof
/// of it. It gets the password over TLS or a Unix socket only. A key that the peer sends is
/// ignored.
///
/// The driver has the public authorities of the web built in, and trusts them in any case. It does
/// not read those of the machine: name them with `ca=/etc/ssl/certs/ca-certificates.crt`.
///
/// With TLS, and if the process has no default provider of cryptography for
/// rustls yet, *ring* becomes it: the driver needs one.
///
/// # Calls
/// A read or a commit blocks for the time-out at most: nothing is sent in the second half of that
/// time, and each reply is waited for as long as the other half. Not bounded are the look-up of
/// the host's name, the replies that make a connection, and a server that sends its reply in
/// drops. Nothing is prepared. A proxy must allow several statements in one request.
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
pub type MysqlStore = Leases<MysqlTable>;

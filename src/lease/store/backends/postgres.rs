//! The store in PostgreSQL.

use crate::lease::store::leases::Leases;
use crate::lease::store::table::postgres::PostgresTable;

/// A store in a PostgreSQL database, version 12 or later. The
/// [runbook](crate::lease::guide::runbook_postgres) says how to set it up, what its tables and its
/// incarnation are, what operations cost, and what to do after a failover or a restore.
///
/// # Promises, and the settings that they need
/// A grant or a renewal that is confirmed is on disk. The server must show `fsync`
/// and `full_page_writes` on and permanent tables; otherwise operations fail with
/// [`StoreError::NotDurable`](crate::lease::StoreError::NotDurable). The settings are compared in
/// every commit, and each commit turns `synchronous_commit` on for itself.
///
/// Where `synchronous_standby_names` is set, the standbys named have it on disk
/// too, and any of them can be promoted without a loss. If somebody cancels the wait for a
/// standby, the operation fails with
/// [`StoreError::Ambiguous`](crate::lease::StoreError::Ambiguous), though the server returns no
/// more than a warning. Where it is not set, a promoted standby can lack confirmed writes; its
/// promotion is noticed, and the floor raised.
///
/// A standby that is still one is
/// [`StoreError::Unavailable`](crate::lease::StoreError::Unavailable). With several hosts
/// and `target_session_attrs=read-write` in the URL, the primary is looked for at
/// each new connection.
///
/// # URL
/// `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETER=VALUE&...`, or
/// with `postgresql:`. `tls`, `ca`, `cert`, `key` and `password_file` are
/// [those of every store](crate::lease::open); `PGPASSWORD` is the variable for a password.
/// `PGPASSFILE` and `~/.pgpass` are not read. These parameters of libpq are accepted too:
///
/// | parameter | value |
/// |---|---|
/// | `sslrootcert`, `sslcert`, `sslkey` | other names of `ca`, `cert` and `key` |
/// | `sslmode` | `disable` is `tls=off`; `require` and `verify-full` are `tls=required`, so both verify |
/// | `channel_binding` | `disable`, `prefer` (default), `require` |
/// | `host`, `port`, `user`, `password`, `dbname`, `target_session_attrs` | as libpq has them |
/// | `options` | for instance `-c search_path=ids`: the schema of the tables |
/// | `application_name` | `ringflake` by default |
/// | `connect_timeout` | for one host, in seconds; by default the operation's time, shared among the hosts |
/// | `tcp_user_timeout`, `keepalives`, `keepalives_idle`, `keepalives_interval`, `keepalives_retries` | as libpq has them; the first is the operation's time by default |
///
/// A host that is a directory (`?host=/run/postgresql`, or as `%2Frun%2Fpostgresql` before
/// the port) is that of a Unix socket.
///
/// A password in the clear is sent only over TLS or a Unix socket; elsewhere a server that asks for one
/// gets an error. With `scram-sha-256` and `md5` it gets a proof instead.
///
/// # Calls
/// Each round trip of an operation blocks for the time-out at most, connecting included. The store
/// has a Tokio runtime of its own, on the calling thread. Called from within another one, it blocks
/// that thread all the same, and works on a thread that it starts for the call.
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
pub type PostgresStore = Leases<PostgresTable>;

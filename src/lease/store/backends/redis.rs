//! The store that keeps its records in a Redis.

use crate::lease::store::leases::Leases;
use crate::lease::store::table::RedisTable;

/// Leases in a Redis, version 7 or later, or a Valkey. The
/// [runbook](crate::lease::guide::runbook_redis) says how to set it up, what its keys are and what
/// operations cost, and what to do after a restart, a failover or a restore.
///
/// # What is promised
/// Reads and commits are Lua scripts, which Redis runs one at a time. It writes their
/// effects to its append-only file before it replies. So one Redis with the settings of the
/// runbook keeps every [rule of leases](crate::lease). A server that can lose what it has confirmed
/// is refused with [`StoreError::NotDurable`](crate::lease::StoreError::NotDurable), unless
/// [`OpenOptions::accept_best_effort`](crate::lease::OpenOptions::accept_best_effort) says
/// otherwise.
///
/// **Replicas do not make Redis a linearizable store.** A write is done once as many of them as
/// `wait` says have received it. But a replica that was promoted may lack what another has
/// confirmed, and a primary that was superseded goes on serving clients that still reach it. The
/// incarnation, the horizon and the [failover time](crate::lease::store::limits::StoreLimits) then
/// protect uniqueness.
///
/// The incarnation is `run_id/master_replid`, which changes at every start and every promotion. So
/// every restart counts as a lost history, even when the file had everything.
///
/// # URL
/// `redis://[USER:PASSWORD@]HOST[:PORT][,HOST...][/DATABASE][?PARAMETERS]`, or
/// `rediss://` for TLS. `:PASSWORD@` alone logs in the default user. The port is 6379 by default,
/// the database 0. HOST leads to the primary at all times: a name, a virtual address or a proxy
/// that follows failovers. With several hosts, each is tried in order at each new connection, and a
/// replica is passed over. A Redis Cluster does not work: its redirections are not followed, and
/// all namespaces share a key.
///
/// With `sentinel=NAME` the hosts are sentinels, whose port is 26379 by default. The store asks one
/// after another for the primary of that name, then asks the named server for its `ROLE`. Sentinels
/// are reached as the server is, over TLS or in plain; in plain, what they name must be on this
/// machine, unless the URL says `tls=off`.
///
/// `tls`, `ca`, `cert`, `key` and `password_file` are [those of every store](crate::lease::open),
/// and `rediss://` is `tls=required`. `REDISCLI_AUTH` is the variable for a password.
///
/// | parameter | |
/// |---|---|
/// | `wait` | how many replicas must confirm a write, 0 to 100; by default all that are online |
/// | `socket` | a Unix socket, used in place of host and port |
/// | `sentinel` | the primary's name among the sentinels |
/// | `sentinel_password_file` | a file with the sentinels' own password |
///
/// In plain the password is sent as it is. TLS uses the process's default
/// rustls provider, and installs *ring* as such if there is none.
///
/// # Examples
/// ```no_run
/// use ringflake::Layout;
/// use ringflake::lease::{Fingerprint, LeaseStore, Namespace, OpenOptions, RedisStore};
///
/// let mut store = RedisStore::from_url("redis://127.0.0.1/?wait=1", &OpenOptions::new())?;
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// println!("{:?}", store.list(&orders)?.blocks);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type RedisStore = Leases<RedisTable>;

//! The store that keeps its records in a Redis.

use crate::lease::store::leases::Leases;
use crate::lease::store::table::RedisTable;

/// Leases in a Redis, version 7 or later, or a Valkey. The
/// [runbook](crate::lease::guide::runbook_redis) says how to set it up, and what to do after a
/// restart, a failover or a restore.
///
/// # What is promised
/// Reads and commits are Lua scripts, which Redis runs one at a time. It writes their
/// effects to its append-only file before it replies. So one Redis with the settings below
/// keeps every [rule of leases](crate::lease).
///
/// Each new connection checks these settings. A server that can lose what it has confirmed
/// is refused with [`StoreError::NotDurable`](crate::lease::StoreError::NotDurable), unless
/// [`OpenOptions::accept_best_effort`](crate::lease::OpenOptions::accept_best_effort) says
/// otherwise:
/// * `appendonly yes`, `appendfsync always`, `no-appendfsync-on-rewrite no`;
/// * `maxmemory-policy noeviction`, or no `maxmemory`;
/// * with replicas: not `wait=0`.
///
/// Settings that change later are noticed at the next connection only, and by
/// [`check`](crate::lease::LeaseStore::check). A server that forbids `CONFIG GET` hides two
/// of them, and is refused as well.
///
/// ## Replicas and failover
/// Redis replicates after it has replied. So the store sends `WAIT` on the same connection
/// after each write. A write is done once as many replicas as `wait` says have received it:
/// all that are online by default. If fewer confirm it, it is
/// [`StoreError::Ambiguous`](crate::lease::StoreError::Ambiguous): the mark has moved, and
/// nobody uses the ticks that it covers. While fewer replicas are online than `wait` says,
/// nothing is written, and the store is
/// [`StoreError::Unavailable`](crate::lease::StoreError::Unavailable).
///
/// **This does not make Redis a linearizable store.** A replica that was promoted may lack what
/// another has confirmed, and a primary that was superseded goes on serving clients that still
/// reach it. The incarnation, the horizon and the [failover
/// time](crate::lease::store::limits::StoreLimits) then protect uniqueness: they cover writes that
/// were lost, and a superseded primary for the failover time less twice the skew limit. So where
/// replicas are promoted, set `wait` and the servers as the runbook says.
///
/// ## Incarnation
/// `run_id/master_replid`. The first changes at every start of the server. The second changes at
/// every promotion, even while the server goes on running. The script that writes compares both. So
/// every restart counts as a lost history, even when the file had everything: nothing in Redis
/// distinguishes the two.
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
/// # Keys
/// | key | type | |
/// |---|---|---|
/// | `ringflake:{NAMESPACE}` | hash | `record`, `block/INDEX` in 20 digits, `check` |
/// | `ringflake:{NAMESPACE}:rank` | sorted set | `block/INDEX`, scored by its mark |
/// | `ringflake:secrets` | hash | the namespace of each secret's fingerprint |
///
/// The braces are part of the name. Values are JSON, as in every
/// [table](crate::lease::store::table): `redis-cli HGETALL 'ringflake:{orders}'` shows them. None of
/// the keys expires. The sorted set is an index: if it is lost, grants are delayed at most.
///
/// # Cost
/// A renewal takes one round trip. Other operations that write take two, and one more for
/// each conflict. A `PING` precedes them if the operation reads, or if the connection was
/// idle for 100 ms. Where there are replicas, `WAIT` follows each write.
///
/// An acquisition of one block reads up to 55 entries; where hardly a block is free, all of
/// them. That and [`list`](crate::lease::LeaseStore::list) take O(n) for n blocks that were
/// granted, and block the server meanwhile. Each call blocks up to
/// [`OpenOptions::timeout`](crate::lease::OpenOptions::timeout),
/// plus the time that the system takes to resolve HOST, which has no limit, and once more for
/// each further address that HOST has while connecting.
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

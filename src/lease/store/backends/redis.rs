//! The store that keeps its records in a Redis.

use crate::lease::store::leases::Leases;
use crate::lease::store::table::RedisTable;

/// Leases in a Redis, version 7 or later, or a Valkey.
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
/// were lost, and a superseded primary for the failover time less twice the skew limit. So
/// where Sentinel, a cluster or an operator promotes replicas:
/// * name the number in the URL, such as `wait=1` for one replica: the default
///   lets a primary that has lost all its replicas go on alone;
/// * set `min-replicas-to-write 1` and a `min-replicas-max-lag` below the
///   failover time less twice the skew limit on every server, so that a primary that was cut off
///   stops writing by itself;
/// * let `wait` be enough for any replica that can be promoted to have the write: all of them, or a
///   majority if the failover takes the one that is furthest ahead.
///
/// ## Incarnation
/// `run_id/master_replid`. The first changes at every start of the server. The second changes at
/// every promotion, even while the server goes on running. Suppose that a primary is demoted, loses
/// its latest writes to the one that took over, and is promoted again: it has the same `run_id` as
/// before. The script that writes compares both.
///
/// The price: every restart counts as a lost history, even when the file had
/// everything, since nothing in Redis distinguishes the two. The next
/// [`acquire`](crate::lease::LeaseStore::acquire) raises the floor. From then on nothing is
/// granted for the failover time, the next grants lie a horizon ahead,
/// and leases that are held are not renewed. Holders go on with what they have,
/// so plan for it: a lease duration longer than the failover time, a horizon only a
/// little longer than the lease duration, and a borrow limit that reaches the rest. The
/// same happens, though nothing is lost, when the first replica connects to a
/// primary that never had one, and an hour (`repl-backlog-ttl`) after the last
/// one left.
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
/// A user with restricted rights needs the keys `ringflake:{NAMESPACE}*`, for `init` also
/// `ringflake:secrets`, and the commands `EVALSHA`, `SCRIPT|LOAD`, `TIME`, `INFO`,
/// `CONFIG|GET`, `PING`, `WAIT`, `HMGET`, `HGETALL`, `HSET`, `ZADD` and `ZRANGE`; with a
/// database `SELECT`, and with sentinels `ROLE`.
///
/// # After a restore
/// A restored server has another incarnation and the floor rises by itself.
/// Where a namespace was copied into a server that went on running (`RESTORE`,
/// `MIGRATE`, a script), raise the floor by hand:
/// [`raise_floor`](crate::lease::LeaseStore::raise_floor) with
/// [`Floor::OverLostGrants`](crate::lease::Floor::OverLostGrants).
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

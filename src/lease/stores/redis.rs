//! The store that keeps its records in a Redis.

mod acquire;
mod answers;
mod block;
mod config;
mod connect;
mod connection;
mod durability;
mod init;
mod script;
mod sentinel;
mod verdict;

use self::answers::disagreement;
use self::block::name_of;
use self::config::Config;
use self::connection::Connection;
use self::script::{Answer, Script};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::connect::deadline::{self, Deadline};
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::key::StoreKey;
use crate::lease::namespace::Namespace;
use crate::lease::options::{OpenError, OpenOptions};
use crate::lease::record::StoreRecord;
use crate::lease::report::{Listing, StoreReport};
use crate::lease::request::{Acquire, Floor, Init, Renew};
use crate::lease::row::corrupt;
use crate::lease::store::LeaseStore;
use crate::lease::voucher::Voucher;

/// Leases in a Redis, version 7 or later, or a Valkey.
///
/// # What is promised
/// Each operation is one Lua script, which Redis runs whole and alone, and whose
/// effects it writes to its append-only file before it replies. So one Redis
/// with the settings below keeps every [rule of leases](crate::lease).
///
/// On each new connection the store refuses, with [`StoreError::NotDurable`], a
/// server that can lose what it has confirmed, unless
/// [`OpenOptions::accept_best_effort`] says otherwise:
/// * `appendonly yes`, `appendfsync always`, `no-appendfsync-on-rewrite no`;
/// * `maxmemory-policy noeviction`, or no `maxmemory`;
/// * with replicas: not `wait=0`.
///
/// Settings that are changed later are noticed at the next connection only. A
/// server that forbids `CONFIG GET` hides two of them, and is refused as well.
///
/// ## Replicas and failover
/// Redis replicates after it has replied. The store therefore sends `WAIT` on
/// the same connection after each write, and takes a write as done once as many
/// replicas as `wait` says have received it: all that are online by default. A
/// write that is confirmed by fewer is [`StoreError::Ambiguous`]: the mark has
/// moved and nobody uses the ticks that it covers. When fewer replicas are online than
/// `wait` says, nothing is written, and the store is
/// [`StoreError::Unavailable`].
///
/// **This makes Redis no linearizable store.** A replica that was promoted may
/// lack what another has confirmed, and a primary that was superseded goes on
/// serving those who still reach it. What then protects uniqueness is the
/// incarnation, the horizon and the [failover time](crate::lease::limits::StoreLimits): they
/// cover writes that were lost, and a superseded primary for as long as the
/// failover time says and not longer. So where Sentinel, a cluster or an
/// operator promotes replicas:
/// * name the number in the URL, such as `wait=1` for one replica: the default
///   lets a primary that has lost all its replicas go on alone;
/// * set `min-replicas-to-write 1` and a `min-replicas-max-lag` below the
///   failover time on every server, so that a primary that was cut off stops
///   writing by itself;
/// * let `wait` be enough for any replica that can be promoted to have the
///   write: all of them, or a majority if the failover takes the one that is
///   furthest.
///
/// ## Incarnation
/// `run_id/master_replid`. The first changes at every start of the server, the
/// second at every promotion, also of a server that goes on running: a primary
/// that is demoted, loses its latest writes to the one that took over, and is
/// promoted again has the same `run_id` as before. Both are compared inside the
/// script.
///
/// The price: every restart counts as a lost history, even when the file had
/// everything, since nothing in Redis distinguishes the two. The next
/// [`acquire`](LeaseStore::acquire) raises the floor. From then on nothing is
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
/// `rediss://` for TLS. `:PASSWORD@` alone logs in the default user. The port is 6379 by
/// default, the database 0. HOST leads to the primary at all times: a name, a
/// virtual address or a proxy that follows failovers. With several, each is tried
/// in order at each new connection, and a replica is passed over. A Redis Cluster won't
/// do: its redirections are not followed, and all namespaces share a key.
///
/// With `sentinel=NAME` the hosts are sentinels, whose port is 26379 by default. One
/// after another is asked for the primary of that name, and the server that it names for its
/// `ROLE`. Sentinels are reached as the server is, over TLS or in plain; in plain, what
/// they name must be on this machine, unless the URL says `tls=off`.
///
/// | parameter | |
/// |---|---|
/// | `wait` | how many replicas must confirm a write, 0 to 100; by default all that are online |
/// | `socket` | a Unix socket, used in place of host and port |
/// | `sentinel` | the primary's name among the sentinels |
/// | `sentinel_password_file` | a file with the sentinels' own password |
/// | `password_file` | a file with the password; `REDISCLI_AUTH` is the variable for one |
/// | `tls` | `off`: plain is good enough for a host that is not `localhost`, 127.0.0.0/8 or `[::1]`; otherwise such a host needs `rediss` |
/// | `ca` | file of PEM certificates to trust, instead of the system's; `rediss` only |
/// | `cert`, `key` | files of the client's own PEM certificate and key; `rediss` only |
///
/// In plain the password is sent as it is. With TLS the server's certificate and the
/// name in it are verified.
///
/// The files are read when the store is opened and at each new connection, so one that
/// is replaced is taken up by the next. TLS uses the process's default
/// rustls provider, and installs *ring* as such if there is none.
///
/// # Keys
/// `ringflake:{NAMESPACE}:` and
///
/// | key | kind | |
/// |---|---|---|
/// | `record` | hash | layout, limits, floor, incarnation |
/// | `hwm_end` | sorted set | block → mark, the queue out of which blocks are granted |
/// | `released` | sorted set | block → mark, of those released only |
/// | `epoch`, `granted_unix_ms`, `holder_host`, `holder_instance` | hashes | by block |
///
/// And `ringflake:secrets`, a hash, names the namespace of each fingerprint; `init`
/// needs it.
///
/// None of them expires. A user with restricted rights needs these keys and
/// `EVALSHA`, `SCRIPT|LOAD`, `TIME`, `INFO`, `CONFIG|GET`, `PING`, `WAIT`,
/// `SELECT`, with sentinels `ROLE`, `EXISTS`, `HSET`, `HGET`, `HMGET`, `HDEL`, `HGETALL`, `ZADD`,
/// `ZREM`, `ZCARD`, `ZCOUNT`, `ZRANGE`, `ZSCORE` and `ZMSCORE`.
///
/// Scores, and numbers in scripts, are doubles, exact up to 2^53. So a layout that
/// ends after 2^52 milliseconds since 1970 (the year 144,683) is refused by
/// `init`.
///
/// # After a restore
/// A restored server has another incarnation and the floor rises by itself.
/// Where a namespace was copied into a server that went on running (`RESTORE`,
/// `MIGRATE`, a script), raise the floor by hand:
/// [`raise_floor`](LeaseStore::raise_floor) with [`Floor::OverLostGrants`].
///
/// # Cost
/// One round trip to see that the connection is alive, one for the script, and
/// one for `WAIT` where there are replicas. Each takes O(log n) for a block out
/// of n that were granted; [`list`](LeaseStore::list) takes O(n) and blocks the
/// server meanwhile. Calls block up to [`OpenOptions::timeout`], plus the time
/// that the system takes to resolve HOST, which has no limit, and once more for
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
#[derive(Debug)]
pub struct RedisStore {
    config: Config,
    options: OpenOptions,
    key: StoreKey,
    /// None before the first operation and after a failure.
    connection: Option<Connection>,
}

impl RedisStore {
    /// The store at `url`; see there for its form. Connects to nothing yet.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] for another scheme, a parameter that does not exist
    /// or has no such value, and a file that can't be read.
    pub fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        Ok(Self {
            config: Config::from_url(url, options)?,
            options: options.clone(),
            key: StoreKey::new(url, options),
            connection: None,
        })
    }

    /// Runs a script and takes the answers that every script may give for a
    /// refusal.
    fn run(
        &mut self,
        script: Script,
        namespace: &Namespace,
        arguments: &[String],
    ) -> Result<Answer, StoreError> {
        let deadline = Deadline::after(self.options.operation_timeout());
        // Back in its place only if nothing failed.
        let kept = self.connection.take();
        let probe = Deadline::after(deadline::of_a_try(self.options.operation_timeout()));
        let alive = kept.and_then(|mut kept| kept.is_alive(&probe).then_some(kept));
        let mut connection = match alive {
            Some(connection) => connection,
            None => connect::open(&self.config, &self.options, &deadline)?,
        };
        let wait = self.config.wait;
        let answer = connection.run(script, namespace, arguments, wait, &deadline)?;
        let unavailable = |text: String| {
            let source = text.into();
            Err(StoreError::Unavailable { source })
        };
        match &*answer.tag {
            "replica" => return unavailable("the server is a replica".into()),
            "replicas" => {
                return unavailable(format!(
                    "{} replicas are online, where wait is {}",
                    answer.online,
                    wait.unwrap_or(0)
                ));
            }
            _ => {}
        }
        self.connection = Some(connection);
        match &*answer.tag {
            "missing" => Err(namespace.not_initialised()),
            "other" => {
                answer.record()?.verify(namespace)?;
                Err(disagreement())
            }
            "corrupt" => Err(corrupt(answer.text(0)?.to_owned())),
            "before" if script != Script::Init => {
                answer.record()?.tick_at(answer.unix_ms)?;
                Err(disagreement())
            }
            _ => Ok(answer),
        }
    }

    fn init_as(
        &mut self,
        namespace: &Namespace,
        init: &Init,
        voucher: Voucher,
    ) -> Result<StoreRecord, StoreError> {
        let request = init::Request::new(namespace, init, voucher)?;
        let answer = self.run(Script::Init, namespace, &request.arguments())?;
        request.outcome(&answer)
    }
}

impl LeaseStore for RedisStore {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.init_as(namespace, init, Voucher::Person)
    }

    /// Looks at the server's settings on a connection of its own, which are those of
    /// this moment.
    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        let deadline = Deadline::after(self.options.operation_timeout());
        self.connection = None;
        let connection = connect::open(&self.config, &self.options, &deadline)?;
        Voucher::Program.check(namespace, init, connection.gate.durability())?;
        self.connection = Some(connection);
        self.init_as(namespace, init, Voucher::Program)
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        acquire.validate()?;
        let arguments = acquire::arguments(namespace, acquire);
        let answer = self.run(Script::Acquire, namespace, &arguments)?;
        acquire::grants(&answer, namespace, acquire)
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        renew.validate()?;
        let new_end = renew.new_end.min(namespace.layout().ticks());
        let arguments = [
            name_of(renew.block),
            renew.epoch.get().to_string(),
            renew.known_end.to_string(),
            new_end.to_string(),
        ];
        let answer = self.run(Script::Renew, namespace, &arguments)?;
        match &*answer.tag {
            "renewed" => answer.number(0)?.ok_or_else(disagreement),
            "quarantined" => Err(answers::fence_of(&answer, namespace, renew.block)),
            "fenced" => {
                let known = answers::block_at(&answer, 0, renew.block)?;
                answer
                    .record()?
                    .check_renewal(&answer.incarnation, known.as_ref(), renew)?;
                Err(disagreement())
            }
            _ => Err(disagreement()),
        }
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        let arguments = [name_of(block), epoch.get().to_string()];
        let answer = self.run(Script::Release, namespace, &arguments)?;
        match &*answer.tag {
            "released" => Ok(()),
            "quarantined" => Err(answers::fence_of(&answer, namespace, block)),
            "fenced" => {
                StoreRecord::released(block, epoch, answers::block_at(&answer, 0, block)?)?;
                Err(disagreement())
            }
            _ => Err(disagreement()),
        }
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        let answer = self.run(Script::List, namespace, &[])?;
        let judged = block::listed(&answer, namespace)?;
        Ok(Listing::of_judged(answer.record()?, judged))
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        let arguments = [name_of(block), now_unix_ms.to_string()];
        let answer = self.run(Script::Repair, namespace, &arguments)?;
        let record = answer.record()?;
        match &*answer.tag {
            "repaired" => {
                let mark = answer.number(0)?.ok_or_else(disagreement)?;
                let now = record.tick_at(answer.unix_ms)?;
                Ok(record.repaired(now, block, Some(mark)))
            }
            "sound" => Err(StoreError::NotQuarantined { block }),
            "skew" => {
                record.check_skew(answer.unix_ms, now_unix_ms)?;
                Err(disagreement())
            }
            _ => Err(disagreement()),
        }
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        let (kind, tick) = match floor {
            Floor::OverLostGrants => ("lost", 0),
            Floor::Tick(tick) => ("tick", tick),
            Floor::AnyTick(tick) => ("any", tick),
        };
        let arguments = [kind.to_owned(), tick.to_string(), now_unix_ms.to_string()];
        let answer = self.run(Script::RaiseFloor, namespace, &arguments)?;
        let mut record = answer.record()?;
        match &*answer.tag {
            "raised" => Ok(record.floor),
            "skew" => {
                record.check_skew(answer.unix_ms, now_unix_ms)?;
                Err(disagreement())
            }
            "invalid" | "far" => {
                record.raise_floor(floor, record.tick_at(answer.unix_ms)?)?;
                Err(disagreement())
            }
            _ => Err(disagreement()),
        }
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        // A new connection, since that is what looks at the settings.
        self.connection = None;
        let answer = self.run(Script::Check, namespace, &[])?;
        let Some(connection) = &self.connection else {
            return Err(disagreement());
        };
        let mut report = StoreReport::new(
            connection.gate.store(),
            answer.record()?,
            answer.incarnation.clone(),
            connection.gate.durability(),
            now_unix_ms,
        );
        report.store_unix_ms = Some(answer.unix_ms);
        report.granted_blocks = answer.number(0)?.unwrap_or(0);
        report.held_blocks = answer.number(1)?.unwrap_or(0);
        report.quarantined = block::quarantined(&answer, 2, namespace)?;
        Ok(report)
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }
}

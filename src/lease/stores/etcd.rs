//! The store that keeps its records in an etcd cluster.

mod acquire;
mod choice;
mod clock;
mod cluster;
mod config;
mod gateway;
mod history;
mod init;
mod record;
mod tls;
mod verdict;
mod wire;

use std::fmt;

use self::choice::Random;
use self::cluster::{Change, Cluster, Opened};
use self::config::Config;
use self::gateway::{Gateway, Reply};
use self::wire::{KeyValue, TxnReply};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::connect::deadline::Deadline;
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::grant::Grant;
use crate::lease::key::StoreKey;
use crate::lease::namespace::Namespace;
use crate::lease::options::{OpenError, OpenOptions};
use crate::lease::quarantine::Quarantined;
use crate::lease::record::StoreRecord;
use crate::lease::report::{Durability, Listing, StoreReport};
use crate::lease::request::{Acquire, Floor, Init, Renew};
use crate::lease::store::LeaseStore;
use crate::lease::voucher::Voucher;

/// Leases in an etcd cluster, version 3.4 or later.
///
/// # What is promised
/// Each operation reads, decides with the rules of [`StoreRecord`], and writes in
/// one transaction that is done only if the record and every block concerned are
/// as they were read. Reads and transactions of etcd are linearizable, and a
/// majority of the members has a write on disk before it is confirmed. So a
/// cluster keeps every [rule of leases](crate::lease), through the loss of any
/// minority of its members.
///
/// etcd syncs every write unless it runs with `--unsafe-no-fsync`, which nobody
/// can see from outside: don't use that here. The store never uses etcd's own
/// leases: their time starts anew whenever the leader changes.
///
/// ## The clock
/// etcd has none in its interface. The store takes the `Date` that heads each
/// HTTP reply, and so the member's clock, to the second. A client whose clock
/// differs from that by more than the [skew limit](crate::lease::limits::StoreLimits::with_skew)
/// is granted nothing, as in every other store, and can't push a mark years
/// ahead. What still can is a member whose clock and whose client's clock are
/// wrong together. Members whose replies have no date are refused.
///
/// ## Incarnation
/// `CLUSTER/REVISION`: the cluster's ID, and the revision at which the namespace
/// was initialised there, or at which a loss was noticed. A restored snapshot
/// often has **the same cluster ID** as before, since that is computed from
/// `--initial-cluster-token` and the peer URLs. Two more things are therefore
/// compared: the raft term, which a restore starts again at 1, with the highest on
/// record; and the revision, with the last that this store has seen. Each makes
/// the next [`acquire`](LeaseStore::acquire) raise the floor.
///
/// That notices most restores and not all; see below. Elections, restarts and
/// members that come and go change nothing.
///
/// # After a restore
/// Raise the floor by hand before any process is started:
/// [`raise_floor`](LeaseStore::raise_floor) with [`Floor::OverLostGrants`]. This is
/// needed where a data directory was put back that had been copied as files or
/// with the disk, and where a snapshot was restored of a cluster that had seen no
/// more elections than the restored one has. It never harms. Give the restored
/// cluster a new `--initial-cluster-token`: then the loss is always noticed.
///
/// # URL
/// `etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][?PARAMETERS]`, or
/// `etcds://` for TLS. The port is 2379 by default. Name all members: one that
/// does not answer is passed over.
///
/// | parameter | |
/// |---|---|
/// | `password_file` | a file with the password; `ETCDCTL_PASSWORD` is the variable for one |
/// | `tls` | `off`: plain is good enough for hosts that are not `localhost`, 127.0.0.0/8 or `[::1]`; otherwise such hosts need `etcds` |
/// | `ca` | file of PEM certificates to trust, instead of this machine's; `etcds` only |
/// | `cert`, `key` | files of the client's own PEM certificate and key; `etcds` only |
///
/// In plain the password is sent as it is. With TLS the member's certificate and the
/// name in it are verified.
///
/// The files are read when the store is opened and before each operation, so one that
/// is replaced is taken up by the next. The store speaks to the JSON
/// gateway that is part of each member unless it is switched off
/// (`--enable-grpc-gateway=false`). There a client certificate proves that the
/// client may connect, but not which user it is: users log in by password.
///
/// # Keys
/// | key | value |
/// |---|---|
/// | `ringflake/NAMESPACE/record` | layout, limits, floor, incarnation, raft term |
/// | `ringflake/NAMESPACE/block/INDEX` | mark, epoch, released, holder |
/// | `ringflake/.secret/FINGERPRINT` | the name of the namespace that has this secret |
///
/// Values are JSON, but for names, to be read with `etcdctl get --prefix ringflake/`. A user with
/// restricted rights needs to read and write these keys.
///
/// # Cost
/// Two round trips an operation, and two more for each time that somebody else
/// was first. The record is compared and not written, but for the first operation
/// after an election, so acquirers only disturb each other where they choose the
/// same block, and they choose at random. An acquisition reads up to 560 keys;
/// where hardly a block is free it reads all of them, in namespaces of up to
/// 16,384 granted blocks. In larger ones it may then answer that none is free
/// although one that was released is. Calls block up to [`OpenOptions::timeout`].
///
/// # Examples
/// ```no_run
/// use ringflake::Layout;
/// use ringflake::lease::{EtcdStore, Fingerprint, LeaseStore, Namespace, OpenOptions};
///
/// let url = "etcds://10.0.0.1,10.0.0.2,10.0.0.3";
/// let mut store = EtcdStore::from_url(url, &OpenOptions::new())?;
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// println!("{:?}", store.list(&orders)?.blocks);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EtcdStore {
    cluster: Cluster,
    options: OpenOptions,
    key: StoreKey,
    random: Random,
}

impl EtcdStore {
    /// The store at `url`; see there for its form. Connects to nothing yet.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] for another scheme, a parameter that does not
    /// exist, and a file that can't be read.
    pub fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let config = Config::from_url(url, options)?;
        let mut random = Random::new();
        let first = random.below(config.hosts.len() as u64) as usize;
        Ok(Self {
            cluster: Cluster::new(Gateway::new(config, first)),
            options: options.clone(),
            key: StoreKey::new(url, options),
            random,
        })
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(self.options.operation_timeout())
    }
}

impl LeaseStore for EtcdStore {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        let deadline = self.deadline();
        init::run(
            &mut self.cluster,
            namespace,
            init,
            Voucher::Person,
            &deadline,
        )
    }

    /// etcd confirms nothing that it has not written. But its keys can be deleted.
    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        let deadline = self.deadline();
        init::run(
            &mut self.cluster,
            namespace,
            init,
            Voucher::Program,
            &deadline,
        )
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        acquire.validate()?;
        let deadline = self.deadline();
        acquire::run(
            &mut self.cluster,
            &mut self.random,
            namespace,
            acquire,
            &deadline,
        )
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        renew.validate()?;
        let deadline = self.deadline();
        let block = renew.block;
        let change = |opened: &Opened, reply: &Reply<TxnReply>, kv: Option<&KeyValue>| {
            let known = record::known(namespace, block, kv)?;
            let now = opened.record.tick_at(reply.dated()?)?;
            let renewed = opened
                .record
                .renewed(&opened.incarnation, now, known, renew)?;
            Ok(renewed)
        };
        let cluster = &mut self.cluster;
        let renewed = cluster.change_block("renew", namespace, block, &deadline, change)?;
        Ok(renewed.hwm_end)
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        let deadline = self.deadline();
        let change = |_: &Opened, _: &Reply<TxnReply>, kv: Option<&KeyValue>| {
            StoreRecord::released(block, epoch, record::known(namespace, block, kv)?)
        };
        let cluster = &mut self.cluster;
        let released = cluster.change_block("release", namespace, block, &deadline, change);
        released.map(drop)
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        let deadline = self.deadline();
        let (opened, judged, _) = self.cluster.read_all(namespace, &deadline)?;
        Ok(Listing::of_judged(opened.record, judged))
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        let deadline = self.deadline();
        let change = |opened: &Opened, reply: &Reply<TxnReply>, kv: Option<&KeyValue>| {
            let date_ms = reply.dated()?;
            opened.check_skew(date_ms, &deadline, now_unix_ms)?;
            let now = opened.record.tick_at(date_ms)?;
            let damaged = kv.filter(|kv| {
                let judged = record::judge(namespace, kv);
                matches!(judged, Err(Quarantined { block: Some(_), .. }))
            });
            let kv = damaged.ok_or(StoreError::NotQuarantined { block })?;
            Ok(opened.record.repaired(now, block, record::read_mark(kv)))
        };
        let cluster = &mut self.cluster;
        cluster.change_block("repair", namespace, block, &deadline, change)
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        let deadline = self.deadline();
        let keys = [record::record_key(namespace)];
        self.cluster
            .change("raise_floor", &keys, &deadline, |cluster, reply| {
                let mut opened = cluster.open(namespace, &reply.body)?;
                let date_ms = reply.dated()?;
                let now = opened.record.tick_at(date_ms)?;
                if floor.heeds_clocks() {
                    opened.check_skew(date_ms, &deadline, now_unix_ms)?;
                }
                opened.record.raise_floor(floor, now)?;
                let same_history = opened.incarnation == opened.record.incarnation;
                let term = if same_history {
                    opened.raft_term.max(opened.header.raft_term)
                } else {
                    opened.raft_term
                };
                let value = record::encode_record(&opened.record, term)?;
                Ok(Change {
                    puts: vec![wire::put(&keys[0], &value)],
                    answer: opened.record.floor,
                })
            })
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        let deadline = self.deadline();
        let store = self.cluster.describe(&deadline)?;
        let (opened, judged, date_ms) = self.cluster.read_all(namespace, &deadline)?;
        let date_ms = gateway::dated(date_ms)?;
        let now = opened.record.tick_at(date_ms)?;
        let report = StoreReport::new(
            store,
            opened.record,
            opened.incarnation,
            Durability::Durable,
            now_unix_ms,
        );
        let nearest = clock::nearest(date_ms, deadline.elapsed(), now_unix_ms);
        Ok(report.at(nearest).with_blocks(now, judged))
    }

    fn upgrade(&mut self, namespace: &Namespace, former: Fingerprint) -> Result<bool, StoreError> {
        let deadline = self.deadline();
        let claims = namespace.claims(&[]);
        let keys = init::keys_with_secrets(namespace, &claims);
        self.cluster
            .change("upgrade", &keys, &deadline, |_, reply| {
                let kv = reply.body.key_value(0)?;
                let kv = kv.ok_or_else(|| namespace.not_initialised())?;
                let (row, raft_term) = record::decode_row(namespace, kv)?;
                Ok(match row.upgraded(namespace, former)? {
                    None => Change {
                        puts: Vec::new(),
                        answer: false,
                    },
                    Some(row) => {
                        let value = record::encode_row(row, raft_term)?;
                        Change {
                            puts: init::puts(namespace, &keys, &claims, &reply.body, value)?,
                            answer: true,
                        }
                    }
                })
            })
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore")
            .field("gateway", self.cluster.gateway())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

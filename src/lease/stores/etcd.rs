//! The store that keeps its records in an etcd cluster.

mod choice;
mod clock;
mod config;
mod gateway;
mod history;
mod record;
mod repair;
mod tls;
mod transaction;
mod verdict;
mod wire;

use std::fmt;
use std::ops::Range;

use serde_json::Value;

use self::choice::{Candidate, READ_WHOLE, Random};
use self::config::Config;
use self::gateway::{Gateway, Reply};
use self::history::Histories;
use self::transaction::{Written, dated, range, unavailable};
use self::wire::{MembersReply, StatusReply, TxnReply};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::confirmed::Confirmed;
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::grant::Grant;
use crate::lease::key::StoreKey;
use crate::lease::namespace::Namespace;
use crate::lease::options::{OpenError, OpenOptions};
use crate::lease::record::StoreRecord;
use crate::lease::report::{Durability, Listing, StoreReport};
use crate::lease::request::{Acquire, Floor, Init, MAX_ACQUIRE, Renew};
use crate::lease::store::LeaseStore;
use crate::lease::stores::deadline::Deadline;

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
/// wrong together. Members that tell no date are refused.
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
    gateway: Gateway,
    options: OpenOptions,
    key: StoreKey,
    histories: Histories,
    random: Random,
}

/// How much of a namespace an acquisition reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// A part of the fresh blocks, and those with the lowest marks.
    Part,
    /// Every block that was granted.
    Whole,
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
            gateway: Gateway::new(config, first),
            options: options.clone(),
            key: StoreKey::new(url, options),
            histories: Histories::default(),
            random,
        })
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(self.options.operation_timeout())
    }

    /// What an acquisition reads, with the part of the blocks that it looks at.
    fn view_ops(
        &mut self,
        namespace: &Namespace,
        reading: Reading,
        wanted: u64,
    ) -> (Vec<Value>, Range<u64>) {
        let all = record::all_blocks(namespace);
        let mut ops = vec![
            wire::read(wire::get(&record::record_key(namespace))),
            wire::read(wire::count(&all)),
        ];
        let (limit, length) = match reading {
            // Twice what is wanted, so that two who choose need not collide.
            Reading::Part => (2 * wanted + 16, 2 * wanted + 32),
            Reading::Whole => (0, READ_WHOLE),
        };
        let window = choice::window(namespace, length, &mut self.random);
        ops.push(wire::read(wire::least(&all, limit)));
        let span = record::some_blocks(namespace, window.start, window.end);
        ops.push(wire::read(wire::keys(&span)));
        (ops, window)
    }

    /// What is said of a cluster that knows less than it has confirmed. Read after what
    /// is chosen from: whoever puts keys back has put back these, too, by then, or
    /// changes what the write compares.
    fn history_lost(
        &mut self,
        namespace: &Namespace,
        record: &StoreRecord,
        now: u64,
        evidence: &[Confirmed],
        deadline: &Deadline,
    ) -> Result<Option<StoreError>, StoreError> {
        for some in evidence.chunks(MAX_ACQUIRE as usize) {
            let key = |it: &Confirmed| record::block_key(namespace, it.block);
            let ops = some.iter().map(|it| wire::read(wire::get(&key(it))));
            let reply = self.read(ops.collect(), deadline)?;
            for (place, confirmed) in some.iter().enumerate() {
                let known = range(&reply.body, place)?.kvs.first();
                let judged = known.map(|kv| record::judge(namespace, kv));
                if let Err(lost) = record.check_evidence(now, judged.as_ref(), confirmed) {
                    return Ok(Some(lost));
                }
            }
        }
        Ok(None)
    }

    /// Which cluster this is, in words.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where it has raised an alarm: it then refuses
    /// to write.
    fn describe(&mut self, deadline: &Deadline) -> Result<String, StoreError> {
        let nothing = serde_json::json!({});
        let mut ask = |path| self.gateway.ask(path, &nothing, deadline);
        let status: Reply<StatusReply> = ask("/v3/maintenance/status").map_err(unavailable)?;
        let status = status.body;
        if !status.errors.is_empty() {
            let text = format!("etcd has raised an alarm: {}", status.errors.join(", "));
            return Err(StoreError::Unavailable {
                source: text.into(),
            });
        }
        let members = self
            .gateway
            .ask("/v3/cluster/member/list", &nothing, deadline);
        let members: Reply<MembersReply> = members.map_err(unavailable)?;
        let members = members.body.members;
        let leader = members.iter().find(|member| member.id == status.leader);
        let leader = leader.map_or("unknown", |member| &member.name);
        let host = self.gateway.member().map(ToString::to_string);
        Ok(format!(
            "etcd {} at {}, {} members, leader {leader}",
            status.version,
            host.unwrap_or_default(),
            members.len()
        ))
    }
}

impl LeaseStore for EtcdStore {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        // Before anything is sent.
        init.limits.validate(namespace.layout())?;
        let deadline = self.deadline();
        let key = record::record_key(namespace);
        let secret_key = record::secret_key(namespace.fingerprint());
        let ops = || {
            [&key, &secret_key]
                .map(|key| wire::read(wire::get(key)))
                .to_vec()
        };
        let mut reply = self.read(ops(), &deadline)?;
        loop {
            if !range(&reply.body, 0)?.kvs.is_empty() {
                return Err(namespace.already_initialised());
            }
            let header = reply.body.header;
            let incarnation = history::new_incarnation(&header);
            let date_ms = dated(reply.date_ms)?;
            let record = StoreRecord::create(namespace, init, &incarnation, date_ms)?;
            let value = record::encode_record(&record, header.raft_term)?;
            let mut compare = vec![wire::unchanged(&key, 0)];
            let mut puts = vec![wire::put(&key, &value)];
            claim_secret(namespace, &reply.body, &mut compare, &mut puts)?;
            match self.write("init", &header, compare, puts, ops(), &deadline)? {
                Written::Done => return Ok(record),
                Written::Overtaken(again) => reply = again,
            }
        }
    }

    /// etcd confirms nothing that it has not written.
    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.init(namespace, init)
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        acquire.validate()?;
        let deadline = self.deadline();
        let record_key = record::record_key(namespace);
        let wanted = acquire.blocks as usize;
        let mut reading = Reading::Part;
        let (mut ops, mut window) = self.view_ops(namespace, reading, u64::from(acquire.blocks));
        let mut reply = self.read(ops, &deadline)?;
        loop {
            let mut opened = self.open(namespace, &reply.body)?;
            let date_ms = dated(reply.date_ms)?;
            let now = opened.record.tick_at(date_ms)?;
            let client_ms = acquire.now_unix_ms;
            let nearest = clock::nearest(date_ms, deadline.elapsed(), client_ms);
            opened.record.check_skew(nearest, client_ms)?;

            let compare = vec![wire::unchanged(&record_key, opened.mod_revision)];
            let mut raised = opened.record.observe(&opened.incarnation, now);
            let evidence = &acquire.evidence;
            let lost = self.history_lost(namespace, &opened.record, now, evidence, &deadline)?;
            if lost.is_some() {
                opened.record.raise_floor(Floor::OverLostGrants, now)?;
                raised = true;
            }
            if raised {
                // By itself: whatever becomes of the rest, the floor stays.
                let term = opened.header.raft_term;
                let value = record::encode_record(&opened.record, term)?;
                let puts = vec![wire::put(&record_key, &value)];
                let header = &opened.header;
                let written =
                    self.write("acquire", header, compare, puts, Vec::new(), &deadline)?;
                if let (Some(lost), Written::Done) = (lost, written) {
                    return Err(lost);
                }
                (ops, window) = self.view_ops(namespace, reading, u64::from(acquire.blocks));
                reply = self.read(ops, &deadline)?;
                continue;
            }

            let view = choice::view(namespace, &reply.body, window)?;
            let count = range(&reply.body, 1)?.count;
            let random = &mut self.random;
            let chosen = view.candidates(&opened.record, now, wanted, random);
            let partial = reading == Reading::Part && !view.complete && count <= READ_WHOLE;
            if chosen.len() < wanted && partial {
                reading = Reading::Whole;
                (ops, window) = self.view_ops(namespace, reading, u64::from(acquire.blocks));
                reply = self.read(ops, &deadline)?;
                continue;
            }

            if chosen.is_empty() {
                let free_from = view.free_from(&opened.record).unwrap_or(now);
                return Err(opened
                    .record
                    .refusal(date_ms, now, acquire.blocks, free_from));
            }
            let (mut compare, mut puts, mut grants) = (compare, Vec::new(), Vec::new());
            for Candidate {
                state,
                mod_revision,
            } in &chosen
            {
                let record = &opened.record;
                let Some((grant, after)) = record.granted(now, date_ms, state, acquire) else {
                    continue;
                };
                let key = record::block_key(namespace, state.block);
                compare.push(wire::unchanged(&key, *mod_revision));
                puts.push(wire::put(&key, &record::encode_block(&after)?));
                grants.push(grant);
            }
            puts.extend(opened.new_term(&record_key)?);
            let (instead, next) = self.view_ops(namespace, reading, u64::from(acquire.blocks));
            let header = &opened.header;
            match self.write("acquire", header, compare, puts, instead, &deadline)? {
                Written::Done => return Ok(grants),
                Written::Overtaken(again) => (reply, window) = (again, next),
            }
        }
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        renew.validate()?;
        self.change_block("renew", namespace, renew.block, |opened, date_ms, known| {
            let record = &opened.record;
            let now = record.tick_at(dated(date_ms)?)?;
            let renewed = record.renewed(&opened.incarnation, now, known, renew)?;
            let end = renewed.hwm_end;
            Ok((renewed, end))
        })
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.change_block("release", namespace, block, |_, _, known| {
            Ok((StoreRecord::released(block, epoch, known)?, ()))
        })
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        let deadline = self.deadline();
        let (opened, judged, _) = self.read_all(namespace, &deadline)?;
        Ok(Listing::of_judged(opened.record, judged))
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        self.repair_block(namespace, block, now_unix_ms)
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        let deadline = self.deadline();
        let key = record::record_key(namespace);
        let ops = || vec![wire::read(wire::get(&key))];
        let mut reply = self.read(ops(), &deadline)?;
        loop {
            let mut opened = self.open(namespace, &reply.body)?;
            let date_ms = dated(reply.date_ms)?;
            let now = opened.record.tick_at(date_ms)?;
            if floor.heeds_clocks() {
                let nearest = clock::nearest(date_ms, deadline.elapsed(), now_unix_ms);
                opened.record.check_skew(nearest, now_unix_ms)?;
            }
            opened.record.raise_floor(floor, now)?;
            let same_history = opened.incarnation == opened.record.incarnation;
            let term = if same_history {
                opened.raft_term.max(opened.header.raft_term)
            } else {
                opened.raft_term
            };
            let value = record::encode_record(&opened.record, term)?;
            let compare = vec![wire::unchanged(&key, opened.mod_revision)];
            let puts = vec![wire::put(&key, &value)];
            let header = &opened.header;
            match self.write("raise_floor", header, compare, puts, ops(), &deadline)? {
                Written::Done => return Ok(opened.record.floor),
                Written::Overtaken(again) => reply = again,
            }
        }
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        let deadline = self.deadline();
        let store = self.describe(&deadline)?;
        let (opened, judged, date_ms) = self.read_all(namespace, &deadline)?;
        let date_ms = dated(date_ms)?;
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
        let key = record::record_key(namespace);
        let secret_key = record::secret_key(namespace.fingerprint());
        let ops = || {
            [&key, &secret_key]
                .map(|key| wire::read(wire::get(key)))
                .to_vec()
        };
        let mut reply = self.read(ops(), &deadline)?;
        loop {
            let Some(kv) = range(&reply.body, 0)?.kvs.first() else {
                return Err(namespace.not_initialised());
            };
            let (row, raft_term) = record::decode_row(namespace, kv)?;
            let Some(row) = row.upgraded(namespace, former)? else {
                return Ok(false);
            };
            let mut compare = vec![wire::unchanged(&key, kv.mod_revision)];
            let mut puts = vec![wire::put(&key, &record::encode_row(row, raft_term)?)];
            claim_secret(namespace, &reply.body, &mut compare, &mut puts)?;
            let header = reply.body.header;
            match self.write("upgrade", &header, compare, puts, ops(), &deadline)? {
                Written::Done => return Ok(true),
                Written::Overtaken(again) => reply = again,
            }
        }
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore")
            .field("gateway", &self.gateway)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Adds the claim of the namespace's secret to a write of its record, whose key was
/// read second.
fn claim_secret(
    namespace: &Namespace,
    reply: &TxnReply,
    compare: &mut Vec<Value>,
    puts: &mut Vec<Value>,
) -> Result<(), StoreError> {
    if namespace.fingerprint() == Fingerprint::PLAIN {
        return Ok(());
    }
    let key = record::secret_key(namespace.fingerprint());
    let claimed = range(reply, 1)?.kvs.first();
    let owner = claimed.map(|kv| String::from_utf8_lossy(&kv.value));
    namespace.check_secret(owner.as_deref())?;
    compare.push(wire::unchanged(
        &key,
        claimed.map_or(0, |kv| kv.mod_revision),
    ));
    puts.push(wire::put(&key, namespace.name()));
    Ok(())
}

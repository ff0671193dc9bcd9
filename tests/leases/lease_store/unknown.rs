//! Commits whose outcome is unknown: the operation is ambiguous, and nothing is sent again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringflake::lease::table::{
    Blocks, Commit, Description, Key, MemoryTable, Query, Snapshot, Table, Txn,
};
use ringflake::lease::{
    Acquire, Confirmed, Fingerprint, Floor, Grant, History, Incarnation, Init, LeaseStore, Leases,
    MemoryStore, Namespace, Renew, StoreError,
};
use ringflake::{Layout, SystemClock};
use ringflake_kit::{assert_matches, unix_ms as now};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Read,
    Commit,
    Describe,
}

/// A commit whose reply is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lost {
    /// How many commits come before it.
    after: usize,
    is_applied: bool,
}

/// A table that notes its calls, and loses the replies to chosen commits. Clones share the server
/// and the notes.
#[derive(Clone, Debug)]
struct WatchedTable {
    table: MemoryTable,
    watch: Arc<Mutex<Watch>>,
}

#[derive(Debug, Default)]
struct Watch {
    calls: Vec<Call>,
    conflicts: usize,
    lost: Option<Lost>,
    /// The commit whose reply was lost.
    lost_txn: Option<Txn>,
}

impl WatchedTable {
    fn new(table: MemoryTable) -> Self {
        Self {
            table,
            watch: Arc::default(),
        }
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the calls so far, and loses the reply to a commit from here on.
    fn lose(&self, lost: Lost) {
        *self.watch() = Watch {
            lost: Some(lost),
            ..Watch::default()
        };
    }
}

impl Table for WatchedTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, StoreError> {
        self.watch().calls.push(Call::Read);
        self.table.read(query)
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, StoreError> {
        let lost = {
            let mut watch = self.watch();
            let commits = watch.calls.iter().filter(|call| **call == Call::Commit);
            let before = commits.count();
            watch.calls.push(Call::Commit);
            let lost = watch.lost.filter(|lost| lost.after == before);
            if lost.is_some() {
                watch.lost_txn = Some(txn.clone());
            }
            lost
        };
        if lost.is_some_and(|lost| !lost.is_applied) {
            return Ok(Commit::Unknown("no reply".into()));
        }
        let outcome = self.table.commit(txn, instead)?;
        match (&outcome, lost) {
            (Commit::Conflict(_), _) => self.watch().conflicts += 1,
            (_, Some(_)) => return Ok(Commit::Unknown("no reply".into())),
            _ => {}
        }
        Ok(outcome)
    }

    fn describe(&mut self) -> Result<Description, StoreError> {
        self.watch().calls.push(Call::Describe);
        self.table.describe()
    }
}

/// A server, a store whose table loses replies, and a grant that this store holds.
struct Rig {
    server: MemoryStore,
    store: Leases<WatchedTable>,
    space: Namespace,
    grant: Grant,
}

fn space(name: &str) -> Namespace {
    Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
}

impl Rig {
    fn new() -> Self {
        let server = MemoryStore::new(Arc::new(SystemClock));
        let mut store = Leases::over(WatchedTable::new(server.table().clone()));
        let space = space("orders");
        store.init(&space, &Init::new(History::New, now())).unwrap();
        let grant = store.acquire(&space, &Acquire::new(1, 60, now())).unwrap();
        Self {
            server,
            store,
            space,
            grant: grant.into_iter().next().unwrap(),
        }
    }

    fn entries(&self) -> Vec<(Key, String)> {
        let mut table = self.server.table().clone();
        let entries = ["orders", "others"].into_iter().flat_map(|name| {
            let query = Query {
                keys: vec![Key::record(name), Key::check(name)],
                blocks: Some(Blocks::All {
                    namespace: name.to_owned(),
                }),
            };
            table.read(&query).unwrap().entries
        });
        entries.collect()
    }

    fn lose(&self, after: usize, is_applied: bool) {
        self.store.table().lose(Lost { after, is_applied });
    }

    /// Compares the entries with those before, and what the lost commit was to write.
    fn check_entries(&self, before: &[(Key, String)], is_applied: bool, what: &str) {
        let after = self.entries();
        if !is_applied {
            assert_eq!(after, before, "{what}");
            return;
        }
        assert_ne!(after, before, "{what}");
        let txn = self.store.table().watch().lost_txn.clone();
        for put in txn.expect("a reply was lost").puts {
            let is_there = after.contains(&(put.key.clone(), put.value.clone()));
            assert!(is_there, "{what}: {put:?}");
        }
    }
}

type Operation = fn(&mut Rig) -> Result<(), StoreError>;

fn renew(rig: &mut Rig) -> Result<(), StoreError> {
    let renew = Renew::new(&rig.grant, rig.grant.ticks.end + 5, now());
    rig.store.renew(&rig.space, &renew).map(drop)
}

fn acquire(rig: &mut Rig) -> Result<(), StoreError> {
    let ask = Acquire::new(2, 60, now());
    rig.store.acquire(&rig.space, &ask).map(drop)
}

/// The operations that commit, by what they are called in errors, with their calls.
const OPERATIONS: &[(&str, &[Call], Operation)] = &[
    ("init", &[Call::Read, Call::Commit], |rig| {
        let init = Init::new(History::New, now());
        rig.store.init(&space("others"), &init).map(drop)
    }),
    ("init", &[Call::Read, Call::Commit], |rig| {
        // Of a known history, a store that is not durable would reject it.
        let init = Init::new(History::Unknown, now());
        rig.store.init_if_new(&space("others"), &init).map(drop)
    }),
    ("acquire", &[Call::Read, Call::Commit], acquire),
    // The floor is raised in a commit of its own.
    ("acquire", &[Call::Read, Call::Commit], |rig| {
        rig.server.set_incarnation(Incarnation::new("restored"));
        acquire(rig)
    }),
    ("acquire", &[Call::Read, Call::Commit], |rig| {
        let end = rig.grant.ticks.end + 100;
        let confirmed = Confirmed::new(rig.grant.block, rig.grant.epoch, end);
        let ask = Acquire::new(1, 60, now()).with_evidence(vec![confirmed]);
        rig.store.acquire(&rig.space, &ask).map(drop)
    }),
    // From cached values.
    ("renew", &[Call::Commit], renew),
    ("renew", &[Call::Read, Call::Commit], |rig| {
        rig.store = Leases::over(rig.store.table().clone());
        renew(rig)
    }),
    ("release", &[Call::Commit], |rig| {
        let Grant { block, epoch, .. } = rig.grant;
        rig.store.release(&rig.space, block, epoch)
    }),
    ("repair", &[Call::Read, Call::Commit], |rig| {
        let block = rig.grant.block;
        rig.store.repair(&rig.space, block, now()).map(drop)
    }),
    ("raise_floor", &[Call::Read, Call::Commit], |rig| {
        let floor = Floor::OverLostGrants;
        rig.store.raise_floor(&rig.space, floor, now()).map(drop)
    }),
    ("write_test", &[Call::Read, Call::Commit], |rig| {
        rig.store.write_test(&rig.space, now())
    }),
];

#[test]
fn an_unknown_commit_is_ambiguous_and_is_not_sent_again() {
    for (expected, calls, operation) in OPERATIONS {
        for is_applied in [false, true] {
            let what = format!("{expected}, {calls:?}, applied: {is_applied}");
            let mut rig = Rig::new();
            if *expected == "repair" {
                assert!(rig.server.damage(&rig.space, rig.grant.block));
            }
            let before = rig.entries();
            rig.lose(0, is_applied);
            match operation(&mut rig) {
                Err(StoreError::Ambiguous { operation, source }) => {
                    assert_eq!(
                        (operation, source.to_string().as_str()),
                        (*expected, "no reply")
                    );
                }
                other => panic!("{other:?}, of {what}"),
            }
            assert_eq!(rig.store.table().watch().calls, *calls, "{what}");
            rig.check_entries(&before, is_applied, &what);
        }
    }
}

#[test]
fn a_commit_that_is_unknown_after_a_conflict_is_not_sent_again() {
    for is_applied in [false, true] {
        let mut rig = Rig::new();
        // The cached record is stale.
        let floor = Floor::Tick(rig.grant.ticks.start + 1);
        rig.server.raise_floor(&rig.space, floor, now()).unwrap();
        let before = rig.entries();
        rig.lose(1, is_applied);
        let error = renew(&mut rig).unwrap_err();
        assert_matches!(error, StoreError::Ambiguous { .. });
        let watch = rig.store.table().watch();
        assert_eq!(watch.calls, [Call::Commit, Call::Commit]);
        assert_eq!(watch.conflicts, 1);
        drop(watch);
        rig.check_entries(&before, is_applied, "renew");
    }
}

/// Renewals in one commit, at most.
const STEP: usize = 60;

#[test]
fn an_unknown_commit_ends_a_call_with_several_renewals() {
    for (step, is_applied) in [(0, false), (0, true), (1, false), (1, true), (2, true)] {
        let mut rig = Rig::new();
        let mut grants = Vec::new();
        for _ in 0..2 {
            let ask = Acquire::new(70, 60, now());
            grants.extend(rig.store.acquire(&rig.space, &ask).unwrap());
        }
        let renew = |grant: &Grant| Renew::new(grant, grant.ticks.end + 5, now());
        let renewals: Vec<_> = grants.iter().map(renew).collect();
        let asked: Vec<_> = renewals.iter().map(|renew| (&rig.space, renew)).collect();
        rig.lose(step, is_applied);
        let answers = rig.store.renew_all(&asked);
        assert_eq!(answers.len(), 140);
        let watch = rig.store.table().watch();
        assert_eq!(watch.calls, vec![Call::Commit; step + 1]);
        drop(watch);

        let blocks = rig.store.list(&rig.space).unwrap().blocks;
        for (index, (answer, renewal)) in answers.iter().zip(&renewals).enumerate() {
            match (answer, (index / STEP).cmp(&step)) {
                (Ok(end), std::cmp::Ordering::Less) => assert_eq!(*end, renewal.new_end),
                (Err(StoreError::Ambiguous { operation, source }), std::cmp::Ordering::Equal) => {
                    let said = source.to_string();
                    assert_eq!((*operation, said.as_str()), ("renew", "no reply"));
                }
                (Err(StoreError::Unavailable { source }), std::cmp::Ordering::Greater) => {
                    let said = source.to_string();
                    assert!(said.starts_with("not sent"), "{said}");
                }
                other => panic!("{other:?}, of renewal {index}"),
            }
            let known = blocks.iter().find(|block| block.block == renewal.block);
            let is_renewed = index / STEP < step + usize::from(is_applied);
            let expected = match is_renewed {
                true => renewal.new_end,
                false => renewal.known_end,
            };
            assert_eq!(known.unwrap().hwm_end, expected, "of renewal {index}");
        }
    }
}

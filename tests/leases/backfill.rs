//! Imports of the past whose nodes a store grants: no two of them, and no generator of the
//! present, make the same ID.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringflake::lease::{
    Acquire, Fingerprint, Grant, History, Holder, Init, LeaseStore, MemoryStore, Namespace,
    StoreError, StoreLimits,
};
use ringflake::{
    BackfillError, BackfillGenerator, BackfillGeneratorBuilder, BuildError, Clock, DirectGenerator,
    Id, Layout, Secret, SystemClock,
};
use ringflake_kit::faulty_store::{Fault, Faulty};
use ringflake_kit::small::{layout, namespace, secret_of_its_own};
use ringflake_kit::{assert_matches, assert_says, in_full};

/// Of two nodes, so that a tick has 32 IDs.
const BLOCK_BITS: u32 = 1;

/// The smallest that every platform's `SystemTime` counts: Windows has units of 100 ns.
const TIME_STEP: Duration = Duration::from_nanos(100);

struct Rig {
    layout: Layout,
    secret: Secret,
    space: Namespace,
}

impl Rig {
    fn new() -> Self {
        let layout = layout(48, 4, 4);
        let secret = secret_of_its_own();
        Self {
            layout,
            space: namespace("orders", &layout, Fingerprint::of(&secret), BLOCK_BITS),
            secret,
        }
    }

    fn init(&self, store: &mut dyn LeaseStore, history: History) {
        let init = Init::new(history, SystemClock.unix_ms()).with_secret(&self.secret);
        // What a busy machine may take between the client's look at the clock and the store's.
        let limits = StoreLimits::default().with_skew(Duration::from_secs(30));
        let init = init.with_limits(limits);
        store.init(&self.space, &init).unwrap();
    }

    fn memory(&self, history: History) -> MemoryStore {
        let mut store = MemoryStore::new(Arc::new(SystemClock));
        self.init(&mut store, history);
        store
    }

    fn at(&self, tick: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.layout.tick_start_unix_ms(tick))
    }

    fn import(&self, store: impl LeaseStore + 'static, ticks: Range<u64>) -> BackfillGenerator {
        self.builder(store, ticks).build().unwrap()
    }

    fn builder(
        &self,
        store: impl LeaseStore + 'static,
        ticks: Range<u64>,
    ) -> BackfillGeneratorBuilder {
        BackfillGenerator::builder(self.layout)
            .secret(&self.secret)
            .lease_store(store)
            .namespace("orders")
            .block_bits(BLOCK_BITS)
            .between(self.at(ticks.start)..self.at(ticks.end))
    }

    fn serving(&self, store: impl LeaseStore + 'static) -> DirectGenerator {
        DirectGenerator::builder(self.layout)
            .secret(&self.secret)
            .lease_store(store)
            .namespace("orders")
            .block_bits(BLOCK_BITS)
            .build()
            .unwrap()
    }

    /// All IDs of these ticks that the import has left.
    fn drain(&self, past: &BackfillGenerator, ticks: Range<u64>, seen: &mut HashSet<Id>) -> usize {
        let before = seen.len();
        for tick in ticks {
            let mut ids = [Id::default(); 100];
            let count = past.take_batch_at(self.at(tick), &mut ids).unwrap();
            for &id in &ids[..count] {
                let parts = past.inspect(id).unwrap();
                assert_eq!(parts.tick, tick);
                assert!(past.lease().nodes().contains(&parts.node));
                assert!(seen.insert(id), "{id} comes a second time");
            }
            let error = past.take_at(self.at(tick)).unwrap_err();
            assert_matches!(error, BackfillError::UsedUp { .. });
        }
        seen.len() - before
    }
}

#[test]
fn imports_of_one_range_never_make_the_same_id() {
    let rig = Rig::new();
    let store = rig.memory(History::Unused);
    let mut seen = HashSet::new();
    // Two at a time, one after another, and one whose process was killed before.
    let first = rig.import(store.clone(), 100..104);
    let second = rig.import(store.clone(), 102..110);
    assert_eq!(rig.drain(&first, 100..104, &mut seen), 4 * 32);
    assert_eq!(rig.drain(&second, 102..106, &mut seen), 4 * 32);
    drop(first);
    std::mem::forget(second);
    let third = rig.import(store.clone(), 100..110);
    assert_eq!(rig.drain(&third, 100..110, &mut seen), 10 * 32);
    // The next part of an import can have the same block.
    let holder = Holder::new("importer", "7");
    let fourth = rig.builder(store.clone(), 110..112).holder(holder.clone());
    let fourth = fourth.build().unwrap();
    assert_eq!(rig.drain(&fourth, 110..112, &mut seen), 2 * 32);
    assert_eq!(seen.len(), 20 * 32);
    let mut known = store.clone().list(&rig.space).unwrap().blocks.into_iter();
    assert!(known.any(|block| block.holder.as_ref() == Some(&holder)));

    let error = rig.builder(store, 104..105).lease_store(silent()).build();
    assert_matches!(error, Err(BuildError::Store(_)));
}

#[test]
fn an_import_and_a_serving_generator_make_no_id_twice() {
    let rig = Rig::new();
    let mut store = rig.memory(History::Unused);
    let mut seen = HashSet::new();
    let now = rig.layout.tick_at(SystemClock.unix_ms()).unwrap();
    let ids = rig.serving(store.clone());
    let past = rig.import(store.clone(), now - 50..now);
    for tick in now - 16..now {
        let id = past.take_at(rig.at(tick)).unwrap();
        assert!(seen.insert(id));
        assert!(seen.insert(ids.take().unwrap()));
    }
    assert!(ids.leases()[0].ticks().start >= now);
    assert_ne!(ids.leases()[0].nodes(), past.lease().nodes());
    drop((ids, past));

    // All eight blocks for the present: those of the past begin at their marks.
    let acquire = Acquire::new(8, 10, SystemClock.unix_ms());
    for grant in store.acquire(&rig.space, &acquire).unwrap() {
        assert!(grant.ticks.start >= now, "{grant}");
    }
    // And no past is left.
    let error = rig.builder(store, now - 50..now).build().unwrap_err();
    assert_matches!(
        error,
        BuildError::Store(StoreError::PastExhausted { blocks: 8, .. })
    );
    let said = ["all 8", "start later", "initialised as unused"];
    assert_says(&in_full(&error), &said);
}

#[test]
fn an_import_says_what_is_missing_before_it_asks_a_store() {
    let rig = Rig::new();
    let builder = || BackfillGenerator::builder(rig.layout).secret(&rig.secret);
    let between = || rig.at(100)..rig.at(200);
    let lease = || ringflake::StaticLease::assume_unique_past(rig.layout, 0..1, 0..9).unwrap();
    for (builder, expected) in [
        (
            builder().lease_store(silent()).namespace("orders"),
            "NoMoments",
        ),
        (
            builder().lease_store(silent()).between(between()),
            "NoNamespace",
        ),
        (
            builder().lease(lease()).between(between()),
            r#"NoStore { option: "between" }"#,
        ),
        (
            builder().lease(lease()).namespace("orders"),
            r#"NoStore { option: "namespace" }"#,
        ),
        (rig.builder(silent(), 100..200).lease(lease()), "TwoLeases"),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(format!("{error:?}"), expected);
    }

    let step = TIME_STEP;
    let epoch = rig.at(0);
    let end = rig.at(rig.layout.ticks());
    let within = rig.at(5) + step;
    for moments in [
        epoch..epoch,
        within..rig.at(5),
        rig.at(5)..rig.at(5),
        rig.at(7)..rig.at(5),
        within..within,
        within + step..within,
        epoch - step..rig.at(3),
        epoch..end + step,
    ] {
        let error = rig.builder(silent(), 1..2).between(moments).build();
        let error = error.unwrap_err();
        assert_matches!(error, BuildError::Moments { .. });
        assert_says(&error.to_string(), &["2024-10-27", "the layout goes from"]);
    }
    let now = SystemTime::now();
    let error = rig
        .builder(silent(), 1..2)
        .between(epoch..now + step)
        .build();
    assert_matches!(error, Err(BuildError::LeaseNotPast { .. }));
}

#[test]
fn an_import_has_all_ticks_that_its_moments_lie_in() {
    let rig = Rig::new();
    let store = rig.memory(History::Unused);
    let (half, step) = (Duration::from_millis(500), TIME_STEP);
    for (from, to, ticks) in [
        (rig.at(5), rig.at(7), 5..7),
        // From the end of those before.
        (rig.at(7), rig.at(9), 7..9),
        (rig.at(5) + half, rig.at(7) + step, 5..8),
        (rig.at(6) - step, rig.at(6), 5..6),
        (rig.at(6) + step, rig.at(6) + step * 2, 6..7),
        (rig.at(0), rig.at(0) + step, 0..1),
    ] {
        let past = rig.builder(store.clone(), 1..2).between(from..to);
        let past = past.build().unwrap();
        assert_eq!(past.lease().ticks(), ticks);
        past.take_at(from).unwrap();
        past.take_at(to - step).unwrap();
    }
}

#[test]
fn a_store_that_knows_of_no_past_is_found_out() {
    let rig = Rig::new();
    let store = Forgetful(rig.memory(History::Unused));
    let error = rig.builder(store, 50..60).build().unwrap_err();
    assert_matches!(error, BuildError::Store(StoreError::Corrupt { .. }));
    assert_says(&error.to_string(), &["50..60"]);
}

/// One that is away.
fn silent() -> Faulty {
    let store = Faulty::new(MemoryStore::new(Arc::new(SystemClock)));
    store.fail(Fault::Down);
    store
}

/// One of the version before, which does not look at the past that is asked for.
#[derive(Debug)]
struct Forgetful(MemoryStore);

impl LeaseStore for Forgetful {
    ringflake::forward_store! { |self| self.0 =>
        init renew release list raise_floor check write_test
    }

    fn acquire(&mut self, space: &Namespace, acquire: &Acquire) -> Result<Vec<Grant>, StoreError> {
        let mut acquire = acquire.clone();
        acquire.past = None;
        self.0.acquire(space, &acquire)
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::fs;
    use std::path::Path;

    use ringflake::lease::{OpenOptions, open};

    use super::*;

    fn store(path: &Path) -> Box<dyn LeaseStore> {
        let options = OpenOptions::new()
            .accept_best_effort(true)
            .timeout(Duration::from_secs(60));
        open(&format!("sqlite:{}", path.display()), &options).unwrap()
    }

    #[test]
    fn a_file_that_was_put_back_gives_no_past_away_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases.db");
        let [kept, copy] = ["kept.db", "copy.db"].map(|name| directory.path().join(name));
        let rig = Rig::new();
        rig.init(&mut store(&path), History::Unused);
        drop(rig.import(store(&path), 10..20));
        fs::copy(&path, &kept).unwrap();
        let past = rig.import(store(&path), 100..110);
        fs::copy(&path, &copy).unwrap();
        let is_copied =
            |error: BuildError| matches!(error, BuildError::Store(StoreError::Copied { .. }));
        assert!(is_copied(
            rig.builder(store(&copy), 200..210).build().unwrap_err()
        ));

        // The file is written over: the store notices, and the floor closes the past by itself.
        fs::copy(&kept, &path).unwrap();
        for ticks in [100..110, 200..210] {
            let error = rig.builder(store(&path), ticks).build().unwrap_err();
            assert_matches!(error, BuildError::Store(StoreError::BeforeFloor { .. }));
        }
        drop(past);
    }
}

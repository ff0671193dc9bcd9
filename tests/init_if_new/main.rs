//! A store's namespace that the builder initialises.

use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::{Fingerprint, History, LeaseStore, MemoryStore, Namespace, StoreError};
use ringflake::{
    BuildError, CachedGenerator, CachedGeneratorBuilder, DirectGenerator, Layout, ManualClock,
    StaticLease,
};
use ringflake_kit::{assert_matches, assert_says};

const LAYOUT: Layout = Layout::RANDFLAKE;
const START_MS: u64 = 1_760_000_000_000;

/// For a first lease on a busy machine. An unknown history takes longer than this, and is
/// not waited for.
const PATIENCE: Duration = Duration::from_secs(30);

fn builder(store: impl LeaseStore + 'static, history: History) -> CachedGeneratorBuilder {
    CachedGenerator::builder(LAYOUT)
        .plain()
        .lease_store(store)
        .namespace("orders")
        .init_if_new(history)
        .first_lease_within(PATIENCE)
        .capacity(64)
}

/// Why the store does not take the builder's word for its history.
#[track_caller]
fn reason(outcome: Result<CachedGenerator, BuildError>) -> String {
    match outcome.unwrap_err() {
        BuildError::Store(error @ StoreError::HistoryUnknown { .. }) => {
            let text = error.to_string();
            assert_says(&text, &["may have lost it"]);
            text
        }
        other => panic!("{other:?}"),
    }
}

/// A store of somebody's own, which has never heard of `init_if_new`.
#[derive(Clone, Debug)]
struct Silent(MemoryStore);

impl Silent {
    fn forward<T>(
        &mut self,
        _: &str,
        ask: impl FnOnce(&mut MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        ask(&mut self.0)
    }
}

impl LeaseStore for Silent {
    ringflake_kit::forward!(init, acquire, renew, release, list, raise_floor, check);
}

fn machine() -> (ManualClock, MemoryStore) {
    let clock = ManualClock::new(START_MS);
    let store = MemoryStore::new(Arc::new(clock.clone()));
    (clock, store)
}

fn orders() -> Namespace {
    Namespace::new("orders", &LAYOUT, Fingerprint::PLAIN).unwrap()
}

#[test]
fn an_unknown_history_says_when_leases_begin() {
    let (clock, store) = machine();
    let build = || {
        let builder = builder(store.clone(), History::Unknown).clock(clock.clone());
        builder.borrow_limit(Duration::from_secs(3600)).build()
    };
    let early = build().unwrap_err();
    let text = early.to_string();
    let BuildError::NoLeaseYet {
        error: StoreError::FloorAhead { retry_after, .. },
        waited,
        ..
    } = early
    else {
        panic!("{early:?}");
    };
    assert_says(&text, &["no lease was granted within"]);
    assert!(waited < PATIENCE, "it was waited for: {waited:?}");
    // The default failover time is a minute, and a tick is a second.
    let expected = Duration::from_secs(60)..Duration::from_secs(63);
    assert!(expected.contains(&retry_after), "{retry_after:?}");
    clock.advance(retry_after);
    let ids = build().unwrap();
    let parts = ids.inspect(ids.take().unwrap()).unwrap();
    // The default horizon is eleven minutes.
    assert!(parts.unix_ms > START_MS + 720_000, "{parts:?}");
}

#[test]
fn a_store_in_memory_or_of_others_takes_no_word_for_new() {
    let (_, mut store) = machine();
    for history in [History::New, History::Unused] {
        let text = reason(builder(store.clone(), history).build());
        assert_says(&text, &["in memory"]);
        let text = reason(builder(Silent(store.clone()), history).build());
        assert_says(&text, &["doesn't say"]);
    }
    let missing = store.list(&orders()).unwrap_err();
    assert_matches!(missing, StoreError::NotInitialised { .. });
}

#[test]
fn without_the_option_nothing_is_initialised() {
    let (clock, mut store) = machine();
    let direct = || DirectGenerator::builder(LAYOUT).plain();
    let plain = direct().lease_store(store.clone()).namespace("orders");
    let error = plain.clock(clock).build().unwrap_err();
    assert_matches!(error, BuildError::Store(StoreError::NotInitialised { .. }));
    assert!(store.list(&orders()).is_err());
    let unused = direct().lease(StaticLease::assume_unique(LAYOUT, 0..1));
    let error = unused.init_if_new(History::New).build().unwrap_err();
    assert_matches!(
        error,
        BuildError::NoStore {
            option: "init_if_new"
        }
    );
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::fs;
    use std::path::Path;

    use ringflake::lease::{Init, OpenOptions, SqliteStore};
    use ringflake::{Clock, Shutdown, SystemClock};
    use tempfile::TempDir;

    use super::*;

    fn directory() -> TempDir {
        TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
    }

    fn at(path: &Path) -> SqliteStore {
        let options = OpenOptions::new().timeout(Duration::from_secs(60));
        SqliteStore::new(path, &options).unwrap()
    }

    fn attempt(path: &Path, name: &str, history: History) -> Result<CachedGenerator, BuildError> {
        builder(at(path), history).namespace(name).build()
    }

    fn new(path: &Path) -> Result<CachedGenerator, BuildError> {
        attempt(path, "orders", History::New)
    }

    /// One that was there, and touches the file no more.
    fn come_and_go(path: &Path, name: &str) {
        let ids = attempt(path, name, History::New).unwrap();
        let released = ids.shutdown(Duration::from_secs(60));
        assert_eq!(released, Shutdown::Released);
    }

    #[test]
    fn one_of_several_initialises_and_all_go_on() {
        let home = directory();
        let path = home.path().join("leases.db");
        let nodes: Vec<_> = std::thread::scope(|scope| {
            let build = || new(&path).unwrap();
            let builders: Vec<_> = (0..8).map(|_| scope.spawn(build)).collect();
            let built: Vec<_> = builders.into_iter().map(|it| it.join().unwrap()).collect();
            built.iter().map(|ids| ids.leases()[0].nodes()).collect()
        });
        let starts: std::collections::BTreeSet<_> = nodes.iter().map(|it| it.start).collect();
        assert_eq!(starts.len(), 8);
        // A record that is there is taken as it is.
        let record = || at(&path).list(&orders()).unwrap().record;
        let before = record();
        attempt(&path, "orders", History::Unknown).unwrap();
        assert_eq!(record(), before);
    }

    #[test]
    fn a_file_that_is_missing_or_was_brought_is_not_new() {
        let home = directory();
        let path = home.path().join("leases.db");
        come_and_go(&path, "orders");
        let aside = home.path().join("aside");
        fs::rename(&path, &aside).unwrap();
        assert_says(&reason(new(&path)), &["was removed", "leases.db"]);
        assert!(!path.exists());

        // Nor is one that was made by hand.
        let by_hand = home.path().join("by-hand.db");
        let init = |path: &Path, history| {
            let init = Init::new(history, SystemClock.unix_ms());
            at(path).init(&orders(), &init).unwrap();
        };
        init(&by_hand, History::New);
        come_and_go(&by_hand, "orders");
        come_and_go(&by_hand, "invoices");
        let brought = home.path().join("brought.db");
        fs::rename(&by_hand, &brought).unwrap();
        assert_says(&reason(new(&by_hand)), &["was removed"]);
        new(&brought).unwrap();
        let text = reason(attempt(&brought, "others", History::New));
        assert_says(&text, &["note"]);
        // A loss that is declared covers every namespace.
        let lost = home.path().join("lost.db");
        init(&lost, History::Unknown);
        reason(attempt(&lost, "invoices", History::New));

        // Copied together with its note.
        fs::rename(&aside, &path).unwrap();
        let copy = directory();
        for name in ["leases.db", "leases.db.lock"] {
            fs::copy(home.path().join(name), copy.path().join(name)).unwrap();
        }
        let copied = copy.path().join("leases.db");
        let text = reason(attempt(&copied, "invoices", History::New));
        assert_says(&text, &["copied"]);
        attempt(&path, "invoices", History::New).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_was_emptied_is_not_new() {
        let home = directory();
        let path = home.path().join("leases.db");
        come_and_go(&path, "orders");
        fs::write(&path, "").unwrap();
        assert_says(&reason(new(&path)), &["earlier state"]);
        // Every other namespace was lost with it.
        reason(attempt(&path, "invoices", History::New));
        reason(attempt(&path, "invoices", History::Unused));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_at_best_effort_is_not_new() {
        let memory = TempDir::new_in("/dev/shm").unwrap();
        let path = memory.path().join("leases.db");
        let options = OpenOptions::new().accept_best_effort(true);
        let build = |history| {
            let store = SqliteStore::new(&path, &options).unwrap();
            builder(store, history).build()
        };
        for history in [History::New, History::Unused] {
            assert_says(&reason(build(history)), &["tmpfs"]);
        }
        assert!(!path.exists());
        let error = build(History::Unknown).unwrap_err();
        assert_matches!(
            error,
            BuildError::NoLeaseYet {
                error: StoreError::FloorAhead { .. },
                ..
            }
        );
    }
}

#[cfg(all(unix, feature = "redis"))]
mod in_redis {
    use ringflake::lease::{OpenOptions, RedisStore};

    use super::*;
    use ringflake_kit::server::{Reachable as _, Redis};

    #[test]
    fn a_redis_that_can_forget_takes_no_word_for_new() {
        for (arguments, forgets) in [(&["--appendonly", "no"][..], true), (&[], false)] {
            let redis = ringflake_kit::started!(Redis::start_with(arguments));
            let options = OpenOptions::new()
                .accept_best_effort(true)
                .timeout(Duration::from_secs(60));
            let build = || {
                let store = RedisStore::from_url(&redis.url(), &options).unwrap();
                builder(store, History::New).build()
            };
            if forgets {
                assert_says(&reason(build()), &["appendonly"]);
                // And left nothing behind that the next start would find.
                reason(build());
            } else {
                build().unwrap();
                build().unwrap();
            }
        }
    }
}

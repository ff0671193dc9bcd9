//! A store's namespace that the builder initialises.

use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::{Fingerprint, History, LeaseStore, MemoryStore, Namespace, StoreError};
use ringflake::{BuildError, CachedGenerator, DirectGenerator, Layout, ManualClock, StaticLease};

const LAYOUT: Layout = Layout::RANDFLAKE;
const START_MS: u64 = 1_760_000_000_000;

fn build(
    store: impl LeaseStore + 'static,
    history: History,
    clock: &ManualClock,
) -> Result<CachedGenerator, BuildError> {
    CachedGenerator::builder(LAYOUT)
        .plain()
        .lease_store(store)
        .namespace("orders")
        .init_if_new(history)
        .capacity(64)
        .borrow_limit(Duration::from_secs(3600))
        .clock(clock.clone())
        .build()
}

#[track_caller]
fn reason(outcome: Result<CachedGenerator, BuildError>) -> String {
    match outcome.unwrap_err() {
        BuildError::Store(error @ StoreError::HistoryUnknown { .. }) => {
            let text = error.to_string();
            for way_out in ["History::Unknown", "ringflake store init"] {
                assert!(text.contains(way_out), "{text}");
            }
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

fn machine() -> (ManualClock, MemoryStore, Namespace) {
    let clock = ManualClock::new(START_MS);
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let space = Namespace::new("orders", &LAYOUT, Fingerprint::PLAIN).unwrap();
    (clock, store, space)
}

#[test]
fn an_unknown_history_says_when_leases_begin() {
    let (clock, store, _) = machine();
    let early = build(store.clone(), History::Unknown, &clock).unwrap_err();
    let text = early.to_string();
    let BuildError::NoLeaseYet {
        error: StoreError::FloorAhead { retry_after, .. },
        ..
    } = early
    else {
        panic!("{early:?}");
    };
    for named in ["first_lease_within", "build_detached", "within 0."] {
        assert!(text.contains(named), "{text}");
    }
    // The default failover time is a minute, and a tick is a second.
    assert!(
        (60..=62).contains(&retry_after.as_secs()),
        "{retry_after:?}"
    );
    clock.advance(retry_after);
    let ids = build(store, History::Unknown, &clock).unwrap();
    let parts = ids.inspect(ids.take().unwrap()).unwrap();
    // The default horizon is eleven minutes.
    assert!(parts.unix_ms > START_MS + 720_000, "{parts:?}");
}

#[test]
fn a_store_in_memory_or_of_others_takes_no_word_for_new() {
    let (clock, mut store, space) = machine();
    let text = reason(build(store.clone(), History::New, &clock));
    assert!(text.contains("in memory"), "{text}");
    let text = reason(build(Silent(store.clone()), History::New, &clock));
    assert!(text.contains("doesn't say"), "{text}");
    let missing = store.list(&space).unwrap_err();
    assert!(
        matches!(missing, StoreError::NotInitialised { .. }),
        "{missing}"
    );
}

#[test]
fn without_the_option_nothing_is_initialised() {
    let (clock, mut store, space) = machine();
    let plain = DirectGenerator::builder(LAYOUT)
        .plain()
        .lease_store(store.clone())
        .namespace("orders")
        .clock(clock)
        .build();
    let BuildError::Store(StoreError::NotInitialised { .. }) = plain.unwrap_err() else {
        panic!("it was initialised");
    };
    assert!(store.list(&space).is_err());
    let lease = StaticLease::assume_unique(LAYOUT, 0..1);
    let unused = DirectGenerator::builder(LAYOUT)
        .plain()
        .lease(lease)
        .init_if_new(History::New)
        .build();
    let BuildError::NoStore { option } = unused.unwrap_err() else {
        panic!("it has no meaning there");
    };
    assert_eq!(option, "init_if_new");
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::fs;
    use std::path::Path;

    use ringflake::lease::{OpenOptions, SqliteStore};
    use ringflake::{Clock, Shutdown, SystemClock};
    use tempfile::TempDir;

    use super::*;

    fn directory() -> TempDir {
        TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
    }

    fn at(path: &Path) -> SqliteStore {
        SqliteStore::new(path, &OpenOptions::new()).unwrap()
    }

    fn attempt(path: &Path, name: &str, history: History) -> Result<CachedGenerator, BuildError> {
        CachedGenerator::builder(LAYOUT)
            .plain()
            .lease_store(at(path))
            .namespace(name)
            .init_if_new(history)
            .capacity(64)
            .build()
    }

    fn new(path: &Path) -> Result<CachedGenerator, BuildError> {
        attempt(path, "orders", History::New)
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
        let space = Namespace::new("orders", &LAYOUT, Fingerprint::PLAIN).unwrap();
        let record = at(&path).list(&space).unwrap().record;
        attempt(&path, "orders", History::Unknown).unwrap();
        assert_eq!(at(&path).list(&space).unwrap().record, record);
    }

    #[test]
    fn a_file_that_never_was_is_made_and_noted() {
        let home = directory();
        let path = home.path().join("leases.db");
        let first = new(&path).unwrap();
        assert!(home.path().join("leases.db.lock").exists());
        let second = new(&path).unwrap();
        attempt(&path, "invoices", History::New).unwrap();
        assert_ne!(first.take().unwrap(), second.take().unwrap());
    }

    #[test]
    fn a_file_that_is_missing_or_was_brought_is_not_new() {
        let home = directory();
        let path = home.path().join("leases.db");
        new(&path).unwrap();
        let aside = home.path().join("aside");
        fs::rename(&path, &aside).unwrap();
        let text = reason(new(&path));
        assert!(
            text.contains("was removed") && text.contains("leases.db"),
            "{text}"
        );
        assert!(!path.exists());

        // Nor is one that was made by hand.
        let by_hand = home.path().join("by-hand.db");
        let space = Namespace::new("orders", &LAYOUT, Fingerprint::PLAIN).unwrap();
        let init = |path: &Path, history| {
            let init = ringflake::lease::Init::new(history, SystemClock.unix_ms());
            at(path).init(&space, &init).unwrap();
        };
        init(&by_hand, History::New);
        new(&by_hand).unwrap();
        attempt(&by_hand, "invoices", History::New).unwrap();
        let brought = home.path().join("brought.db");
        fs::rename(&by_hand, &brought).unwrap();
        let text = reason(new(&by_hand));
        assert!(text.contains("was removed"), "{text}");
        new(&brought).unwrap();
        let text = reason(attempt(&brought, "others", History::New));
        assert!(text.contains("note"), "{text}");
        // Whoever says that something was lost says it of all.
        let lost = home.path().join("lost.db");
        init(&lost, History::Unknown);
        reason(attempt(&lost, "invoices", History::New));

        // Copied together with its note.
        fs::rename(&aside, &path).unwrap();
        let copy = directory();
        for name in ["leases.db", "leases.db.lock"] {
            fs::copy(home.path().join(name), copy.path().join(name)).unwrap();
        }
        let text = reason(attempt(
            &copy.path().join("leases.db"),
            "invoices",
            History::New,
        ));
        assert!(text.contains("copied"), "{text}");
        attempt(&path, "invoices", History::New).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_was_emptied_is_not_new() {
        let home = directory();
        let path = home.path().join("leases.db");
        // Its lease is released before, and not into the file that was emptied.
        let released = new(&path).unwrap().shutdown(Duration::from_secs(60));
        assert_eq!(released, Shutdown::Released);
        fs::write(&path, "").unwrap();
        let text = reason(new(&path));
        assert!(text.contains("earlier state"), "{text}");
        // Every other namespace was lost with it.
        reason(attempt(&path, "invoices", History::New));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_at_best_effort_is_not_new() {
        let memory = TempDir::new_in("/dev/shm").unwrap();
        let path = memory.path().join("leases.db");
        let options = OpenOptions::new().accept_best_effort(true);
        let builder = |history| {
            CachedGenerator::builder(LAYOUT)
                .plain()
                .lease_store(SqliteStore::new(&path, &options).unwrap())
                .namespace("orders")
                .init_if_new(history)
                .build()
        };
        let text = reason(builder(History::New));
        assert!(text.contains("tmpfs"), "{text}");
        assert!(!path.exists());
        let later = builder(History::Unknown).unwrap_err();
        assert!(matches!(
            later,
            BuildError::NoLeaseYet {
                error: StoreError::FloorAhead { .. },
                ..
            }
        ));
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
            let options = OpenOptions::new().accept_best_effort(true);
            let build = || {
                CachedGenerator::builder(LAYOUT)
                    .plain()
                    .lease_store(RedisStore::from_url(&redis.url(), &options).unwrap())
                    .namespace("orders")
                    .init_if_new(History::New)
                    .build()
            };
            if forgets {
                let text = reason(build());
                assert!(text.contains("appendonly"), "{text}");
                // And left nothing behind that the next start would find.
                reason(build());
            } else {
                build().unwrap();
                build().unwrap();
            }
        }
    }
}

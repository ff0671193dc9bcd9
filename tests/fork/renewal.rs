//! A fork on the thread that renews leases, made by code of the user's that runs there: a
//! clock, a waker, a hook. The child has that thread alone, which must end without a word to
//! the parent's store.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::{process, thread};

use ringflake::lease::{
    Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, StoreError,
};
use ringflake::{CachedGeneratorBuilder, Clock, ManualClock};

use ringflake_kit::child::wait_for;
use ringflake_kit::eventually;
use ringflake_kit::waking::Counting;

use super::*;

/// The status of a child that uses its parent's store.
const USED: i32 = 9;
/// And of one that closes it.
const CLOSED: i32 = 8;

/// Forks the thread that renews, at one of its turns.
#[derive(Debug)]
struct Forks {
    /// Turns that are left before that.
    left: AtomicI64,
    /// What the child exited with, in the parent.
    status: Mutex<Option<Result<u8, String>>>,
}

impl Forks {
    fn at(turn: i64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicI64::new(turn),
            status: Mutex::new(None),
        })
    }

    fn turn(&self) {
        if thread::current().name() != Some("ringflake-lease")
            || self.left.fetch_sub(1, Relaxed) != 0
        {
            return;
        }
        // SAFETY: the child goes on with what the worker does, and ends with its thread.
        match unsafe { libc::fork() } {
            0 => {}
            pid => *self.status.lock().unwrap() = Some(wait_for(pid)),
        }
    }

    /// The child has ended, and in peace.
    #[track_caller]
    fn assert_over(&self) {
        eventually("a fork", || self.status.lock().unwrap().is_some());
        assert_eq!(*self.status.lock().unwrap(), Some(Ok(0)));
    }
}

/// A store of one process.
#[derive(Debug)]
struct Owned {
    store: MemoryStore,
    owner: u32,
}

impl Owned {
    fn assert_owned(&self, status: i32) {
        if process::id() != self.owner {
            // SAFETY: ends a child, which has come too far.
            unsafe { libc::_exit(status) }
        }
    }

    fn forward<T>(
        &mut self,
        _: &str,
        ask: impl FnOnce(&mut MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.assert_owned(USED);
        ask(&mut self.store)
    }
}

impl LeaseStore for Owned {
    ringflake_kit::forward!(init, acquire, renew, release, list, raise_floor, check);

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<ringflake::lease::StoreRecord, StoreError> {
        self.forward("init", |store| store.init_if_new(namespace, init))
    }

    fn rest(&mut self, _: Duration) {
        self.assert_owned(USED);
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.assert_owned(CLOSED);
    }
}

#[derive(Debug)]
struct ForkingClock(ManualClock, Arc<Forks>);

impl Clock for ForkingClock {
    fn unix_ms(&self) -> u64 {
        self.1.turn();
        self.0.unix_ms()
    }
}

/// A store, and a generator to be, whose namespace is not on record.
fn begin(forks: &Arc<Forks>) -> (MemoryStore, Namespace, CachedGeneratorBuilder) {
    let layout = Layout::RANDFLAKE;
    let clock = ManualClock::new(layout.tick_start_unix_ms(1_000_000));
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let orders = Namespace::new("orders", &layout, Fingerprint::PLAIN).unwrap();
    let orders = orders.with_block_bits(17).unwrap();
    let builder = CachedGenerator::builder(layout)
        .plain()
        .clock(ForkingClock(clock, Arc::clone(forks)))
        .lease_store(Owned {
            store: store.clone(),
            owner: process::id(),
        })
        .namespace("orders")
        .block_bits(17)
        .capacity(64);
    (store, orders, builder)
}

fn now() -> u64 {
    Layout::RANDFLAKE.tick_start_unix_ms(1_000_000)
}

#[test]
fn a_clock_that_forks_the_renewing_thread_leaves_the_store() {
    for turn in 0..8 {
        // On record, and to be made.
        for is_there in [true, false] {
            let forks = Forks::at(turn);
            let (mut store, orders, builder) = begin(&forks);
            if is_there {
                store
                    .init(&orders, &Init::new(History::New, now()))
                    .unwrap();
            }
            let builder = builder.init_if_new(History::Unknown);
            let ids = builder.build_detached().unwrap();
            forks.assert_over();
            if is_there {
                assert!(ids.wait_ready(HOUR));
                ids.take().unwrap();
            }
        }
    }
}

#[test]
fn a_waker_that_forks_the_renewing_thread_leaves_the_store() {
    let never = Forks::at(-1);
    let (_, _, builder) = begin(&never);
    let ids = builder.build_detached().unwrap();
    let forks = Forks::at(0);
    let waker = Counting::and({
        let forks = Arc::clone(&forks);
        move || forks.turn()
    });
    let mut ready = ids.ready();
    assert!(waker.poll(&mut ready).is_pending());
    forks.assert_over();
    assert!(waker.poll(&mut ready).is_pending());
}

#[test]
fn a_hook_that_forks_the_renewing_thread_leaves_the_store() {
    let never = Forks::at(-1);
    let (mut store, orders, builder) = begin(&never);
    store
        .init(&orders, &Init::new(History::New, now()))
        .unwrap();
    let all = Acquire::new(1, 600, now());
    let others = store.acquire(&orders, &all).unwrap();
    let forks = Forks::at(0);
    let ids = builder
        .on_lease_wait_hook({
            let (forks, store) = (Arc::clone(&forks), Mutex::new(store));
            move |_| {
                forks.turn();
                let mut store = store.lock().unwrap();
                for grant in &others {
                    store.release(&orders, grant.block, grant.epoch).unwrap();
                }
            }
        })
        .first_lease_within(HOUR)
        .build();
    forks.assert_over();
    ids.unwrap();
}

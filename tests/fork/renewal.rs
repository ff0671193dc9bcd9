//! A fork on the thread that renews leases, made by code of the user's that runs there: a
//! clock, a waker, a hook. The child has that thread alone, which must end without a word to
//! the parent's store.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::{fmt, mem, process, thread};

use ringflake::lease::{
    Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, OpenOptions,
    StoreError, StoreKey,
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
    owner: Owner,
    key: Option<StoreKey>,
    /// Done when it is to rest, and when it is closed.
    at_rest: Todo,
    at_close: Todo,
}

type Work = Box<dyn FnOnce() + Send>;

/// What a thread does once, when another one has set it.
#[derive(Clone, Default)]
struct Todo(Arc<Mutex<Option<Work>>>);

impl Todo {
    fn set(&self, work: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(work));
    }

    /// For the time after the next, by when all that was done before has been seen.
    fn set_for_the_second(&self, work: impl FnOnce() + Send + 'static) {
        let next = self.clone();
        self.set(move || next.set(work));
    }

    fn run(&self) {
        let work = self.0.lock().unwrap().take();
        if let Some(work) = work {
            work();
        }
    }
}

impl fmt::Debug for Todo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Todo").finish_non_exhaustive()
    }
}

/// A process.
#[derive(Clone, Copy, Debug)]
struct Owner(u32);

impl Owner {
    fn this() -> Self {
        Self(process::id())
    }

    fn assert_owned(self, status: i32) {
        if process::id() != self.0 {
            // SAFETY: ends a child, which has come too far.
            unsafe { libc::_exit(status) }
        }
    }
}

impl Owned {
    fn new(store: &MemoryStore) -> Self {
        Self {
            store: store.clone(),
            owner: Owner::this(),
            key: None,
            at_rest: Todo::default(),
            at_close: Todo::default(),
        }
    }

    fn forward<T>(
        &mut self,
        _: &str,
        ask: impl FnOnce(&mut MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.owner.assert_owned(USED);
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

    fn key(&self) -> Option<StoreKey> {
        self.key.clone()
    }

    fn rest(&mut self, _: Duration) {
        self.owner.assert_owned(USED);
        self.at_rest.run();
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.owner.assert_owned(CLOSED);
        self.at_close.run();
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
        .lease_store(Owned::new(&store))
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

/// Generators whose stores have one key, and so one worker. None has a lease.
struct Shared {
    key: StoreKey,
    store: MemoryStore,
}

/// Reads a clock, after something else.
#[derive(Debug)]
struct BusyClock(ManualClock, Todo, Owner);

impl Clock for BusyClock {
    fn unix_ms(&self) -> u64 {
        self.2.assert_owned(USED);
        if thread::current().name() == Some("ringflake-lease") {
            self.1.run();
        }
        self.0.unix_ms()
    }
}

impl Shared {
    fn named(name: &str) -> Self {
        let clock = ManualClock::new(now());
        Self {
            key: StoreKey::new(name, &OpenOptions::new()),
            store: MemoryStore::new(Arc::new(clock)),
        }
    }

    fn store(&self) -> Owned {
        let mut store = Owned::new(&self.store);
        store.key = Some(self.key.clone());
        store
    }

    fn generator(&self, store: Owned, at_clock: &Todo) -> DirectGenerator {
        let clock = BusyClock(ManualClock::new(now()), at_clock.clone(), Owner::this());
        DirectGenerator::builder(Layout::RANDFLAKE)
            .plain()
            .clock(clock)
            .lease_store(store)
            .namespace("orders")
            .build_detached()
            .unwrap()
    }
}

/// Leaves such a waker with the generator, as a task does that is never dropped.
fn wait_forever(ids: &DirectGenerator, does: impl Fn() + Send + Sync + 'static) {
    let mut ready = ids.ready();
    let waker = Counting::and(does);
    assert!(waker.poll(&mut ready).is_pending());
    mem::forget((ready, waker));
}

#[test]
fn a_waker_that_forks_at_the_end_leaves_other_clients() {
    // Whether the worker goes on for another client.
    for goes_on in [false, true] {
        let shared = Shared::named(if goes_on { "goes on" } else { "ends" });
        let (forks, store, idle) = (Forks::at(0), shared.store(), Todo::default());
        let at_rest = store.at_rest.clone();
        let one = shared.generator(store, &idle);
        let other = shared.generator(shared.store(), &idle);
        let last = goes_on.then(|| shared.generator(shared.store(), &idle));
        at_rest.set_for_the_second({
            let (forks, owner) = (Arc::clone(&forks), Owner::this());
            move || {
                wait_forever(&one, move || forks.turn());
                wait_forever(&one, move || owner.assert_owned(USED));
                wait_forever(&other, move || owner.assert_owned(USED));
                // Both are gone after the next round.
                drop((one, other));
            }
        });
        forks.assert_over();
        drop(last);
    }
}

#[test]
fn a_store_that_forks_as_it_is_closed_leaves_the_clients() {
    let shared = Shared::named("closes");
    let (forks, store, idle) = (Forks::at(0), shared.store(), Todo::default());
    let (at_rest, at_close) = (store.at_rest.clone(), store.at_close.clone());
    let ids = shared.generator(store, &idle);
    at_close.set({
        let forks = Arc::clone(&forks);
        move || forks.turn()
    });
    at_rest.set(move || {
        let owner = Owner::this();
        wait_forever(&ids, move || owner.assert_owned(USED));
        drop(ids);
    });
    forks.assert_over();
}

#[test]
fn a_child_without_clients_begins_no_round_for_new_ones() {
    let shared = Shared::named("inbox");
    let (forks, store, at_clock) = (Forks::at(0), shared.store(), Todo::default());
    let at_rest = store.at_rest.clone();
    let ids = shared.generator(store, &at_clock);
    let (send, receive) = mpsc::channel();
    at_rest.set({
        let forks = Arc::clone(&forks);
        move || {
            wait_forever(&ids, move || forks.turn());
            drop(ids);
            // In the round in which the only client goes.
            at_clock.set(move || {
                let build = move || shared.generator(shared.store(), &Todo::default());
                send.send(thread::spawn(build).join().unwrap()).unwrap();
            });
        }
    });
    forks.assert_over();
    drop(receive.recv().unwrap());
}

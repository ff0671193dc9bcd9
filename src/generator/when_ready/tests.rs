//! Waits for a generator to be ready, polled by hand.

use std::sync::Arc;
#[cfg(unix)]
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::fill::PaddingFill;
use crate::generator::builder::CachedGeneratorBuilder;
use crate::generator::empty::OnEmpty;
use crate::layout::Layout;
use crate::lease::{Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, StaticLease};
use ringflake_kit::eventually;
use ringflake_kit::waking::Counting;

const NOW: u64 = 1_800_000_000_000;

/// A store that knows no namespace, and what makes one.
fn store(name: &str) -> (MemoryStore, impl FnMut() + use<>) {
    let clock = ManualClock::new(NOW);
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let mut other = store.clone();
    let name = Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
    let init = move || {
        let init = Init::new(History::New, clock.unix_ms());
        other.init(&name, &init).unwrap();
    };
    (store, init)
}

fn cached(store: MemoryStore, namespace: &str) -> CachedGeneratorBuilder {
    CachedGenerator::builder(Layout::RANDFLAKE)
        .plain()
        .clock(ManualClock::new(NOW))
        .lease_store(store)
        .namespace(namespace)
        .capacity(1024)
}

fn given(node: u64) -> CachedGeneratorBuilder {
    let layout = Layout::builder()
        .bits(30, 13, 3)
        .tick(Duration::from_secs(1))
        .build()
        .unwrap();
    CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, node..node + 1))
        .clock(ManualClock::new(layout.tick_start_unix_ms(1000)))
        .capacity(8)
}

/// Polls until it is ready, each time that it was woken.
fn poll_when_woken(counting: &Arc<Counting>, ready: &mut WhenReady<'_>) -> bool {
    let mut polls = 0;
    let mut answer = None;
    eventually("it is ready", || {
        if counting.woken() > polls {
            polls = counting.woken();
            match counting.poll(ready) {
                Poll::Ready(is_ready) => answer = Some(is_ready),
                Poll::Pending => {}
            }
        }
        answer.is_some()
    });
    answer.unwrap()
}

#[test]
fn a_task_waits_for_the_lease_and_for_the_ring() {
    let (store, mut init) = store("ready-cached");
    let ids = cached(store, "ready-cached")
        .padding_fill(PaddingFill::Off)
        .on_empty(OnEmpty::Error)
        .build_detached()
        .unwrap();
    let counting = Counting::new();
    let mut ready = ids.ready();
    assert!(counting.poll(&mut ready).is_pending());
    init();
    assert!(poll_when_woken(&counting, &mut ready));
    assert!(ids.is_ready());
    ids.take().unwrap();
    assert_eq!(counting.held(), 0);
    assert!(ids.filler.nobody_waits());
}

#[test]
fn a_task_waits_for_the_lease_of_a_direct_generator() {
    let (store, mut init) = store("ready-direct");
    let ids = DirectGenerator::builder(Layout::RANDFLAKE)
        .plain()
        .clock(ManualClock::new(NOW))
        .lease_store(store)
        .namespace("ready-direct")
        .build_detached()
        .unwrap();
    let [dropped, counting] = [Counting::new(), Counting::new()];
    let mut gives_up = ids.ready();
    let mut ready = ids.ready();
    assert!(dropped.poll(&mut gives_up).is_pending());
    assert!(counting.poll(&mut ready).is_pending());
    drop(gives_up);
    assert_eq!(dropped.held(), 0, "a waker is left");
    init();
    assert!(poll_when_woken(&counting, &mut ready));
    ids.take().unwrap();
    assert_eq!(counting.held(), 0);
}

#[test]
fn a_waker_may_ask_how_the_leases_stand() {
    let (store, mut init) = store("ready-waker");
    let ids = cached(store, "ready-waker").build_detached().unwrap();
    let clone = ids.clone();
    let counting = Counting::and(move || assert!(clone.lease_status().is_some()));
    let mut ready = ids.ready();
    assert!(counting.poll(&mut ready).is_pending());
    init();
    assert!(poll_when_woken(&counting, &mut ready));
}

#[test]
fn a_generator_on_a_given_lease_is_ready_once_there_is_one() {
    let counting = Counting::new();
    let ids = given(0).build().unwrap();
    assert_eq!(counting.poll(&mut ids.ready()), Poll::Ready(true));
    // Nothing but takes would ask for a fill.
    let ids = given(1).padding_fill(PaddingFill::Off).build().unwrap();
    let mut ready = ids.ready();
    if counting.poll(&mut ready).is_pending() {
        assert!(poll_when_woken(&counting, &mut ready));
    }
    assert!(ids.stats().level > 0);
    // Nothing fills it again, though a producer did once.
    let ids = given(4).threshold_fill(None);
    let ids = ids.padding_fill(PaddingFill::InBackground).build().unwrap();
    eventually("it is filled", || ids.stats().level == ids.capacity());
    ids.take_vec(ids.capacity()).unwrap();
    assert_eq!(counting.poll(&mut ids.ready()), Poll::Ready(true));
    // Nothing fills it at all.
    let ids = given(2).threshold_fill(None).padding_fill(PaddingFill::Off);
    let ids = ids.build().unwrap();
    assert_eq!(counting.poll(&mut ids.ready()), Poll::Ready(true));
}

#[test]
fn a_generator_at_its_borrow_limit_is_waited_for() {
    let ids = given(6)
        .borrow_limit(Duration::from_secs(1))
        .build()
        .unwrap();
    // This tick's 8 and those of one that is borrowed.
    eventually("all are taken", || {
        while ids.take().is_ok() {}
        ids.stats().issued == 16
    });
    assert!(Counting::new().poll(&mut ids.ready()).is_pending());
}

#[test]
fn no_generator_is_ready_where_nothing_comes_any_more() {
    let counting = Counting::new();
    let ids = given(3).build().unwrap();
    ids.invalidate();
    assert_eq!(counting.poll(&mut ids.ready()), Poll::Ready(false));
}

/// The stocks of cores still have IDs, which no take gives any more.
#[test]
fn s4_no_generator_is_ready_for_ids_that_were_invalidated() {
    let layout = Layout::RANDFLAKE;
    let ids = CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, 77_000..77_001))
        .capacity(1 << 16)
        .build()
        .unwrap();
    if ids.filler.stocks().is_none() {
        return;
    }
    eventually("a stock is filled", || {
        ids.take().unwrap();
        ids.stats().in_stocks > 0
    });
    ids.invalidate();
    assert!(ids.stats().in_stocks > 0);
    assert_eq!(Counting::new().poll(&mut ids.ready()), Poll::Ready(false));
}

#[test]
#[cfg(unix)]
fn no_generator_is_ready_in_a_forked_child() {
    let (store, mut init) = store("ready-fork");
    let ids = cached(store, "ready-fork").build_detached().unwrap();
    let counting = Counting::new();
    let mut ready = ids.ready();
    let mut other = ids.ready();
    assert!(counting.poll(&mut ready).is_pending());
    assert!(counting.poll(&mut other).is_pending());
    for _ in 0..20 {
        let status = ringflake_kit::child::in_a_fork(|| {
            let answer = counting.poll(&mut ready);
            let fresh = counting.poll(&mut ids.ready());
            u8::from([answer, fresh] != [Poll::Ready(false); 2])
        });
        assert_eq!(status, Ok(0));
    }
    init();
    assert!(poll_when_woken(&counting, &mut other));
}

/// A store's clock that signals each read, then blocks until the other end is dropped.
#[cfg(unix)]
#[derive(Debug)]
struct Holding(mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>);

#[cfg(unix)]
impl Clock for Holding {
    fn unix_ms(&self) -> u64 {
        // Nobody may be there any more.
        let _ = self.0.send(());
        let _ = self.1.lock().unwrap().recv();
        NOW
    }
}

#[test]
#[cfg(unix)]
fn a_wait_that_a_child_drops_leaves_the_parent_its_waker() {
    let (reads, read) = mpsc::channel();
    let (let_go, holds) = mpsc::channel();
    let clock = Holding(reads, Mutex::new(holds));
    let ids = cached(MemoryStore::new(Arc::new(clock)), "ready-dropped")
        .build_detached()
        .unwrap();
    // From here on the renewal thread wakes nobody.
    read.recv().unwrap();
    let counting = Counting::new();
    let mut ready = Some(ids.ready());
    assert!(counting.poll(ready.as_mut().unwrap()).is_pending());
    let status = ringflake_kit::child::in_a_fork(|| {
        drop(ready.take());
        counting.held() as u8
    });
    drop(ready);
    let held = counting.held();
    drop(let_go);
    assert_eq!((status, held), (Ok(1), 0));
}

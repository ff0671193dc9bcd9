//! Builds that are polled by hand. A clock holds the thread that builds.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Weak, mpsc};
use std::time::Duration;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::layout::Layout;
use crate::lease::StaticLease;
use ringflake_kit::eventually;
use ringflake_kit::waking::Counting;

fn layout() -> Layout {
    Layout::builder()
        .bits(30, 12, 3)
        .tick(Duration::from_secs(1))
        .build()
        .unwrap()
}

/// Holds the first who looks until it is let go, or panics then.
#[derive(Debug)]
struct Holding {
    clock: ManualClock,
    first: AtomicBool,
    let_go: Mutex<mpsc::Receiver<bool>>,
}

impl Clock for Holding {
    fn unix_ms(&self) -> u64 {
        if self.first.swap(false, SeqCst) {
            let breaks = self.let_go.lock().unwrap().recv().unwrap();
            assert!(!breaks, "the clock breaks");
        }
        self.clock.unix_ms()
    }
}

/// A build on this node, what lets it go, and whether its clock is still there.
fn held(node: u64) -> (DirectGeneratorBuilder, mpsc::Sender<bool>, Weak<Holding>) {
    let (sender, receiver) = mpsc::channel();
    let clock = Arc::new(Holding {
        clock: ManualClock::new(layout().tick_start_unix_ms(1000)),
        first: AtomicBool::new(true),
        let_go: Mutex::new(receiver),
    });
    let weak = Arc::downgrade(&clock);
    let builder = DirectGenerator::builder(layout())
        .plain()
        .lease(StaticLease::assume_unique(layout(), node..node + 1))
        .clock(clock);
    (builder, sender, weak)
}

fn eventually_woken(counting: &Arc<Counting>) {
    eventually("the task is woken", || counting.woken() > 0);
}

#[test]
fn a_task_is_woken_when_the_generator_is_built() {
    let (builder, let_go, _) = held(2000);
    let [old, counting] = [Counting::new(), Counting::new()];
    let mut build = builder.build_async();
    assert!(old.poll(&mut build).is_pending());
    assert!(counting.poll(&mut build).is_pending());
    assert_eq!((old.held(), counting.woken()), (0, 0));
    let_go.send(false).unwrap();
    eventually_woken(&counting);
    let Poll::Ready(Ok(ids)) = counting.poll(&mut build) else {
        panic!("it was woken for nothing");
    };
    ids.take().unwrap();
    assert_eq!((old.woken(), counting.woken()), (0, 1));
    assert!(counting.poll(&mut build).is_pending());
}

#[test]
fn nothing_is_built_before_the_first_poll() {
    let (builder, _let_go, clock) = held(2001);
    let build = builder.build_async();
    assert!(clock.upgrade().unwrap().first.load(SeqCst));
    drop(build);
    assert_eq!(clock.strong_count(), 0);
}

#[test]
fn a_build_that_nobody_waits_for_is_dropped_by_its_thread() {
    let (builder, let_go, clock) = held(2002);
    let mut build = builder.build_async();
    assert!(Counting::new().poll(&mut build).is_pending());
    drop(build);
    assert!(clock.strong_count() > 0);
    let_go.send(false).unwrap();
    eventually("it is dropped", || clock.strong_count() == 0);
}

#[test]
fn what_was_built_and_not_fetched_is_dropped() {
    let (builder, let_go, clock) = held(2003);
    let counting = Counting::new();
    let mut build = builder.build_async();
    assert!(counting.poll(&mut build).is_pending());
    let_go.send(false).unwrap();
    eventually_woken(&counting);
    assert!(clock.strong_count() > 0);
    drop(build);
    eventually("it is dropped", || clock.strong_count() == 0);
}

/// Says which thread drops it.
#[derive(Debug)]
struct Leaving {
    clock: ManualClock,
    left: mpsc::Sender<thread::ThreadId>,
}

impl Clock for Leaving {
    fn unix_ms(&self) -> u64 {
        self.clock.unix_ms()
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let _ = self.left.send(thread::current().id());
    }
}

#[test]
fn a_task_does_not_drop_what_was_built_itself() {
    let (left, gone) = mpsc::channel();
    let clock = ManualClock::new(layout().tick_start_unix_ms(1000));
    let mut build = DirectGenerator::builder(layout())
        .plain()
        .lease(StaticLease::assume_unique(layout(), 2007..2008))
        .clock(Arc::new(Leaving { clock, left }))
        .build_async();
    let counting = Counting::new();
    assert!(counting.poll(&mut build).is_pending());
    eventually_woken(&counting);
    let State::Builds { oneshot, .. } = &build.state else {
        panic!("it builds");
    };
    eventually("the thread is done", || Arc::strong_count(oneshot) == 1);
    drop(build);
    assert_ne!(gone.recv().unwrap(), thread::current().id());
}

#[test]
fn a_panic_of_the_build_is_that_of_the_poll() {
    let (builder, let_go, _) = held(2004);
    let counting = Counting::new();
    let mut build = builder.build_async();
    assert!(counting.poll(&mut build).is_pending());
    let_go.send(true).unwrap();
    eventually_woken(&counting);
    let polled = catch_unwind(AssertUnwindSafe(|| counting.poll(&mut build)));
    let panic = polled.err().unwrap();
    assert_eq!(panic.downcast_ref(), Some(&"the clock breaks"));
}

#[test]
fn an_error_of_the_build_comes_back() {
    let counting = Counting::new();
    let mut build = CachedGenerator::builder(layout()).plain().build_async();
    assert!(counting.poll(&mut build).is_pending());
    eventually_woken(&counting);
    let polled = counting.poll(&mut build);
    assert!(matches!(polled, Poll::Ready(Err(BuildError::NoLease))));
}

#[test]
#[cfg(unix)]
fn a_child_of_a_fork_is_refused_and_does_not_wait() {
    let (builder, let_go, _) = held(2005);
    let counting = Counting::new();
    let mut builds = [builder, held(2006).0].map(|it| it.build_async());
    assert!(builds.iter_mut().all(|it| counting.poll(it).is_pending()));
    // A thread of the parent holds the lock for ever.
    let [first, second] = builds.each_ref().map(|build| match &build.state {
        State::Builds { oneshot, .. } => Arc::clone(oneshot),
        _ => panic!("it builds"),
    });
    let locked = (first.lock(), second.lock());
    let [mut polled, dropped] = builds;
    let mut dropped = Some(dropped);
    let status = ringflake_kit::child::in_a_fork(|| {
        let refused = counting.poll(&mut polled);
        dropped = None;
        u8::from(dropped.is_some() || !matches!(refused, Poll::Ready(Err(BuildError::System(_)))))
    });
    drop(locked);
    assert_eq!(status, Ok(0));
    let_go.send(false).unwrap();
}

//! What a take does that finds the ring dry, where only the time that it takes shows it
//! from outside.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::fill::{AssistFill, FillCause, PaddingFill};
use crate::generator::builder::CachedGeneratorBuilder;
use crate::generator::stats::TakeFailures;
use crate::layout::Layout;
use crate::lease::StaticLease;

const HOUR: Duration = Duration::from_secs(3600);

/// Eight IDs to a tick and node.
fn layout() -> Layout {
    Layout::builder()
        .bits(30, 10, 3)
        .tick(Duration::from_secs(1))
        .build()
        .unwrap()
}

/// Eight slots, on a clock that stands still this many ticks before the last one of the
/// layout.
fn builder(node: u64, ticks_left: u64) -> CachedGeneratorBuilder {
    let layout = layout();
    let tick = layout.ticks() - 1 - ticks_left;
    CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, node..node + 1))
        .clock(ManualClock::new(layout.tick_start_unix_ms(tick)))
        .borrow_limit(Duration::ZERO)
        .capacity(8)
}

/// A clock whose next reader in the test's thread does something first.
struct Meanwhile {
    clock: ManualClock,
    thread: thread::ThreadId,
    does: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Meanwhile {
    fn new(clock: ManualClock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            thread: thread::current().id(),
            does: Mutex::default(),
        })
    }

    fn next_reader_does(&self, work: impl FnOnce() + Send + 'static) {
        *self.does.lock().unwrap() = Some(Box::new(work));
    }
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clock.fmt(f)
    }
}

impl Clock for Meanwhile {
    fn unix_ms(&self) -> u64 {
        if thread::current().id() == self.thread {
            let does = self.does.lock().unwrap().take();
            does.into_iter().for_each(|does| does());
        }
        self.clock.unix_ms()
    }
}

#[test]
fn a_wait_goes_on_while_a_fill_holds_room() {
    let layout = layout();
    let clock = ManualClock::new(layout.tick_start_unix_ms(layout.ticks() - 1));
    let clock = Meanwhile::new(clock);
    let ids = builder(706, 0)
        .threshold_fill(None)
        .padding_fill(PaddingFill::Off)
        .clock(Arc::clone(&clock))
        .build()
        .unwrap();
    let fill = || ids.filler.fill(FillCause::Padding);
    assert_eq!(fill(), Ok(8));
    ids.take_vec(8).unwrap();
    let attempt = |ids: &CachedGenerator| ids.attempt(&mut [Id::default()]);
    let is_refused = |outcome| matches!(outcome, Some(Err(TakeError::Refused(_))));
    assert!(is_refused(attempt(&ids)));
    // Its claim may still be served, for all that a take can see.
    let (attempted, outcome) = mpsc::channel();
    let taker = ids.clone();
    let during = move || attempted.send(attempt(&taker)).unwrap();
    clock.next_reader_does(during);
    assert!(fill().is_err());
    assert_eq!(outcome.try_recv(), Ok(None));
    assert!(is_refused(attempt(&ids)));
}

#[test]
fn a_take_that_fails_is_counted_by_its_reason() {
    let no_fills = |node, on_empty| {
        let builder = builder(node, 5).padding_fill(PaddingFill::Off);
        builder.threshold_fill(None).on_empty(on_empty)
    };
    let failures = |ids: &CachedGenerator| ids.stats().failed;
    let none = TakeFailures::default();

    let filled = no_fills(716, OnEmpty::Error).padding_fill(PaddingFill::BeforeFirstTake);
    let ids = filled.borrow_limit(HOUR).build().unwrap();
    ids.take_vec(8).unwrap();
    assert_eq!(ids.take(), Err(TakeError::Empty));
    assert!(ids.take_batch(&mut [Id::default(); 2]).is_err());
    assert_eq!(failures(&ids), TakeFailures { empty: 2, ..none });

    // Eight a tick, and nothing is borrowed.
    let ids = no_fills(717, OnEmpty::Generate).build().unwrap();
    assert_eq!(ids.take_batch(&mut [Id::default(); 20]), Ok(8));
    assert_eq!(failures(&ids), none);
    assert!(ids.take().is_err());
    let mut expected = none;
    expected.refused.borrow_limit = 1;
    assert_eq!(failures(&ids), expected);
    ids.invalidate();
    let task = pin!(ids.take_async()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(task, Poll::Ready(Err(_))), "{task:?}");
    expected.refused.invalidated = 1;
    assert_eq!(failures(&ids), expected);
}

/// A producer may have published its last IDs after the batch found none.
#[test]
fn a_batch_that_is_refused_half_way_looks_once_more() {
    let layout = layout();
    let clock = Meanwhile::new(ManualClock::new(layout.tick_start_unix_ms(5)));
    let ids = builder(720, 5)
        .clock(Arc::clone(&clock))
        .threshold_fill(None)
        .padding_fill(PaddingFill::Off)
        .build()
        .unwrap();
    // Three of the eight of this tick.
    let mut late = [Id::default(); 3];
    assert_eq!(ids.filler.source().mint(&mut late), Ok(3));
    let (publishing, reading) = (ids.clone(), Arc::clone(&clock));
    // The first claim gives the other five, and the second is refused.
    clock.next_reader_does(move || {
        reading.next_reader_does(move || {
            let mark = publishing.filler.recall_mark();
            assert_eq!(publishing.filler.put_back(&late, mark), 3);
        });
    });
    assert_eq!(ids.take_batch(&mut [Id::default(); 20]), Ok(8));
}

#[test]
fn s4_what_a_batch_took_before_a_recall_does_not_go_back() {
    let ways: [fn(&CachedGenerator); 2] = [
        |ids| _ = ids.take_batch(&mut [Id::default(); 20]),
        |ids| {
            let mut out = [Id::default(); 20];
            let mut polling = Context::from_waker(Waker::noop());
            let _ = pin!(ids.take_batch_async(&mut out)).poll(&mut polling);
        },
    ];
    for (node, take) in (721..).zip(ways) {
        let layout = layout();
        let clock = Meanwhile::new(ManualClock::new(layout.tick_start_unix_ms(5)));
        // All 16 IDs of two ticks, eight in each stripe.
        let ids = builder(node, 5)
            .clock(Arc::clone(&clock))
            .borrow_limit(Duration::from_secs(1))
            .stripes(2)
            .capacity(16)
            .assist_fill(Some(AssistFill::below(100)))
            .on_empty(OnEmpty::Error)
            .on_empty_hook(|_| panic!("a hook breaks"))
            .build()
            .unwrap();
        assert_eq!(ids.stats().level, 16);
        // The take that empties the second stripe assists that, and so reads the clock.
        let recalling = ids.clone();
        clock.next_reader_does(move || assert!(!recalling.filler.recall()));
        let died = catch_unwind(AssertUnwindSafe(|| take(&ids)));
        assert!(died.is_err());
        assert_eq!(ids.shared.dropped.load(Relaxed), 16);
        assert_eq!(ids.stats().level, 0);
    }
}

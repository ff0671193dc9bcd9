//! Consumers that wait for the last IDs of a lease.

use std::fmt;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use ringflake::{CachedGenerator, CachedGeneratorBuilder, Clock, Layout, OnEmpty, PaddingFill};

use ringflake_kit::eventually;
use ringflake_kit::small::{cached, layout};
use ringflake_kit::tricky_clock::TrickyClock;

/// Longer than any test waits.
const HOUR: Duration = Duration::from_secs(3600);

/// How long something takes at most that needs no time.
const PATIENCE: Duration = Duration::from_secs(20);

/// 16 IDs in all, which a producer makes when the test lets it.
fn the_last_sixteen(layout: Layout) -> CachedGeneratorBuilder {
    cached(layout, 0..1, 0..1)
        .capacity(1024)
        .padding_fill(PaddingFill::InBackground)
        .on_empty(OnEmpty::Wait(HOUR))
}

/// A tricky clock, by which something happens when a consumer looks at it.
#[derive(Clone)]
struct Eventful {
    clock: TrickyClock,
    event: Arc<Mutex<Option<Event>>>,
}

type Event = Box<dyn FnOnce() + Send>;

impl fmt::Debug for Eventful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clock.fmt(f)
    }
}

impl Clock for Eventful {
    fn unix_ms(&self) -> u64 {
        if thread::current().name() == Some("consumer") {
            // Not under the lock: what happens may look at the clock, too.
            let event = self.event.lock().unwrap().take();
            event.into_iter().for_each(|happen| happen());
        }
        self.clock.unix_ms()
    }
}

/// What a take gives in a thread that is called the consumer.
fn take_in_consumer(ids: &CachedGenerator) -> mpsc::Receiver<bool> {
    let (taken, hear) = mpsc::channel();
    let ids = ids.clone();
    let consumer = thread::Builder::new().name("consumer".to_owned());
    let take = move || taken.send(ids.take().is_ok());
    // Not joined: a take that nothing wakes would hang the test.
    drop(consumer.spawn(take).unwrap());
    hear
}

#[test]
fn a_waiting_take_looks_once_more_before_it_is_refused() {
    let layout = layout(40, 8, 4);
    let clock = Eventful {
        clock: TrickyClock::new(layout.tick_start_unix_ms(0)),
        event: Arc::default(),
    };
    clock.clock.hold(1);
    let ids = the_last_sixteen(layout)
        .clock(clock.clone())
        .build()
        .unwrap();
    clock.clock.wait_until_held();
    // The take has found nothing, and asks whether anything can come: it did
    // meanwhile, and nothing can any more.
    let (tricky, stats) = (clock.clock.clone(), ids.clone());
    let publish = move || {
        tricky.release();
        eventually("the last IDs come", || stats.stats().level == 16);
        // The time that the producer needs to give back the room that is left.
        thread::sleep(Duration::from_millis(10));
    };
    *clock.event.lock().unwrap() = Some(Box::new(publish));
    let taken = take_in_consumer(&ids);
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(true));
    assert!(clock.event.lock().unwrap().is_none(), "it has happened");
}

#[test]
fn a_waiting_take_waits_for_what_a_producer_has_claimed() {
    let layout = layout(40, 8, 4);
    let clock = TrickyClock::new(layout.tick_start_unix_ms(0));
    clock.hold(1);
    let ids = the_last_sixteen(layout)
        .clock(clock.clone())
        .build()
        .unwrap();
    clock.wait_until_held();
    // Now it has all that there are in its hands, and looks for more.
    clock.step();
    let taken = take_in_consumer(&ids);
    eventually("the take finds nothing", || ids.stats().empties == 1);
    // It would be refused by now; what is waited for is longer than it needs.
    let early = taken.recv_timeout(Duration::from_millis(50));
    clock.release();
    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(true));
}

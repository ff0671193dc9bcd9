//! Consumers that wait for the last IDs of a lease.

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, Layout, OnEmpty, PaddingFill, Refused, TakeError,
};

use super::{HOUR, level, sixteen_a_tick, take_some};
use ringflake_kit::small::{Watched, cached, layout};
use ringflake_kit::tricky_clock::TrickyClock;
use ringflake_kit::{assert_matches, eventually};

/// How long something takes at most that needs no time.
const PATIENCE: Duration = Duration::from_secs(20);

/// 16 IDs in all, which a producer makes when the test lets it.
fn the_last_sixteen(layout: Layout) -> CachedGeneratorBuilder {
    cached(layout, 0..1, 0..1)
        .capacity(1024)
        .padding_fill(PaddingFill::InBackground)
        .on_empty(OnEmpty::Wait(HOUR))
}

type Take = fn(&CachedGenerator) -> Result<Id, TakeError>;

/// The result of a take in a thread named "consumer".
fn in_consumer(ids: &CachedGenerator, take: Take) -> mpsc::Receiver<Result<Id, TakeError>> {
    let (sender, taken) = mpsc::channel();
    let ids = ids.clone();
    let consumer = thread::Builder::new().name("consumer".to_owned());
    let take = move || sender.send(take(&ids));
    // Not joined: a take that nothing wakes would hang the test.
    drop(consumer.spawn(take).unwrap());
    taken
}

#[test]
fn a_waiting_take_looks_once_more_before_it_is_refused() {
    let layout = layout(40, 8, 4);
    let clock = TrickyClock::new(layout.tick_start_unix_ms(0));
    clock.hold(1);
    let (looks, look) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let goes_on = Mutex::new(goes_on);
    let stop_the_consumer = move || {
        if thread::current().name() == Some("consumer") {
            _ = looks.send(());
            _ = goes_on.lock().unwrap().recv();
        }
    };
    let ids = the_last_sixteen(layout)
        .clock(Watched(clock.clone(), stop_the_consumer))
        .build()
        .unwrap();
    clock.wait_until_held();
    let taken = in_consumer(&ids, CachedGenerator::take);
    // The take has found nothing, and asks whether anything can come: it does
    // meanwhile, and nothing can any more.
    look.recv_timeout(PATIENCE).unwrap();
    clock.release();
    eventually("the last IDs come", || level(&ids) == 16);
    // Only then has the producer given back the room that is left.
    eventually("the fill is refused", || ids.stats().refusals > 0);
    drop(go_on);
    assert_matches!(taken.recv_timeout(PATIENCE), Ok(Ok(_)));
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
    let taken = in_consumer(&ids, CachedGenerator::take);
    eventually("the take finds nothing", || ids.stats().empties == 1);
    // The time that a take needs to be refused wrongly: too short a wait can only miss
    // a refusal.
    let early = taken.recv_timeout(Duration::from_millis(50));
    clock.release();
    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
    assert_matches!(taken.recv_timeout(PATIENCE), Ok(Ok(_)));
}

#[test]
fn a_waiting_take_is_told_when_the_lease_ends_meanwhile() {
    let (builder, _, clock) = sixteen_a_tick(0..2, 0);
    let builder = builder.capacity(16).on_empty(OnEmpty::Wait(HOUR));
    let ids = builder.build().unwrap();
    take_some(&ids, 16);
    let taken = in_consumer(&ids, CachedGenerator::take);
    eventually("it waits", || {
        let stats = ids.stats();
        stats.empties > 0 && stats.refusals > 0
    });
    clock.advance(Duration::from_secs(5));
    let refused = taken.recv_timeout(PATIENCE);
    assert_matches!(
        refused,
        Ok(Err(TakeError::Refused(Refused::LeaseEnded { .. })))
    );
}

#[test]
fn no_take_waits_once_the_lease_has_ended() {
    let takes: [(&str, Take); 3] = [
        ("take", CachedGenerator::take),
        ("take_batch", |ids| {
            let mut id = [Id::default()];
            ids.take_batch(&mut id).map(|_| id[0])
        }),
        ("a handle's", |ids| ids.handle()?.take()),
    ];
    for (name, take) in takes {
        let (builder, _, clock) = sixteen_a_tick(0..2, 0);
        let builder = builder.capacity(16).on_empty(OnEmpty::Wait(HOUR));
        let ids = builder.build().unwrap();
        take_some(&ids, 16);
        clock.advance(Duration::from_secs(5));
        let taken = in_consumer(&ids, take).recv_timeout(PATIENCE);
        let is_refused = matches!(
            taken,
            Ok(Err(TakeError::Refused(Refused::LeaseEnded { .. })))
        );
        assert!(is_refused, "{name}: {taken:?}");
    }
}

//! Consumers that wait for the last IDs of a lease.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ringflake::{CachedGenerator, Id, OnEmpty, PaddingFill, Refused, TakeError};

use super::{HOUR, sixteen_a_tick, take_some};
use ringflake_kit::small::{cached, layout};
use ringflake_kit::tricky_clock::TrickyClock;
use ringflake_kit::{assert_matches, eventually};

/// How long something takes at most that needs no time.
const PATIENCE: Duration = Duration::from_secs(20);

type Take = fn(&CachedGenerator) -> Result<Id, TakeError>;

fn in_another_thread(ids: &CachedGenerator, take: Take) -> mpsc::Receiver<Result<Id, TakeError>> {
    let (sender, taken) = mpsc::channel();
    let ids = ids.clone();
    // Not joined: a take that nothing wakes would hang the test.
    thread::spawn(move || sender.send(take(&ids)));
    taken
}

#[test]
fn a_waiting_take_waits_for_what_a_producer_has_claimed() {
    let layout = layout(40, 8, 4);
    let clock = TrickyClock::new(layout.tick_start_unix_ms(0));
    clock.hold(1);
    // 16 IDs in all, which a producer makes when the test lets it.
    let ids = cached(layout, 0..1, 0..1)
        .clock(clock.clone())
        .capacity(1024)
        .padding_fill(PaddingFill::InBackground)
        .on_empty(OnEmpty::Wait(HOUR))
        .build()
        .unwrap();
    clock.wait_until_held();
    // Now it has all that there are in its hands, and looks for more.
    clock.step();
    let taken = in_another_thread(&ids, CachedGenerator::take);
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
    let (builder, clock) = sixteen_a_tick(0..2, 0);
    let builder = builder.capacity(16).on_empty(OnEmpty::Wait(HOUR));
    let ids = builder.build().unwrap();
    take_some(&ids, 16);
    let taken = in_another_thread(&ids, CachedGenerator::take);
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
        let (builder, clock) = sixteen_a_tick(0..2, 0);
        let builder = builder.capacity(16).on_empty(OnEmpty::Wait(HOUR));
        let ids = builder.build().unwrap();
        take_some(&ids, 16);
        clock.advance(Duration::from_secs(5));
        let taken = in_another_thread(&ids, take).recv_timeout(PATIENCE);
        let is_refused = matches!(
            taken,
            Ok(Err(TakeError::Refused(Refused::LeaseEnded { .. })))
        );
        assert!(is_refused, "{name}: {taken:?}");
    }
}

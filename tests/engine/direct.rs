//! The generator without a ring: what each clock policy promises.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use ringflake::{
    Clock, ClockPolicy, DirectGenerator, Id, Layout, ManualClock, Parts, Refused, TakeError,
};

use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{POLICIES, clock_at, direct, layout};
use ringflake_kit::{assert_matches, eventually};

const SECOND: Duration = Duration::from_secs(1);

/// Ticks of a millisecond from Randflake's epoch on.
fn milliseconds(time: u32, node: u32, sequence: u32) -> Layout {
    let builder = Layout::builder().bits(time, node, sequence);
    builder.tick(Duration::from_millis(1)).build().unwrap()
}

/// By a clock that stands at the start of the tick `now`; and that clock.
fn generator(
    layout: Layout,
    nodes: Range<u64>,
    ticks: Range<u64>,
    now: u64,
    policy: ClockPolicy,
) -> (DirectGenerator, ManualClock) {
    let clock = clock_at(layout, now);
    let builder = direct(layout, nodes, ticks).clock_policy(policy);
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

fn wait(at_most: Duration) -> ClockPolicy {
    ClockPolicy::Wait { at_most }
}

fn logical(at_most_ahead: Duration) -> ClockPolicy {
    ClockPolicy::Logical { at_most_ahead }
}

fn take(ids: &DirectGenerator) -> Result<Parts, TakeError> {
    ids.take().map(|id| ids.inspect(id).unwrap())
}

#[track_caller]
fn assert_lease_ended<T: Debug>(taken: Result<T, TakeError>) {
    let error = taken.unwrap_err();
    assert_matches!(error, TakeError::Refused(Refused::LeaseEnded { .. }));
}

/// How long to wait, in milliseconds, when the clock is what is in the way.
fn retry_ms(ids: &DirectGenerator) -> u64 {
    match ids.take() {
        Err(TakeError::Refused(Refused::BorrowLimit { retry_after, .. })) => {
            retry_after.as_millis() as u64
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ids_carry_the_time_of_their_take() {
    let layout = layout(44, 8, 4);
    // All but the one that counts for itself.
    for policy in &POLICIES[..3] {
        let (ids, clock) = generator(layout, 0..8, 100..1_000, 100, *policy);
        for tick in [100, 101, 105, 500, 999] {
            clock.set(layout.tick_start_unix_ms(tick) + 999);
            for _ in 0..3 {
                assert_eq!(take(&ids).unwrap().tick, tick, "{policy:?}");
            }
        }
        clock.set(layout.tick_start_unix_ms(1_000));
        assert_lease_ended(ids.take());
    }
}

#[test]
fn the_default_is_to_wait_15_ms() {
    assert_eq!(ClockPolicy::default(), wait(Duration::from_millis(15)));
    let layout = layout(44, 8, 4);
    let ids = direct(layout, 0..1, 5..9).build().unwrap();
    assert!(format!("{ids:?}").contains("Wait { at_most: 15ms }"));
}

#[test]
fn a_batch_goes_on_from_run_to_run_and_ends_where_a_take_would() {
    let layout = layout(44, 8, 4);
    let (ids, clock) = generator(layout, 7..10, 3..5, 3, ClockPolicy::Refuse);
    let mut batch = [Id::default(); 100];
    assert_eq!(ids.take_batch(&mut batch[..40]), Ok(40));
    assert_eq!(ids.take_batch(&mut batch[40..]), Ok(8));
    let oracle = Oracle::new(layout, 7..10, 3..4);
    for &id in &batch[..48] {
        oracle.mark(ids.inspect(id).unwrap()).unwrap();
    }
    assert_eq!(ids.take_batch(&mut batch), ids.take().map(|_| 0));
    assert_eq!(ids.take_batch(&mut []), Ok(0));
    clock.advance(SECOND);
    assert_eq!(ids.take_batch(&mut batch), Ok(48));
    assert_lease_ended(ids.take_batch(&mut batch));
}

#[test]
fn u1_threads_that_share_a_generator_repeat_nothing_under_a_clock_that_jumps() {
    let layout = milliseconds(42, 10, 6);
    for policy in POLICIES {
        let (ids, clock) = generator(layout, 40..56, 1_000..1_500, 1_000, policy);
        let oracle = Oracle::new(layout, 40..56, 1_000..1_500);
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (ids, oracle, clock) = (&ids, &oracle, &clock);
                scope.spawn(move || {
                    let mut batch = [Id::default(); 50];
                    for step in 0..1_000_u64 {
                        if step % 7 == thread {
                            // Forward in the long run, and back as often.
                            let tick = 1_000 + step / 3 + [0, 20, 3, 9][step as usize % 4];
                            clock.set(layout.tick_start_unix_ms(tick));
                        }
                        let want = if step % 2 == 0 { 1 } else { 50 };
                        let count = ids.take_batch(&mut batch[..want]).unwrap_or(0);
                        for &id in &batch[..count] {
                            oracle.mark(ids.inspect(id).unwrap()).unwrap();
                        }
                    }
                });
            }
        });
        assert!(oracle.marked() > 1_000, "{policy:?}: {}", oracle.marked());
    }
}

#[test]
fn refuse_fails_at_once_with_the_time_to_wait() {
    let layout = layout(44, 8, 4);
    let (ids, clock) = generator(layout, 5..6, 0..100, 50, ClockPolicy::Refuse);
    assert_eq!(take(&ids).unwrap().sequence, 0);
    clock.step_back(Duration::from_millis(12_345));
    let refused = ids.take().unwrap_err();
    let expected = Refused::BorrowLimit {
        retry_after: Duration::from_millis(12_345),
        limit: Duration::ZERO,
    };
    assert_eq!(refused, expected.into());
    assert!(refused.to_string().contains("12s 345ms"), "{refused}");
    // As long as that, and not a millisecond less.
    clock.advance(Duration::from_millis(12_344));
    assert_eq!(retry_ms(&ids), 1);
    clock.advance(Duration::from_millis(1));
    assert_eq!(take(&ids).unwrap().sequence, 1);
}

#[test]
fn refuse_counts_a_tick_that_is_used_up_to_the_next() {
    let layout = layout(44, 8, 4);
    let (ids, clock) = generator(layout, 5..7, 0..100, 50, ClockPolicy::Refuse);
    for _ in 0..32 {
        ids.take().unwrap();
    }
    clock.advance(Duration::from_millis(250));
    assert_eq!(retry_ms(&ids), 750);
    clock.advance(Duration::from_millis(750));
    assert_eq!(take(&ids).unwrap().tick, 51);
}

/// A clock that stands still, and counts how often it is read.
#[derive(Clone, Debug)]
struct Counted {
    clock: ManualClock,
    reads: Arc<AtomicU64>,
    /// Every so many reads it goes on by a millisecond; 0 for never. Then it breaks
    /// after 50, so that who waits for ever fails.
    each: u64,
}

/// A generator that waits so long by such a clock, which stands at `tick`.
fn counted(layout: Layout, tick: u64, each: u64, at_most: Duration) -> (DirectGenerator, Counted) {
    let (clock, reads) = (clock_at(layout, tick), Arc::default());
    let counted = Counted { clock, reads, each };
    let builder = direct(layout, 0..1, 0..9_999).clock_policy(wait(at_most));
    (builder.clock(counted.clone()).build().unwrap(), counted)
}

impl Clock for Counted {
    fn unix_ms(&self) -> u64 {
        let now = self.clock.unix_ms();
        // Counted after the read: a test that sees the count may set the clock.
        let read = self.reads.fetch_add(1, Release) + 1;
        let ahead = read.checked_div(self.each).unwrap_or(0);
        assert!(self.each > 0 || read < 50, "it waits for ever");
        now + ahead
    }
}

#[test]
fn wait_sleeps_until_the_clock_has_caught_up() {
    let layout = milliseconds(44, 8, 4);
    let patience = wait(Duration::from_secs(3_600));
    let (ids, clock) = generator(layout, 0..1, 0..999, 500, patience);
    assert_eq!(take(&ids).unwrap().tick, 500);
    clock.step_back(Duration::from_millis(20));
    let together = Barrier::new(2);
    thread::scope(|scope| {
        let taker = scope.spawn(|| {
            together.wait();
            take(&ids)
        });
        together.wait();
        for _ in 0..21 {
            thread::sleep(Duration::from_millis(1));
            assert!(!taker.is_finished() || clock.unix_ms() >= layout.tick_start_unix_ms(500));
            clock.advance(Duration::from_millis(1));
        }
        let tick = taker.join().unwrap().unwrap().tick;
        assert!((500..=501).contains(&tick));
    });
}

#[test]
fn a_take_that_sleeps_holds_up_no_other() {
    let layout = milliseconds(44, 8, 4);
    let (manual, reads) = (clock_at(layout, 90_000), Arc::default());
    let clock = Counted {
        clock: manual,
        reads,
        each: 0,
    };
    let builder = direct(layout, 0..1, 0..100_000).clock_policy(wait(Duration::MAX));
    let ids = builder.clock(clock.clone()).build().unwrap();
    ids.take().unwrap();
    clock.clock.step_back(Duration::from_secs(60));
    let before = clock.reads.load(Relaxed);
    let is_awake = Arc::new(AtomicBool::new(false));
    let sleeper = {
        let (ids, is_awake) = (ids.clone(), Arc::clone(&is_awake));
        move || {
            ids.take().unwrap();
            is_awake.store(true, Relaxed);
        }
    };
    // Not joined: it sleeps for a minute.
    thread::spawn(sleeper);
    eventually("it has read the clock", || {
        clock.reads.load(Acquire) > before
    });
    clock.clock.advance(Duration::from_secs(60));
    ids.take().unwrap();
    assert!(!is_awake.load(Relaxed));
}

#[test]
fn wait_is_bounded_while_the_clock_stands_still() {
    let layout = milliseconds(44, 8, 4);
    // Each sleep takes 10 ms at least, so that there is room for three. Where one is not enough,
    // none begins. It looks again after each.
    for (back, at_most, looks) in [(10, 35, 4), (101, 100, 1)] {
        let (ids, clock) = counted(layout, 500, 0, Duration::from_millis(at_most));
        ids.take().unwrap();
        clock.clock.step_back(Duration::from_millis(back));
        let before = clock.reads.load(Relaxed);
        assert_eq!(retry_ms(&ids), back);
        let reads = clock.reads.load(Relaxed) - before;
        assert!(
            (1..=looks).contains(&reads),
            "{reads} looks, {back} ms back"
        );
    }
}

#[test]
fn wait_bounds_a_whole_batch() {
    // Every other look at this clock finds the next millisecond: a claim, and
    // after it a refusal that takes a sleep of a millisecond to overcome.
    let layout = milliseconds(46, 8, 1);
    let (ids, _) = counted(layout, 500, 2, Duration::from_millis(5));
    let mut batch = [Id::default(); 400];
    let count = ids.take_batch(&mut batch).unwrap();
    // Two before the first sleep, and two after each.
    assert!((2..=14).contains(&count), "{count} IDs: it slept too often");
}

#[test]
fn wait_does_not_wait_for_a_lease_that_has_ended() {
    let layout = milliseconds(46, 8, 1);
    let (ids, clock) = generator(layout, 0..1, 5..6, 5, wait(Duration::MAX));
    ids.take().unwrap();
    ids.take().unwrap();
    assert_lease_ended(ids.take());
    clock.set(u64::MAX);
    assert_lease_ended(ids.take());
}

#[test]
fn switch_node_goes_on_with_another_node_when_a_tick_is_used_up() {
    let layout = layout(44, 10, 2);
    // More nodes than lanes, too.
    for nodes in [3..8, 100..356, 0..300, 1..1_023] {
        let width = nodes.end - nodes.start;
        let oracle = Oracle::new(layout, nodes.clone(), 0..9);
        let (ids, clock) = generator(layout, nodes, 0..9, 5, ClockPolicy::SwitchNode);
        for tick in 5..9 {
            for _ in 0..width * 4 {
                let parts = take(&ids).unwrap();
                assert_eq!(parts.tick, tick);
                oracle.mark(parts).unwrap();
            }
            if tick < 8 {
                assert_eq!(retry_ms(&ids), 1_000);
                clock.advance(SECOND);
            }
        }
        assert_lease_ended(ids.take());
    }
}

#[test]
fn switch_node_takes_another_node_when_the_clock_is_set_back() {
    let layout = layout(44, 10, 4);
    let (ids, clock) = generator(layout, 3..6, 0..99, 50, ClockPolicy::SwitchNode);
    for expected in [3, 4, 5] {
        let parts = take(&ids).unwrap();
        assert_eq!(parts.node, expected);
        assert_eq!(parts.unix_ms, clock.unix_ms());
        clock.step_back(SECOND);
    }
    // The nodes stand at the ticks 50, 49 and 48; the clock at 47.
    assert_eq!(retry_ms(&ids), 1_000);
}

#[test]
fn logical_counts_from_the_leases_start_whatever_the_clock_says() {
    let layout = layout(10, 4, 2);
    let (ids, clock) = generator(layout, 2..5, 100..600, 500, logical(Duration::ZERO));
    let mut raws = (100..500).flat_map(|tick| {
        (2..5).flat_map(move |node| (0..4).map(move |seq| layout.pack(tick, node, seq).unwrap()))
    });
    for (step, raw) in raws.by_ref().take(2_400).enumerate() {
        // Anywhere, as long as the count is not ahead of it.
        clock.set(layout.tick_start_unix_ms(300 + (step as u64 * 37) % 300));
        assert_eq!(ids.take(), Ok(Id::from_u64(raw)));
    }
    clock.set(u64::MAX);
    assert_eq!(ids.take().map(Id::to_u64), Ok(raws.next().unwrap()));
}

#[test]
fn logical_is_bounded_by_the_clock() {
    let layout = layout(44, 10, 2);
    let (ids, clock) = generator(
        layout,
        0..2,
        10..99,
        10,
        logical(Duration::from_millis(3_999)),
    );
    // The clock's tick and three more, of 8 IDs each.
    for take in 0..32 {
        assert_eq!(self::take(&ids).unwrap().tick, 10 + take / 8);
    }
    let refused = Refused::BorrowLimit {
        retry_after: SECOND,
        limit: Duration::from_secs(3),
    };
    assert_eq!(ids.take(), Err(refused.into()));
    clock.step_back(Duration::from_secs(5));
    assert_eq!(retry_ms(&ids), 6_000);
    clock.advance(Duration::from_secs(6));
    assert_eq!(take(&ids).unwrap().tick, 14);
}

#[test]
fn u1_logical_gives_each_cell_of_its_lease_once() {
    let layout = layout(44, 10, 3);
    let oracle = Oracle::new(layout, 5..8, 10..50);
    let (ids, _) = generator(layout, 5..8, 10..50, 10, logical(Duration::MAX));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Ok(parts) = take(&ids) {
                    oracle.mark(parts).unwrap();
                }
            });
        }
    });
    assert_eq!(oracle.marked(), 3 * 40 * 8);
    assert_lease_ended(ids.take());
}

fn policies() -> impl Strategy<Value = ClockPolicy> {
    prop_oneof![
        Just(ClockPolicy::Refuse),
        (0_u64..3).prop_map(|ms| wait(Duration::from_millis(ms))),
        Just(ClockPolicy::SwitchNode),
        (0_u64..9_000).prop_map(|ms| logical(Duration::from_millis(ms))),
    ]
}

proptest! {
    #[test]
    fn u1_u2_any_policy_repeats_nothing_under_any_clock(
        policy in policies(),
        sequence_bits in 1_u32..8,
        first_node in 0_u64..56,
        // Without a tick the clock stands before the epoch.
        steps in prop::collection::vec(
            (prop::option::weighted(0.95, 0_u64..40), 0_usize..70),
            1..60,
        ),
    ) {
        let layout = layout(50 - sequence_bits, 6, sequence_bits);
        let nodes = first_node..first_node + 8;
        let oracle = Oracle::new(layout, nodes.clone(), 5..35);
        let (ids, clock) = generator(layout, nodes, 5..35, 5, policy);
        let mut batch = [Id::default(); 70];
        for (tick, want) in steps {
            clock.set(tick.map_or(0, |tick| layout.tick_start_unix_ms(tick)));
            if let Ok(count) = ids.take_batch(&mut batch[..want]) {
                prop_assert!(count > 0 || want == 0);
                for &id in &batch[..count] {
                    prop_assert_eq!(oracle.mark(ids.inspect(id).unwrap()), Ok(()));
                }
            }
        }
    }
}

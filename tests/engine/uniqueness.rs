//! U1, U2 and U3, by an oracle that has one bit for each cell of the lease.
//!
//! Every ID is decrypted and its cell marked. A cell that is marked twice and
//! an ID that lies outside fail at once, whichever thread sees them.

mod cores;

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use ringflake::{
    CachedGenerator, Clock, Handle, Id, IdWidth, Inspector, Layout, ManualClock, OnEmpty,
    PaddingFill, Refused, Secret, TakeError, ThresholdFill,
};

use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{
    cached, clock_at, direct, layout, lease, plain, secret_of_its_own, shared_layout,
};
use ringflake_kit::{eventually, short_or_long};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug)]
enum Way {
    One,
    Batch(usize),
    Handle,
}

struct Consumer<'a> {
    ids: &'a CachedGenerator,
    oracle: &'a Oracle,
    inspector: Inspector,
    handle: Option<Handle>,
    buffer: Vec<Id>,
}

impl<'a> Consumer<'a> {
    fn new(ids: &'a CachedGenerator, oracle: &'a Oracle, way: Way) -> Self {
        let (handle, batch) = match way {
            Way::One => (None, 1),
            Way::Batch(batch) => (None, batch),
            Way::Handle => (Some(ids.handle().unwrap()), 1),
        };
        Self {
            ids,
            oracle,
            inspector: ids.inspector(),
            handle,
            buffer: vec![Id::default(); batch],
        }
    }

    /// One take, and how many IDs that gave.
    fn step(&mut self) -> Result<u64, TakeError> {
        let count = match (&mut self.handle, self.buffer.as_mut_slice()) {
            (Some(handle), buffer) => {
                buffer[0] = handle.take()?;
                1
            }
            (None, [id]) => {
                *id = self.ids.take()?;
                1
            }
            (None, batch) => self.ids.take_batch(batch)?,
        };
        for &id in &self.buffer[..count] {
            let parts = self.inspector.inspect(id).unwrap();
            self.oracle.mark(parts).unwrap();
        }
        Ok(count as u64)
    }
}

/// One thread for each way takes `each` IDs, or fewer if an error ends it.
fn consume(
    ids: &CachedGenerator,
    oracle: &Oracle,
    ways: &[Way],
    each: u64,
    ends_it: impl Fn(TakeError) -> bool + Sync,
) {
    thread::scope(|scope| {
        for &way in ways {
            let ends_it = &ends_it;
            scope.spawn(move || {
                let mut consumer = Consumer::new(ids, oracle, way);
                let mut taken = 0;
                while taken < each {
                    match consumer.step() {
                        Ok(count) => taken += count,
                        Err(error) if ends_it(error) => break,
                        Err(_) => thread::yield_now(),
                    }
                }
            });
        }
    });
}

fn lease_ended(error: TakeError) -> bool {
    matches!(error, TakeError::Refused(Refused::LeaseEnded { .. }))
}

const ALL_WAYS: [Way; 4] = [Way::One, Way::Batch(7), Way::Handle, Way::Batch(200)];

/// Takes all that the lease has, and checks that it was all.
fn exhaust(ids: &CachedGenerator, oracle: &Oracle, ways: &[Way], cells: u64) {
    consume(ids, oracle, ways, u64::MAX, lease_ended);
    // A producer may have been stopped between its last claim and the ring.
    let mut rest = Consumer::new(ids, oracle, Way::One);
    eventually("the last IDs of the lease come", || {
        let error = loop {
            if let Err(error) = rest.step() {
                break error;
            }
        };
        assert!(lease_ended(error), "{error}");
        oracle.marked() == cells
    });
    for way in ALL_WAYS {
        let error = Consumer::new(ids, oracle, way).step().unwrap_err();
        assert!(lease_ended(error), "{way:?}: {error}");
    }
}

#[test]
fn u1_without_threads_ids_follow_the_line_across_all_fields() {
    let layout = layout(10, 4, 2);
    let ids = cached(layout, 5..8, 20..23)
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .build()
        .unwrap();
    let line = (20..23).flat_map(|tick| {
        (5..8).flat_map(move |node| (0..4).map(move |seq| layout.pack(tick, node, seq)))
    });
    for raw in line {
        assert_eq!(ids.take().map(Id::to_u64), Ok(raw.unwrap()));
    }
    assert!(lease_ended(ids.take().unwrap_err()));
}

#[test]
fn u1_a_rollover_of_randflakes_sequence_repeats_nothing() {
    let layout = Layout::RANDFLAKE;
    let oracle = Oracle::new(layout, 131_070..131_072, 7..9);
    let ids = cached(layout, 131_070..131_072, 7..9)
        .capacity(1 << 12)
        .build()
        .unwrap();
    // Past a node and a tick: 2 x 2^17 IDs are a tick.
    let ways = [Way::Batch(500), Way::Handle];
    consume(&ids, &oracle, &ways, 140_000, |error| panic!("{error}"));
    assert!(oracle.marked() > 2 << 17);
}

#[test]
fn u1_a_lease_gives_each_of_its_cells_once_and_then_ends() {
    for (node_bits, sequence_bits, nodes, ticks) in [
        (3, 2, 1..6, 1_000..1_400),
        (4, 1, 0..16, 0..300),
        (1, 6, 1..2, 10..70),
        (2, 11, 0..3, 0..4),
    ] {
        let layout = layout(56 - node_bits - sequence_bits, node_bits, sequence_bits);
        for (capacity, producers) in [(1, 1), (32, 2), (1024, 3)] {
            let oracle = Oracle::new(layout, nodes.clone(), ticks.clone());
            let ids = cached(layout, nodes.clone(), ticks.clone())
                .borrow_limit(HOUR)
                .capacity(capacity)
                .producers(producers)
                .build()
                .unwrap();
            let cells = (nodes.end - nodes.start) * (ticks.end - ticks.start) * layout.sequences();
            exhaust(&ids, &oracle, &ALL_WAYS, cells);
            assert_eq!(oracle.marked(), cells);
        }
    }
}

#[test]
fn u2_the_end_of_a_lease_names_its_time_and_the_clocks() {
    let layout = layout(10, 4, 2);
    let clock = clock_at(layout, 3);
    let ids = direct(layout, 0..1, 3..4)
        .clock(clock.clone())
        .build()
        .unwrap();
    for _ in 0..4 {
        ids.take().unwrap();
    }
    let end_unix_ms = layout.tick_start_unix_ms(4);
    for now_unix_ms in [clock.unix_ms(), end_unix_ms, u64::MAX] {
        clock.set(now_unix_ms);
        let ended = Refused::LeaseEnded {
            end_unix_ms,
            now_unix_ms,
        };
        assert_eq!(ids.take(), Err(ended.into()));
    }
}

/// Takes exactly `count` IDs under a clock that stands at `now_unix_ms`, in
/// place or from a ring, and gives the refusal of the next take.
fn refused_after(count: u64, now_unix_ms: u64, borrow_limit: Duration, ring: bool) -> Refused {
    let layout = shared_layout(40, 10, 4);
    let oracle = Oracle::new(layout, 3..5, 0..200);
    let builder = cached(layout, 3..5, 0..200)
        .clock(ManualClock::new(now_unix_ms))
        .borrow_limit(borrow_limit)
        .capacity(8);
    let builder = match ring {
        true => builder,
        false => builder.padding_fill(PaddingFill::Off).threshold_fill(None),
    };
    let ids = builder.build().unwrap();
    let mut consumer = Consumer::new(&ids, &oracle, Way::One);
    eventually("all that may be borrowed is given out", || {
        while oracle.marked() < count {
            if let Err(error) = consumer.step() {
                // A producer may have the last ones in its hands.
                assert!(ring, "{error}");
                return false;
            }
        }
        true
    });
    match consumer.step() {
        Err(TakeError::Refused(refused)) => refused,
        other => panic!("after {count} IDs: {other:?}"),
    }
}

#[test]
fn u2_a_frozen_clock_lets_through_what_may_be_borrowed() {
    let layout = shared_layout(40, 10, 4);
    let now = layout.tick_start_unix_ms(20) + 300;
    for ring in [false, true] {
        // The clock's own tick, and 9 more: 2 nodes, 16 sequences.
        let refused = refused_after(10 * 32, now, Duration::from_millis(9_999), ring);
        let (retry_after, limit) = (Duration::from_millis(700), Duration::from_secs(9));
        assert_eq!(refused, Refused::BorrowLimit { retry_after, limit });
    }
}

#[test]
fn u2_a_clock_before_the_epoch_borrows_up_to_the_limit() {
    let limit = Duration::from_secs(60);
    let epoch = shared_layout(40, 10, 4).epoch_unix_ms();
    for (before_ms, ticks, retry_ms) in [
        (1, 60, 1),
        (999, 60, 999),
        (1_000, 60, 1_000),
        (1_001, 59, 1),
        (60_000, 1, 1_000),
        (60_001, 0, 1),
        (epoch, 0, epoch - 60_000),
    ] {
        let refused = refused_after(ticks * 32, epoch - before_ms, limit, false);
        let retry_after = Duration::from_millis(retry_ms);
        let refusal = Refused::BorrowLimit { retry_after, limit };
        assert_eq!(refused, refusal, "{before_ms} ms before the epoch");
    }
}

#[test]
fn u2_a_clock_far_ahead_ends_the_lease_and_back_it_goes_on() {
    let layout = layout(40, 10, 4);
    let oracle = Oracle::new(layout, 0..1, 50..60);
    let clock = clock_at(layout, 50);
    let ids = cached(layout, 0..1, 50..60)
        .clock(clock.clone())
        // Without stocks, so that `level` is all that there is.
        .stripes(1)
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .build()
        .unwrap();
    let mut consumer = Consumer::new(&ids, &oracle, Way::One);
    for _ in 0..5 {
        consumer.step().unwrap();
        // IDs already in the ring are issued without a look at the clock.
        while ids.stats().level > 0 {
            consumer.step().unwrap();
        }
        let now = clock.unix_ms();
        for ahead in [layout.tick_start_unix_ms(60), u64::MAX] {
            clock.set(ahead);
            assert!(lease_ended(consumer.step().unwrap_err()));
        }
        clock.set(now);
    }
    exhaust(&ids, &oracle, &[Way::One], 160);
}

#[test]
fn u1_a_restart_goes_on_where_the_first_lease_ends() {
    let layout = layout(44, 8, 4);
    let oracle = Oracle::new(layout, 9..12, 0..60);
    // The clock is 15 s behind at each start, as after a step.
    let start = |ticks: Range<u64>| {
        let clock = clock_at(layout, ticks.start.saturating_sub(15));
        cached(layout, 9..12, ticks)
            .clock(clock)
            .borrow_limit(HOUR)
            .capacity(64)
            .producers(2)
            .build()
            .unwrap()
    };
    // Exhausted; stopped with IDs in the ring; and another one beside the rest.
    exhaust(&start(0..20), &oracle, &ALL_WAYS, 20 * 48);
    let second = start(20..40);
    let third = start(40..60);
    thread::scope(|scope| {
        scope.spawn(|| consume(&second, &oracle, &ALL_WAYS, 150, |error| panic!("{error}")));
        scope.spawn(|| consume(&third, &oracle, &ALL_WAYS, u64::MAX, lease_ended));
    });
    drop(second);
    assert!(oracle.marked() >= 20 * 48 + 600);
}

#[test]
fn u3_the_last_tick_of_a_layout_is_used_up_and_never_left() {
    let layout = layout(3, 2, 3);
    let oracle = Oracle::new(layout, 0..4, 0..8);
    let clock = clock_at(layout, 0);
    let ids = cached(layout, 0..4, 0..8)
        .clock(clock.clone())
        .borrow_limit(Duration::MAX)
        .capacity(16)
        .build()
        .unwrap();
    // All 256 raws there are; a field that spilled over would not be unpacked.
    exhaust(&ids, &oracle, &ALL_WAYS, 256);
    clock.advance(HOUR);
    assert!(lease_ended(ids.take().unwrap_err()));
}

#[test]
fn u3_the_last_cells_of_a_lease_over_all_64_bits() {
    let milliseconds = Layout::builder().tick(Duration::from_millis(1));
    for (time, node, sequence) in [(52, 6, 6), (61, 1, 2), (62, 1, 1), (60, 3, 1), (54, 1, 9)] {
        let layout = milliseconds.bits(time, node, sequence).build().unwrap();
        let last = layout.ticks() - 1;
        let oracle = Oracle::new(layout, 0..layout.nodes(), last..layout.ticks());
        let ids = plain(layout, 0..layout.nodes(), 0..layout.ticks())
            .clock(clock_at(layout, last))
            .padding_fill(PaddingFill::Off)
            .threshold_fill(None)
            .build()
            .unwrap();
        consume(&ids, &oracle, &[Way::Batch(5)], u64::MAX, lease_ended);
        // A position counts up to 2^64 - 2, so the last two may be left.
        let cells = layout.nodes() * layout.sequences();
        assert!(oracle.marked() >= cells - 2, "{layout}");
    }
}

/// What happens to a generator, one thing after the other.
#[derive(Clone, Copy, Debug)]
enum Step {
    Advance(u64),
    Back(u64),
    /// To milliseconds before or after the start of the lease.
    Near(i64),
    Far(u64),
    Take(Way, u64),
}

fn ways() -> impl Strategy<Value = Way> {
    prop_oneof![
        Just(Way::One),
        (2_usize..150).prop_map(Way::Batch),
        Just(Way::Handle),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u64..8_000).prop_map(Step::Advance),
        2 => (0_u64..20_000).prop_map(Step::Back),
        2 => (-70_000_i64..30_000).prop_map(Step::Near),
        1 => prop::sample::select(vec![0, 1, u64::MAX / 2, u64::MAX]).prop_map(Step::Far),
        8 => (ways(), 1_u64..200).prop_map(|(way, count)| Step::Take(way, count)),
    ];
    prop::collection::vec(step, 1..25)
}

/// A layout that is encrypted to some width or plain, and a lease in it that may touch its
/// beginning, its end, both or none.
#[derive(Clone, Debug)]
struct Ground {
    layout: Layout,
    nodes: Range<u64>,
    ticks: Range<u64>,
    encryption: Option<(Secret, IdWidth)>,
}

fn grounds() -> impl Strategy<Value = Ground> {
    let widths = [IdWidth::Full, IdWidth::Positive, IdWidth::JsSafe];
    let is_available = |&width: &IdWidth| width != IdWidth::JsSafe || cfg!(feature = "js-safe");
    let widths: Vec<_> = widths.into_iter().filter(is_available).collect();
    let id_width = prop::option::of(prop::sample::select(widths));
    let bits = (1_u32..=3, 1_u32..=6, 2_u32..=5, id_width);
    let shares = (0_f64..1.0, 0_f64..1.0, 0_f64..1.0, 1_u64..=16);
    (bits, shares).prop_map(|((node, sequence, time, id_width), shares)| {
        let time = match id_width {
            None => time,
            Some(width) => width.bits().min(56) - node - sequence,
        };
        let layout = layout(time, node, sequence);
        let node = (shares.0 * layout.nodes() as f64) as u64;
        let width = 1 + (shares.1 * (layout.nodes() - node) as f64) as u64;
        let depth = shares.3.min(layout.ticks());
        let room = layout.ticks() - depth;
        // Rounded, so that either end is met often.
        let tick = ((shares.2 * 1.2 - 0.1).clamp(0.0, 1.0) * room as f64) as u64;
        let tick = tick.min(room);
        Ground {
            layout,
            nodes: node..(node + width).min(layout.nodes()),
            ticks: tick..tick + depth,
            encryption: id_width.map(|width| (secret_of_its_own(), width)),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(short_or_long(50, 150)))]

    #[test]
    fn u1_u2_u3_hold_for_any_lease_ring_and_clock(
        ground in grounds(),
        capacity_bits in 0_u32..=8,
        threshold in prop::option::of(1_u32..=100),
        producers in 1_usize..=3,
        padding in prop::sample::select(vec![
            PaddingFill::BeforeFirstTake,
            PaddingFill::InBackground,
            PaddingFill::Off,
        ]),
        on_empty in prop::sample::select(vec![
            OnEmpty::Generate,
            OnEmpty::Error,
            OnEmpty::Wait(Duration::from_micros(300)),
        ]),
        borrow_limit_ms in 0_u64..40_000,
        beside in ways(),
        steps in steps(),
    ) {
        let Ground { layout, nodes, ticks, encryption } = ground;
        let oracle = Oracle::new(layout, nodes.clone(), ticks.clone());
        let start_unix_ms = layout.tick_start_unix_ms(ticks.start);
        let clock = ManualClock::new(start_unix_ms);
        let builder = CachedGenerator::builder(layout);
        let builder = match &encryption {
            Some((secret, width)) => builder.secret(secret).id_width(*width),
            None => builder.plain(),
        };
        let waits = matches!(on_empty, OnEmpty::Wait(_));
        let is_never_filled = padding == PaddingFill::Off && on_empty == OnEmpty::Error;
        let threshold = threshold.or((waits || is_never_filled).then_some(50));
        let ids = builder
            .lease(lease(layout, nodes, ticks))
            .clock(clock.clone())
            .capacity(1 << capacity_bits)
            .threshold_fill(threshold.map(ThresholdFill::percent))
            .padding_fill(padding)
            .producers(producers)
            .borrow_limit(Duration::from_millis(borrow_limit_ms))
            .on_empty(on_empty)
            .build()
            .unwrap();

        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut consumer = Consumer::new(&ids, &oracle, beside);
                while !over.load(Acquire) {
                    let _ = consumer.step();
                    thread::yield_now();
                }
            });
            for step in steps {
                match step {
                    Step::Advance(ms) => clock.advance(Duration::from_millis(ms)),
                    Step::Back(ms) => clock.step_back(Duration::from_millis(ms)),
                    Step::Near(ms) => clock.set(start_unix_ms.saturating_add_signed(ms)),
                    Step::Far(unix_ms) => clock.set(unix_ms),
                    Step::Take(way, count) => {
                        let mut consumer = Consumer::new(&ids, &oracle, way);
                        for _ in 0..count {
                            if consumer.step().is_err() {
                                break;
                            }
                        }
                    }
                }
            }
            over.store(true, Release);
        });
    }
}

//! Configuration: what is refused and how that reads, and what the options do that have
//! no file of their own.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ringflake::{
    AssistFill, BackfillGenerator, BuildError, CachedGenerator, CachedGeneratorBuilder, Clock,
    ClockPolicy, CoreStocks, DirectGenerator, Id, Layout, LayoutError, LeaseError, LeaseSource,
    ManualClock, OnEmpty, PaddingFill, PolicyError, RingError, ScheduledFill, Secret, StaticLease,
    ThresholdFill,
};

use ringflake_kit::small::{clock_at, layout, lease, secret, secret_of_its_own};
use ringflake_kit::{assert_matches, assert_says, eventually, in_full};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const NOW_UNIX_MS: u64 = 1_750_000_000_000;

fn builder() -> CachedGeneratorBuilder {
    builder_of(layout(40, 8, 8))
}

fn builder_of(layout: Layout) -> CachedGeneratorBuilder {
    CachedGenerator::builder(layout)
        .plain()
        .lease(lease(layout, 10..12, 0..1_000))
        .clock(clock_at(layout, 0))
        .capacity(64)
}

/// Fails unless the build is refused for exactly this, and says each of `parts`.
#[track_caller]
fn assert_refused<T>(built: Result<T, BuildError>, why: &BuildError, parts: &[&str]) {
    let error = built.err();
    let error = error.unwrap_or_else(|| panic!("it is built in place of {why:?}"));
    assert_eq!(format!("{error:?}"), format!("{why:?}"));
    assert_says(&in_full(&error), parts);
}

#[test]
fn options_out_of_their_range_are_refused() {
    let secret = secret();
    let mut rows = Vec::new();
    for capacity in [0, 3, 65_535, 1 << 31, usize::MAX] {
        let why = || BuildError::Ring(RingError::Capacity { capacity });
        rows.push((builder().capacity(capacity), why()));
        let waits = builder().on_empty(OnEmpty::Wait(SECOND));
        rows.push((waits.capacity(capacity).stripes(3), why()));
    }
    for percent in [0, 101, u32::MAX] {
        let why = BuildError::Policy(PolicyError::Percent { percent });
        let fill = ThresholdFill::percent(percent);
        rows.push((builder().threshold_fill(fill), why));
        let why = BuildError::Policy(PolicyError::Assist { percent });
        let fill = AssistFill::below(percent);
        rows.push((builder().assist_fill(fill), why));
    }
    for slots in [0, 65, usize::MAX] {
        let capacity = 64;
        let why = BuildError::Policy(PolicyError::Slots { slots, capacity });
        let fill = ThresholdFill::slots(slots);
        rows.push((builder().threshold_fill(fill), why));
    }
    for period in [Duration::ZERO, Duration::from_nanos(999_999)] {
        let why = BuildError::Policy(PolicyError::Period { period });
        let fill = ScheduledFill::every(period);
        rows.push((builder().scheduled_fill(fill), why));
    }
    let (max_age, tick) = (Duration::from_millis(999), SECOND);
    let why = BuildError::Policy(PolicyError::MaxAge { max_age, tick });
    let fill = ScheduledFill::every(SECOND).max_age(max_age);
    rows.push((builder().scheduled_fill(fill), why));
    for count in [0, 65, usize::MAX] {
        rows.push((builder().producers(count), BuildError::Producers { count }));
    }
    for (capacity, most, counts) in [
        (64, 64, [0, 3, 65, 128, usize::MAX]),
        (1 << 16, 64, [0, 6, 63, 128, usize::MAX]),
        (4, 4, [0, 3, 5, 8, 64]),
    ] {
        for count in counts {
            let why = BuildError::Stripes { count, most };
            rows.push((builder().capacity(capacity).stripes(count), why));
        }
    }
    for schedule in [None, Some(ScheduledFill::every(SECOND))] {
        let waits = builder().on_empty(OnEmpty::Wait(SECOND));
        let waits = waits.threshold_fill(None).scheduled_fill(schedule);
        rows.push((waits, BuildError::WaitWithoutThreshold));
    }
    for assist in [None, Some(AssistFill::below(10))] {
        rows.push((never_filled().assist_fill(assist), BuildError::NeverFilled));
    }
    let hooked = builder().on_full_hook(|_| ());
    rows.push((hooked, BuildError::FullHookWithoutSchedule));
    rows.push((builder().secret(&secret), BuildError::PlainAndSecret));
    for (builder, why) in rows {
        assert_refused(builder.check(), &why, &[]);
        assert_refused(builder.build(), &why, &[]);
    }
    let direct = DirectGenerator::builder(layout(40, 8, 8)).plain();
    let both = direct.secret(&secret).build();
    assert_refused(both, &BuildError::PlainAndSecret, &[]);
    let past = BackfillGenerator::builder(layout(40, 8, 8)).secret(&secret);
    assert_refused(past.plain().build(), &BuildError::PlainAndSecret, &[]);
}

fn never_filled() -> CachedGeneratorBuilder {
    builder()
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .on_empty(OnEmpty::Error)
}

#[test]
fn options_at_the_ends_of_their_range_build() {
    let every = ScheduledFill::every;
    for builder in [
        builder().assist_fill(AssistFill::below(1)),
        builder().assist_fill(AssistFill::below(100)),
        builder().assist_fill(None),
        builder().scheduled_fill(every(ScheduledFill::MIN_PERIOD).max_age(SECOND)),
        builder().scheduled_fill(every(Duration::MAX).max_age(Duration::MAX)),
        builder().producers(64),
        builder().on_empty(OnEmpty::Wait(SECOND)),
        builder().on_full_hook(|_| ()).scheduled_fill(every(SECOND)),
        // Each of these is enough to fill a ring, or needs none.
        never_filled().padding_fill(PaddingFill::BeforeFirstTake),
        never_filled().padding_fill(PaddingFill::InBackground),
        never_filled().threshold_fill(ThresholdFill::default()),
        never_filled().scheduled_fill(every(SECOND)),
        never_filled().on_empty(OnEmpty::Generate),
    ] {
        builder.build().unwrap();
    }
    for (fill, slots) in [
        (ThresholdFill::percent(1), 1),
        (ThresholdFill::percent(100), 64),
        (ThresholdFill::slots(1), 1),
        (ThresholdFill::slots(64), 64),
    ] {
        let ids = builder().threshold_fill(fill).build().unwrap();
        assert_eq!(ids.stats().threshold, slots);
    }
    for (capacity, stripes) in [(64, 1), (64, 64), (1 << 16, 64), (4, 2), (4, 4)] {
        let builder = builder().capacity(capacity).stripes(stripes);
        assert_eq!(builder.check().unwrap().stripes, stripes);
        let stats = builder.build().unwrap().stats();
        assert_eq!((stats.stripes, stats.capacity), (stripes, capacity));
    }
}

#[test]
fn a_check_says_whether_takes_use_core_stocks() {
    let large = || builder().capacity(1 << 22);
    let check = |builder: CachedGeneratorBuilder| builder.check().unwrap().core_stocks.unwrap();
    assert_eq!(check(large().stripes(1)), CoreStocks::OffForOrder);
    let aged = ScheduledFill::every(Duration::from_secs(5)).max_age(Duration::from_secs(60));
    assert_eq!(
        check(large().scheduled_fill(aged)),
        CoreStocks::OffForMaxAge
    );
    let ageless = ScheduledFill::every(Duration::from_secs(5));
    assert_eq!(check(large().scheduled_fill(ageless)), check(large()));
    if check(large()) != CoreStocks::InUse {
        return;
    }
    let CoreStocks::OffForCapacity { needed } = check(builder().capacity(64)) else {
        panic!("64 slots are too few");
    };
    assert_eq!(check(builder().capacity(needed)), CoreStocks::InUse);
    // A build does what the check says. A thread that is interrupted while it fills a stock leaves
    // it empty.
    let ids = builder().capacity(needed).stripes(2).borrow_limit(HOUR);
    let ids = ids.build().unwrap();
    eventually("a take fills a stock", || {
        ids.take().unwrap();
        ids.stats().in_stocks > 0
    });
}

#[test]
fn stripes_are_one_a_core_and_at_most_one_for_1024_slots() {
    let cores = thread::available_parallelism().unwrap().get();
    let most = cores
        .next_power_of_two()
        .min(CachedGeneratorBuilder::MAX_STRIPES);
    for (capacity, room) in [(1, 1), (1024, 1), (2048, 2), (4096, 4), (1 << 16, 64)] {
        let builder = builder().capacity(capacity);
        let expected = most.min(room);
        assert_eq!(builder.check().unwrap().stripes, expected);
        assert_eq!(builder.build().unwrap().stats().stripes, expected);
    }
}

/// A restart has to wait for what was borrowed, where nobody keeps a record of it.
#[test]
fn a_borrow_limit_that_a_restart_can_not_wait_for_is_refused() {
    const DAY: Duration = Duration::from_secs(86_400);
    let a_year = 365 * DAY;
    let layout = layout(40, 8, 8);
    let fixed = |limit| {
        let lease = StaticLease::assume_unique(layout, 100..101);
        builder_of(layout).lease(lease).borrow_limit(limit)
    };
    let why = BuildError::BorrowLimit {
        limit: a_year,
        max: DAY,
    };
    let parts = ["got 365 days", "at most 1 day", "lease_store"];
    assert_refused(fixed(a_year).check(), &why, &parts);
    assert_refused(fixed(a_year).build(), &why, &parts);
    let logical = DirectGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, 100..101))
        .clock_policy(ClockPolicy::Logical {
            at_most_ahead: a_year,
        });
    assert_refused(logical.check(), &why, &parts);
    assert_refused(logical.build(), &why, &parts);
    assert!(fixed(DAY).check().is_ok());
    // A lease that was granted has an end.
    assert!(builder().borrow_limit(Duration::MAX).check().is_ok());
    // A tick may be longer than a day.
    let long = Layout::builder()
        .bits(20, 8, 8)
        .tick(a_year)
        .build()
        .unwrap();
    let lease = StaticLease::assume_unique(long, 100..101);
    let builder = builder_of(long).lease(lease).borrow_limit(a_year);
    assert!(builder.check().is_ok());
}

/// By a clock that stands. Both generators have what is wrong with layout, cipher and lease
/// checked in one place.
fn build(
    layout: Layout,
    lease: impl Into<LeaseSource>,
    now_unix_ms: u64,
) -> Result<DirectGenerator, BuildError> {
    let builder = DirectGenerator::builder(layout).secret(secret_of_its_own());
    let builder = builder.clock(ManualClock::new(now_unix_ms));
    builder.lease(lease).build()
}

#[test]
fn a_build_without_a_cipher_or_a_lease_is_refused() {
    let layout = Layout::RANDFLAKE;
    let lease = StaticLease::assume_unique(layout, 0..1);
    let built = DirectGenerator::builder(layout).lease(lease).build();
    assert_refused(built, &BuildError::NoCipher, &["secret", "plain"]);
    let built = CachedGenerator::builder(layout).plain().build();
    assert_refused(built, &BuildError::NoLease, &["lease"]);
}

#[test]
fn a_layout_that_has_run_out_is_refused() {
    let layout = Layout::BAIDU;
    let end_unix_ms = layout.end_unix_ms();
    let build_at = |now_unix_ms| {
        let lease = lease(layout, 0..1, 0..layout.ticks());
        build(layout, lease, now_unix_ms)
    };
    build_at(end_unix_ms - 1).unwrap();
    assert!(build_at(end_unix_ms).is_err());
    let now_unix_ms = NOW_UNIX_MS;
    let why = BuildError::Layout(LayoutError::Expired {
        end_unix_ms,
        now_unix_ms,
    });
    let parts = ["2024-11-20T21:24:16Z", "2025-06-15T15:06:40Z"];
    assert_refused(build_at(now_unix_ms), &why, &parts);
    // By the system's clock, too.
    let expired = DirectGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, 0..1))
        .build();
    assert_matches!(expired, Err(BuildError::Layout(_)));
}

#[test]
fn a_lease_that_does_not_fit_its_layout_is_refused() {
    let layout = Layout::RANDFLAKE;
    let error_of = |nodes, now_unix_ms| {
        let lease = StaticLease::assume_unique(layout, nodes);
        build(layout, lease, now_unix_ms).unwrap_err()
    };
    let wide = error_of(0..131_073, NOW_UNIX_MS);
    assert_matches!(
        wide,
        BuildError::Lease(LeaseError::Nodes { end: 131_073, .. })
    );
    assert_says(&wide.to_string(), &["131073", "131072"]);
    let none = error_of(7..7, NOW_UNIX_MS);
    assert_says(&none.to_string(), &["7..7", "131072"]);
    let early = error_of(0..1, 1_729_999_999_999);
    let parts = ["2024-10-27T03:33:19.999Z", "2024-10-27T03:33:20Z"];
    assert_says(&early.to_string(), &parts);

    let (other, generator) = (Layout::TWITTER, layout);
    let built = build(layout, self::lease(other, 0..1, 0..9), NOW_UNIX_MS);
    let why = BuildError::LeaseLayout {
        lease: other,
        generator,
    };
    assert_refused(built, &why, &["41/10/12", "30/17/17"]);
}

#[test]
fn an_error_leaves_nothing_behind() {
    let layout = layout(40, 8, 8);
    let clock = Arc::new(clock_at(layout, 0));
    let builder = || builder_of(layout).clock(Arc::clone(&clock));
    assert!(builder().capacity(5).build().is_err());
    assert!(builder().producers(0).build().is_err());
    let foreign = lease(Layout::TWITTER, 0..1, 0..1);
    assert!(builder().lease(foreign).build().is_err());
    assert_eq!(Arc::strong_count(&clock), 1);
}

#[test]
fn a_threshold_is_exact_for_every_ring_that_can_be_made() {
    for capacity in (0..=30).map(|bits| 1_usize << bits) {
        for percent in 1..=100_u32 {
            let slots = ThresholdFill::percent(percent).in_slots(capacity).unwrap();
            let exact = (capacity as f64) * f64::from(percent) / 100.0;
            assert_eq!(slots, exact.ceil() as usize, "{percent} % of {capacity}");
        }
    }
    // The product of these two is where 32 bits end.
    assert_eq!(ThresholdFill::percent(50).in_slots(1 << 26), Ok(1 << 25));
    assert_eq!(ThresholdFill::percent(100).in_slots(1 << 30), Ok(1 << 30));
    let all = ThresholdFill::percent(100);
    assert_eq!(all.in_slots(usize::MAX), Ok(usize::MAX));
    assert_eq!(ThresholdFill::slots(1 << 30).in_slots(1 << 30), Ok(1 << 30));
    assert_eq!(ThresholdFill::default(), ThresholdFill::percent(50));
}

#[test]
fn the_defaults_are_those_of_the_docs() {
    let layout = Layout::RANDFLAKE;
    let ids = CachedGenerator::builder(layout)
        .secret(secret())
        .lease(StaticLease::assume_unique(layout, 5..8))
        .build()
        .unwrap();
    let stats = ids.stats();
    assert_eq!((stats.capacity, stats.level), (65_536, 65_536));
    assert_eq!(stats.threshold, 32_768);
    assert_eq!(stats.borrow_limit, Duration::from_secs(60));
    assert_eq!(stats.fills.padding, 1);
    assert_eq!(stats.lease_end_unix_ms, layout.end_unix_ms());
    assert_eq!(OnEmpty::default(), OnEmpty::Generate);
    assert_eq!(PaddingFill::default(), PaddingFill::BeforeFirstTake);
    let parts = ids.inspect(ids.take().unwrap()).unwrap();
    // The system's clock, and the first of the nodes.
    assert_eq!(parts.node, 5);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    let apart = now.abs_diff(Duration::from_millis(parts.unix_ms));
    assert!(apart < HOUR, "{apart:?}");
}

#[test]
fn the_secret_is_in_no_debug_output() {
    let layout = Layout::RANDFLAKE;
    let secret = Secret::from_bytes(*b"0123456789abcdef");
    let cached = CachedGenerator::builder(layout)
        .secret(&secret)
        .lease(lease(layout, 0..1, 0..layout.ticks()))
        .capacity(4);
    let direct = DirectGenerator::builder(layout)
        .secret(&secret)
        .lease(lease(layout, 1..2, 0..layout.ticks()));
    let mut shown = format!("{secret:?} {cached:?} {direct:?}");
    let (cached, direct) = (cached.build().unwrap(), direct.build().unwrap());
    let handle = cached.handle().unwrap();
    shown += &format!("{cached:?} {direct:?} {handle:?} {:?}", cached.inspector());
    for leak in ["0123456789abcdef", "30313233", "0x30, 0x31", "48, 49, 50"] {
        assert!(!shown.contains(leak), "{shown}");
    }
}

#[test]
fn a_static_lease_begins_when_the_generator_is_built() {
    let layout = layout(40, 8, 8);
    let ids = builder_of(layout)
        .lease(StaticLease::assume_unique(layout, 20..30))
        .clock(clock_at(layout, 123))
        .build()
        .unwrap();
    assert_eq!(ids.leases()[0].ticks(), 123..layout.ticks());
    let parts = ids.inspect(ids.take().unwrap()).unwrap();
    assert_eq!((parts.tick, parts.node), (123, 20));
}

#[test]
fn the_figures_are_what_happened() {
    let layout = layout(40, 8, 8);
    let clock = clock_at(layout, 0);
    let ids = builder_of(layout)
        .clock(clock.clone())
        .borrow_limit(SECOND)
        .threshold_fill(None)
        .build()
        .unwrap();
    let mut expected = ids.stats();
    let (it, fills) = (&expected, expected.fills);
    assert_eq!((it.level, it.capacity, it.threshold), (64, 64, 0));
    assert_eq!((it.issued, it.in_place, it.retired), (0, 0, 0));
    assert_eq!((it.refusals, it.panics, it.empties), (0, 0, 0));
    assert_eq!((fills.padding, fills.threshold, fills.scheduled), (1, 0, 0));
    assert_eq!(expected.borrowed, Duration::ZERO);
    assert_eq!(expected.borrow_limit, SECOND);
    assert_eq!(expected.lease_end_unix_ms, layout.tick_start_unix_ms(1_000));
    assert_eq!(expected.now_unix_ms, clock.unix_ms());

    ids.take().unwrap();
    ids.take_batch(&mut [Id::default(); 3]).unwrap();
    (expected.level, expected.issued) = (60, 4);
    assert_eq!(ids.stats(), expected);

    let mut handle = ids.handle().unwrap();
    handle.take().unwrap();
    // 60 from the ring, and a run of 32 in place, half of a ring, whose rest goes into it.
    (expected.level, expected.issued, expected.in_place) = (28, 68, 32);
    expected.empties = 1;
    assert_eq!(ids.stats(), expected);

    // The same once more: 28 from the ring, and 36 of two runs, since a claim ends where 64
    // sequences do. Of the 126 that go back, the ring has room for 36.
    let mut full = ids.handle().unwrap();
    full.take().unwrap();
    drop(full);
    drop(handle);
    (expected.level, expected.issued, expected.in_place) = (64, 68 + 64 - 126, 96);
    (expected.empties, expected.retired) = (2, 90);
    assert_eq!(ids.stats(), expected);

    // 2 nodes x 256 sequences: the clock's tick, and one that is borrowed.
    let mut rest = [Id::default(); 2_000];
    let count = ids.take_batch(&mut rest).unwrap() as u64;
    let made = 2 * 512;
    assert_eq!(expected.issued + count + expected.retired, made);
    (expected.level, expected.issued) = (0, expected.issued + count);
    (expected.in_place, expected.empties) = (made - 64, 3);
    expected.borrowed = SECOND;
    assert_eq!(ids.stats(), expected);

    clock.advance(Duration::from_secs(5));
    expected.borrowed = Duration::ZERO;
    expected.now_unix_ms += 5_000;
    assert_eq!(ids.stats(), expected);
}

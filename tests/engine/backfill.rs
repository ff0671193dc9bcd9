//! IDs of past moments: each inside of its lease, at its moment, and once.

use std::ops::Range;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use ringflake::{
    BackfillError, BackfillGenerator, BackfillGeneratorBuilder, BuildError, Id, IdWidth, Layout,
    LeaseError, StaticLease,
};
use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{cached, clock_at, direct, layout, lease, secret_of_its_own};
use ringflake_kit::{assert_matches, assert_says};

fn builder(layout: Layout, nodes: Range<u64>, ticks: Range<u64>) -> BackfillGeneratorBuilder {
    let lease = StaticLease::assume_unique_past(layout, nodes, ticks).unwrap();
    BackfillGenerator::builder(layout).lease(lease)
}

fn plain(layout: Layout, nodes: Range<u64>, ticks: Range<u64>) -> BackfillGenerator {
    builder(layout, nodes, ticks).plain().build().unwrap()
}

fn at(layout: &Layout, tick: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(layout.tick_start_unix_ms(tick))
}

/// Some of the moments of an import: a tick, milliseconds in it, and how many rows it has.
fn imports() -> impl Strategy<Value = Vec<(u64, u64, usize)>> {
    prop::collection::vec((0..20_u64, 0..1_000_u64, 0..70_usize), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// U1 and U2, against what is left of each tick.
    #[test]
    fn u1_each_id_is_of_its_moment_and_comes_once(
        imports in imports(),
        width in prop::sample::select(vec![None, Some(IdWidth::Full), Some(IdWidth::Positive)]),
    ) {
        const TICKS: Range<u64> = 100..118;
        const NODES: Range<u64> = 5..8;
        let layout = layout(40, 8, 6);
        let builder = builder(layout, NODES, TICKS);
        let builder = match width {
            None => builder.plain(),
            Some(width) => builder.secret(secret_of_its_own()).id_width(width),
        };
        let past = builder.build().unwrap();
        let oracle = Oracle::new(layout, NODES, TICKS);
        let mut left = [3 * 64; 18];
        for (offset, ms, rows) in imports {
            let tick = 99 + offset;
            let moment = at(&layout, tick) + Duration::from_millis(ms);
            let mut out = vec![Id::default(); rows];
            let took = past.take_batch_at(moment, &mut out);
            if !TICKS.contains(&tick) {
                let is_outside = matches!(took, Err(BackfillError::OutsideLease { .. }));
                prop_assert!(is_outside);
                continue;
            }
            let left = &mut left[(tick - 100) as usize];
            if *left == 0 && rows > 0 {
                let is_used_up = matches!(took, Err(BackfillError::UsedUp { .. }));
                prop_assert!(is_used_up);
                continue;
            }
            let expected = rows.min(*left);
            prop_assert_eq!(took, Ok(expected));
            *left -= expected;
            for &id in &out[..expected] {
                let parts = past.inspect(id).unwrap();
                prop_assert_eq!(parts.tick, tick);
                prop_assert!(width != Some(IdWidth::Positive) || id.to_i64() >= 0);
                prop_assert_eq!(oracle.mark(parts), Ok(()));
            }
            prop_assert!(out[expected..].iter().all(|id| *id == Id::default()));
        }
        let issued: usize = left.iter().map(|left| 3 * 64 - left).sum();
        prop_assert_eq!(oracle.marked(), issued as u64);
        let distinct = left.iter().filter(|&&left| left < 3 * 64).count();
        prop_assert_eq!(past.distinct_ticks(), distinct);
    }
}

#[test]
fn u1_threads_that_import_the_same_ticks_share_them_out() {
    const TICKS: Range<u64> = 1_000..1_010;
    const NODES: Range<u64> = 40..44;
    let layout = layout(40, 8, 9);
    let past = builder(layout, NODES, TICKS)
        .secret(secret_of_its_own())
        .build()
        .unwrap();
    let oracle = Oracle::new(layout, NODES, TICKS);
    thread::scope(|scope| {
        for number in 0..8_u64 {
            let past = past.clone();
            let oracle = &oracle;
            scope.spawn(move || {
                let mut used_up = 0;
                let mut out = [Id::default(); 48];
                // Each in an order of its own, one by one and in batches, until all is gone.
                for turn in number.. {
                    let tick = TICKS.start + turn * 7 % 10;
                    let most = if turn % 3 == 0 { 1 } else { 48 };
                    match past.take_batch_at(at(&layout, tick), &mut out[..most]) {
                        Ok(count) => {
                            used_up = 0;
                            for &id in &out[..count] {
                                oracle.mark(past.inspect(id).unwrap()).unwrap();
                            }
                        }
                        Err(BackfillError::UsedUp { .. }) => used_up += 1,
                        Err(error) => panic!("{error}"),
                    }
                    if used_up == 10 {
                        break;
                    }
                }
            });
        }
    });
    // All of it, each once.
    assert_eq!(oracle.marked(), 10 * 4 * 512);
    assert_eq!(past.distinct_ticks(), 10);
}

#[test]
fn a_moment_outside_of_the_lease_is_refused_with_its_limits() {
    let layout = Layout::BAIDU;
    let past = plain(layout, 900..901, 86_400..172_800);
    let [start, end] = [86_400, 172_800].map(|tick| at(&layout, tick));
    let nano = Duration::from_nanos(1);
    assert!(past.take_at(start).is_ok());
    assert!(past.take_at(end - nano).is_ok());
    for (moment, named) in [
        (start - nano, "2016-05-20T23:59:59.999Z"),
        (end, "2016-05-22T00:00:00Z"),
        (UNIX_EPOCH, "1970-01-01T00:00:00Z"),
        (UNIX_EPOCH - nano, "a moment before 1970"),
    ] {
        let error = past.take_at(moment).unwrap_err();
        assert_eq!(
            error,
            BackfillError::OutsideLease {
                moment,
                start_unix_ms: layout.tick_start_unix_ms(86_400),
                end_unix_ms: layout.tick_start_unix_ms(172_800),
            }
        );
        let said = ["from 2016-05-21T00:00:00Z to 2016-05-22T00:00:00Z", named];
        assert_says(&error.to_string(), &said);
        // Asking for nothing is refused as well, so that a mistake shows.
        assert_eq!(past.take_batch_at(moment, &mut []), Err(error));
    }
    assert_eq!(past.distinct_ticks(), 2);
}

#[test]
fn a_tick_that_is_used_up_is_refused_and_the_others_go_on() {
    let layout = layout(40, 8, 4);
    let past = plain(layout, 3..5, 10..12);
    let mut out = [Id::default(); 100];
    let moment = at(&layout, 10);
    assert_eq!(past.take_batch_at(moment, &mut out), Ok(32));
    // Node after node, from the first sequence on.
    let numbers: Vec<_> = out[..32].iter().map(|id| id.to_u64()).collect();
    let first = layout.pack(10, 3, 0).unwrap();
    assert_eq!(numbers, (first..first + 32).collect::<Vec<_>>());
    let error = past
        .take_at(moment + Duration::from_millis(999))
        .unwrap_err();
    assert_eq!(
        error,
        BackfillError::UsedUp {
            tick_unix_ms: layout.tick_start_unix_ms(10),
            tick_ms: 1_000,
            ids: 32,
            nodes: 3..5,
        }
    );
    assert_says(
        &error.to_string(),
        &["all 32 IDs", "nodes 3..5", "more nodes"],
    );
    assert_eq!(past.take_batch_at(moment, &mut []), Ok(0));
    assert!(past.take_at(at(&layout, 11)).is_ok());
}

fn is_taken(error: &BuildError) -> bool {
    matches!(error, BuildError::LeaseTaken { .. })
}

fn is_used(error: &BuildError) -> bool {
    matches!(error, BuildError::LeaseUsed { .. })
}

#[test]
fn no_other_generator_has_its_nodes_and_ticks() {
    let layout = layout(40, 8, 8);
    let key = secret_of_its_own();
    let past = builder(layout, 10..20, 100..200).secret(&key);
    let past = past.build().unwrap();
    let again = builder(layout, 19..30, 0..101).secret(&key).build();
    assert!(is_taken(&again.unwrap_err()));
    let cached = cached(layout, 0..11, 199..300).secret(&key).build();
    assert!(is_taken(&cached.unwrap_err()));
    let direct = |nodes, ticks| direct(layout, nodes, ticks).secret(&key).build();
    assert!(is_taken(&direct(15..16, 150..151).unwrap_err()));
    // The present of the same nodes, and the past of others, are not in the way.
    assert!(direct(10..20, 200..300).is_ok());
    assert!(direct(20..30, 100..200).is_ok());
    let other_key = builder(layout, 10..20, 100..200).secret(secret_of_its_own());
    assert!(other_key.build().is_ok());
    drop(past);
    // Nothing was issued, so nothing is lost.
    assert!(direct(15..16, 150..151).is_ok());
}

#[test]
fn what_a_generator_had_is_used_as_a_whole_once_it_is_gone() {
    let layout = layout(40, 8, 8);
    let ticks = 100..200;
    let kept = StaticLease::assume_unique_past(layout, 50..52, ticks.clone()).unwrap();
    let build = || {
        let builder = BackfillGenerator::builder(layout).plain();
        builder.lease(kept.clone()).build()
    };
    let past = build().unwrap();
    // A clone is the same generator.
    let clone = past.clone();
    past.take_at(at(&layout, 150)).unwrap();
    drop(past);
    assert!(is_taken(&build().unwrap_err()));
    clone.take_at(at(&layout, 150)).unwrap();
    drop(clone);
    // The counts are gone. The very lease is refused, another one over them, and a part.
    assert!(is_used(&build().unwrap_err()));
    let again = builder(layout, 50..52, ticks).plain().build();
    assert!(is_used(&again.unwrap_err()));
    let part = builder(layout, 51..52, 199..200).plain().build();
    assert!(is_used(&part.unwrap_err()));
    // Other nodes and later ticks are another run's.
    assert!(builder(layout, 52..54, 100..200).plain().build().is_ok());
    assert!(builder(layout, 50..52, 200..300).plain().build().is_ok());
}

#[test]
fn what_another_generator_used_is_left_out_to_the_tick() {
    let layout = layout(40, 8, 8);
    let key = secret_of_its_own();
    let kept = lease(layout, 60..61, 100..103);
    let ids = ringflake::DirectGenerator::builder(layout)
        .secret(&key)
        .clock(clock_at(layout, 101))
        .lease(kept.clone())
        .build()
        .unwrap();
    ids.take().unwrap();
    drop(ids);
    // The same lease, which knows how far it was claimed: to within tick 101.
    let past = BackfillGenerator::builder(layout).secret(&key);
    let past = past.lease(kept).build().unwrap();
    assert_eq!(past.lease().ticks(), 102..103);
    for tick in [100, 101] {
        let error = past.take_at(at(&layout, tick)).unwrap_err();
        assert_matches!(error, BackfillError::OutsideLease { .. });
    }
    assert!(past.take_at(at(&layout, 102)).is_ok());
}

#[test]
fn a_backfill_that_can_not_be_is_refused_when_it_is_built() {
    let layout = layout(40, 8, 8);
    let error = BackfillGenerator::builder(layout).plain().build();
    assert_matches!(error, Err(BuildError::NoLease));
    let error = builder(layout, 70..71, 0..9).build();
    assert_matches!(error, Err(BuildError::NoCipher));
    let other = self::layout(40, 8, 7);
    let lease = StaticLease::assume_unique_past(other, 70..71, 0..9).unwrap();
    let error = BackfillGenerator::builder(layout)
        .plain()
        .lease(lease)
        .build();
    assert_matches!(error, Err(BuildError::LeaseLayout { .. }));
    let narrow = builder(Layout::JS_SAFE, 70..71, 0..9).secret(secret_of_its_own());
    let error = narrow.build();
    assert_matches!(error, Err(BuildError::EncryptionWidens { bits: 53, .. }));
    let wide = builder(Layout::RANDFLAKE, 70..71, 0..9).secret(secret_of_its_own());
    let error = wide.id_width(IdWidth::Positive).build();
    assert_matches!(error, Err(BuildError::LayoutTooWide { .. }));
    // A layout that has ended has a past all the same.
    assert!(builder(Layout::BAIDU, 70..71, 0..9).plain().build().is_ok());

    let past = |nodes, ticks| StaticLease::assume_unique_past(layout, nodes, ticks);
    assert_matches!(past(5..5, 0..9), Err(LeaseError::Nodes { .. }));
    assert_matches!(past(5..257, 0..9), Err(LeaseError::Nodes { .. }));
    assert_matches!(past(5..6, 9..9), Err(LeaseError::Ticks { .. }));
    let beyond = past(5..6, 9..layout.ticks() + 1);
    assert_matches!(beyond, Err(LeaseError::Ticks { .. }));
}

#[test]
fn a_lease_that_reaches_into_the_present_is_refused() {
    let layout = layout(44, 8, 4);
    let now = SystemTime::now();
    let tick = layout.tick_of(now).unwrap();
    let build = |ticks| {
        let lease = StaticLease::assume_unique_past(layout, 0..1, ticks).unwrap();
        BackfillGenerator::builder(layout)
            .secret(secret_of_its_own())
            .lease(lease)
            .build()
    };
    // The tick that runs, and one that may begin while this test does.
    for end in [tick + 1, tick + 1_000] {
        let error = build(tick - 10..end + 60).unwrap_err();
        assert_matches!(error, BuildError::LeaseNotPast { end_unix_ms, .. }
            if *end_unix_ms == layout.tick_start_unix_ms(end + 60));
        assert!(error.to_string().contains("not past"), "{error}");
    }
    build(tick - 10..tick).unwrap();
}

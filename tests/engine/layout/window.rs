//! Windows of time, beside the time that `unpack` finds.

use std::ops::Bound;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use ringflake::{Id, Layout};

use super::{PRESETS, below, layouts};

fn at(unix_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_ms)
}

type Edge = Bound<SystemTime>;

/// An edge at a tick's start, a nanosecond beside it, within a tick, or before 1970.
fn edges(layout: Layout) -> impl Strategy<Value = Edge> {
    let parts = (below(layout.ticks() + 1), 0..layout.tick_ms(), 0..5_u32);
    let moment = parts.prop_map(move |(tick, ms, kind)| {
        let start = at(layout.tick_start_unix_ms(tick));
        match kind {
            0 => start,
            1 => start + Duration::from_nanos(1),
            2 => start - Duration::from_nanos(1),
            3 => start + Duration::from_millis(ms),
            _ => UNIX_EPOCH - Duration::from_millis(ms),
        }
    });
    (moment, 0..9_u32).prop_map(|(moment, kind)| match kind {
        0 => Bound::Unbounded,
        1..5 => Bound::Included(moment),
        _ => Bound::Excluded(moment),
    })
}

fn layouts_with_edges() -> impl Strategy<Value = (Layout, Edge, Edge)> {
    layouts().prop_flat_map(|layout| (Just(layout), edges(layout), edges(layout)))
}

fn contains(layout: &Layout, window: (Edge, Edge), id: Id) -> bool {
    layout
        .ids_between(window)
        .is_some_and(|ids| ids.contains(&id))
}

/// `RangeBounds::contains` for reversed bounds too, which hold nothing.
fn holds((from, to): (Edge, Edge), time: SystemTime) -> bool {
    let begun = match from {
        Bound::Unbounded => true,
        Bound::Included(from) => from <= time,
        Bound::Excluded(from) => from < time,
    };
    let ended = match to {
        Bound::Unbounded => false,
        Bound::Included(to) => to < time,
        Bound::Excluded(to) => to <= time,
    };
    begun && !ended
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn an_id_is_in_exactly_if_its_tick_begins_in_the_window(
        (layout, from, to) in layouts_with_edges(),
        picks: [u64; 3],
    ) {
        let mut ticks = vec![0, layout.ticks() - 1, picks[0] % layout.ticks()];
        // Both sides of each edge are the ticks that matter.
        for edge in [from, to] {
            if let Bound::Included(moment) | Bound::Excluded(moment) = edge {
                let tick = layout.tick_of(moment).unwrap_or(0);
                let beside = [tick.saturating_sub(1), tick, tick.saturating_add(1)];
                ticks.extend(beside.into_iter().filter(|&tick| tick < layout.ticks()));
            }
        }
        let nodes = [0, layout.nodes() - 1, picks[1] % layout.nodes()];
        let sequences = [0, layout.sequences() - 1, picks[2] % layout.sequences()];
        for tick in ticks {
            for (node, sequence) in nodes.into_iter().zip(sequences) {
                let raw = layout.pack(tick, node, sequence).unwrap();
                let time = at(layout.unpack(raw).unwrap().unix_ms);
                let is_in = contains(&layout, (from, to), Id::from_u64(raw));
                prop_assert_eq!(is_in, holds((from, to), time), "{} {:?}", layout, time);
            }
        }
    }

    #[test]
    fn the_tick_of_a_moment_is_that_of_its_millisecond(layout in layouts(), ms: u64, nanos in 0..1_000_000_u64) {
        let moment = at(ms) + Duration::from_nanos(nanos);
        prop_assert_eq!(layout.tick_of(moment), layout.tick_at(ms));
    }
}

#[test]
fn a_window_outside_of_the_life_or_reversed_is_none() {
    let layout = Layout::BAIDU_2026;
    let [epoch, end] = [layout.epoch_unix_ms(), layout.end_unix_ms()].map(at);
    let nano = Duration::from_nanos(1);
    assert_eq!(layout.tick_of(epoch), Some(0));
    assert_eq!(layout.tick_of(epoch - nano), None);
    assert_eq!(layout.ids_between(..epoch), None);
    assert_eq!(layout.ids_between(end..), None);
    assert_eq!(layout.ids_between(epoch..epoch), None);
    assert_eq!(layout.ids_between(end..epoch), None);
    // No tick begins between two.
    assert_eq!(
        layout.ids_between(epoch + nano..epoch + Duration::from_secs(1)),
        None
    );
    let all = Id::from_u64(0)..=Id::from_u64(i64::MAX as u64);
    assert_eq!(layout.ids_between(..), Some(all.clone()));
    assert_eq!(layout.ids_between(UNIX_EPOCH..end + nano), Some(all));
    let first = Id::from_u64(0)..=Id::from_u64((1 << 35) - 1);
    assert_eq!(layout.ids_between(..=epoch), Some(first));
}

#[test]
fn presets_of_63_bits_sort_by_time_as_signed_numbers() {
    let mut wide = Vec::new();
    for (layout, described) in PRESETS {
        let all = layout.ids_between(..).unwrap();
        let is_sorted = all.start().to_i64() < all.end().to_i64();
        assert_eq!(is_sorted, layout.total_bits() <= 63, "{described}");
        if !is_sorted {
            wide.push(layout.name().unwrap());
        }
    }
    assert_eq!(wide, ["randflake", "region-type-machine"]);
    // Half-way, as the docs say.
    for layout in [Layout::RANDFLAKE, Layout::REGION_TYPE_MACHINE] {
        let half = at(layout.tick_start_unix_ms(layout.ticks() / 2));
        let negative = layout.ids_between(half..).unwrap();
        assert_eq!(negative.start().to_i64(), i64::MIN);
        let positive = layout.ids_between(..half).unwrap();
        assert_eq!(positive.end().to_i64(), i64::MAX);
        // 2041-10-31T22:21:52Z.
        assert_eq!(half, at(2_266_870_912_000));
    }
}

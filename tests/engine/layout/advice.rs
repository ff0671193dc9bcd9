//! Advised layouts, beside what was asked of them.

use std::time::Duration;

use proptest::prelude::*;
use ringflake::{AdviceError, AdvisedLayout, Layout, LayoutError, LayoutField, LayoutNeeds};
use ringflake_kit::assert_says;

/// 2016-05-20T00:00:00Z, the epoch of Baidu's guide.
const EPOCH_UNIX_MS: u64 = 1_463_702_400_000;
const YEAR_MS: u128 = 31_557_600_000;

/// The request, in numbers that the tests can read.
#[derive(Clone, Debug)]
struct Asked {
    years: u32,
    nodes: u64,
    /// Tenths of restarts a day.
    restarts: u32,
    disposable: bool,
    rate: u64,
    burst: u64,
    capacity: u64,
    borrow: u64,
    lease: u64,
    tick: Option<u64>,
}

impl Asked {
    fn needs(&self) -> LayoutNeeds {
        let needs = LayoutNeeds::new(EPOCH_UNIX_MS)
            .years(self.years)
            .nodes(self.nodes)
            .restarts_per_day(f64::from(self.restarts) / 10.0)
            .rate(self.rate)
            .burst(self.burst)
            .capacity(self.capacity)
            .borrow_limit(Duration::from_secs(self.borrow))
            .lease_duration(Duration::from_secs(self.lease));
        let needs = match self.tick {
            Some(tick) => needs.tick(Duration::from_millis(tick)),
            None => needs,
        };
        if self.disposable {
            needs.disposable_nodes()
        } else {
            needs
        }
    }

    /// In whole numbers, otherwise than the library does it.
    fn node_numbers(&self) -> u128 {
        let [nodes, restarts] = [u128::from(self.nodes), u128::from(self.restarts)];
        if self.disposable {
            // 36,525 days are a hundred years.
            nodes + (nodes * restarts * 36_525 * u128::from(self.years)).div_ceil(1_000)
        } else {
            nodes + nodes * (restarts * u128::from(self.lease)).div_ceil(864_000)
        }
    }

    /// Whether fields of these widths are good for it.
    fn is_met_by(&self, [time, node, sequence]: [u32; 3], tick_ms: u64) -> bool {
        let [ticks, numbers, sequences] = [time, node, sequence].map(|bits| 1_u128 << bits);
        let nodes = u128::from(self.nodes);
        let borrowed = u128::from(self.borrow * 1_000 / tick_ms);
        ticks * u128::from(tick_ms) >= u128::from(self.years) * YEAR_MS
            && numbers >= self.node_numbers()
            && sequences * nodes * 1_000 >= u128::from(self.rate) * u128::from(tick_ms)
            && (u128::from(self.capacity) + sequences * borrowed) * nodes >= u128::from(self.burst)
    }

    /// Whether any division of `width` bits is good for it.
    fn can_be_met(&self, width: u32) -> bool {
        let ticks = match self.tick {
            Some(tick) => vec![tick],
            None => vec![1_000, 100, 10, 1],
        };
        ticks.into_iter().any(|tick_ms| {
            (1..width - 1).any(|time| {
                (1..width - time)
                    .any(|node| self.is_met_by([time, node, width - time - node], tick_ms))
            })
        })
    }
}

/// A number of any size up to this.
fn up_to(most: u64) -> impl Strategy<Value = u64> {
    (0..=most.ilog2(), any::<u64>()).prop_map(move |(bits, number)| {
        let low = (1 << bits) - 1;
        ((1 << bits) | (number & low)).min(most)
    })
}

fn asked() -> impl Strategy<Value = Asked> {
    let life = (up_to(1_000), up_to(1 << 20), 0..3_000_u32, any::<bool>());
    let load = (
        up_to(1_000_000_000_000),
        up_to(1_000_000_000_000_000),
        up_to(1 << 24),
        0..300_u64,
        1..4_000_u64,
    );
    let tick = prop_oneof![Just(None), up_to(10_000).prop_map(Some)];
    (life, load, tick).prop_map(|(life, load, tick)| Asked {
        years: life.0 as u32,
        nodes: life.1,
        restarts: life.2,
        disposable: life.3,
        rate: load.0,
        burst: load.1,
        capacity: load.2,
        borrow: load.3,
        lease: load.4,
        tick,
    })
}

/// Loads that are small, so that most are met in 53 bits, too.
fn modest() -> impl Strategy<Value = Asked> {
    asked().prop_map(|asked| Asked {
        years: asked.years.min(40),
        nodes: asked.nodes % 64 + 1,
        restarts: asked.restarts % 8,
        rate: asked.rate % 100_000 + 1,
        burst: asked.burst % 1_000_000,
        ..asked
    })
}

fn widths(layout: Layout) -> [u32; 3] {
    [
        layout.time_bits(),
        layout.node_bits(),
        layout.sequence_bits(),
    ]
}

fn assert_meets(asked: &Asked, advised: &AdvisedLayout, width: u32) {
    let layout = advised.layout();
    assert_eq!(layout.total_bits(), width, "{layout}");
    assert_eq!(layout.epoch_unix_ms(), EPOCH_UNIX_MS);
    assert!(asked.tick.is_none_or(|tick| tick == layout.tick_ms()));
    assert!(
        asked.is_met_by(widths(layout), layout.tick_ms()),
        "{layout}"
    );
    let exact = asked.node_numbers();
    let rounded = exact..=exact + u128::from(asked.disposable);
    assert!(rounded.contains(&advised.nodes_needed().into()), "{layout}");
    assert!(advised.sustained() >= asked.rate as f64, "{layout}");
    assert!(advised.burst() >= asked.burst, "{layout}");
    for field in [LayoutField::Time, LayoutField::Node, LayoutField::Sequence] {
        assert!(advised.headroom(field) >= 1.0, "{field}");
        assert!(
            advised.headroom(field) >= advised.headroom(advised.binds()),
            "{field}"
        );
    }
    // Life is not heaped up where others could use the bits.
    let time = advised.headroom(LayoutField::Time);
    assert!(
        time < 4.0 || layout.time_bits() == 1,
        "{layout} lives {time} times as long"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_advised_layout_is_valid_and_meets_what_was_asked(
        asked in prop_oneof![asked(), modest()],
    ) {
        match Layout::advise(&asked.needs()) {
            Ok(advice) => {
                assert_meets(&asked, advice.best(), 64);
                prop_assert_eq!(advice.alternatives().len(), 2);
                for (width, alternative) in [63, 53].into_iter().zip(advice.alternatives()) {
                    match alternative {
                        Ok(advised) => assert_meets(&asked, advised, width),
                        Err(shortage) => {
                            prop_assert_eq!(shortage.bits, width);
                            prop_assert!(!asked.can_be_met(width), "{}", shortage);
                        }
                    }
                }
            }
            Err(AdviceError::TooNarrow(shortage)) => {
                prop_assert_eq!(shortage.bits, 64);
                prop_assert!(!asked.can_be_met(64), "{}", shortage);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    /// The largest number that fits does, and the next one does not.
    #[test]
    fn what_a_refusal_says_would_fit_fits(asked in asked()) {
        let Err(AdviceError::TooNarrow(short)) = Layout::advise(&asked.needs()) else {
            return Ok(());
        };
        // That is about one length of ticks.
        let asked = Asked { tick: Some(short.tick_ms), ..asked };
        if let Some(years) = short.years_that_fit {
            let with = |years: u64| Asked { years: years as u32, ..asked.clone() };
            // Fewer years need fewer numbers, too, where they are disposable.
            prop_assert!(with(years).can_be_met(64));
            prop_assert!(asked.disposable || !with(years + 1).can_be_met(64));
        }
        if let Some(rate) = short.rate_that_fits.filter(|&rate| rate > 0) {
            let burst = short.burst_that_fits.unwrap();
            let can = |rate, burst| {
                let asked = Asked { rate, burst, ..asked.clone() };
                asked.can_be_met(64)
            };
            prop_assert!(can(rate, burst));
            prop_assert!(!can(rate + 1, 0));
            prop_assert!(!can(1, burst + 1));
        }
        if let Some(numbers) = short.node_numbers_that_fit {
            let tenths = (short.restarts_that_fit.unwrap() * 10.0 - 1e-6).max(0.0) as u32;
            let fewer = Asked { restarts: tenths, ..asked.clone() };
            prop_assert!(fewer.can_be_met(64), "{numbers} numbers, {tenths} tenths");
        }
    }
}

/// Needs that are Baidu's, in 63 bits, where restarted nodes get new numbers.
fn baidus(years: u32, nodes: u64, restarts: u32, rate: u64) -> [u32; 3] {
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS)
        .years(years)
        .nodes(nodes)
        .restarts_per_day(restarts.into())
        .disposable_nodes()
        .rate(rate);
    let advice = Layout::advise(&needs).unwrap();
    widths(advice.alternatives()[0].as_ref().unwrap().layout())
}

/// "the average reboot frequency is 12 per node per day, [...] one project can run for 68
/// years with 28 nodes and entirely concurrency 14400 UID/s", which it rounds: 28 nodes of
/// 512 a second have 14,336. <https://github.com/baidu/uid-generator#tips>
#[test]
fn baidus_low_rate_for_68_years_is_31_23_9() {
    assert_eq!(baidus(68, 28, 12, 14_336), [31, 23, 9]);
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS)
        .years(68)
        .nodes(28)
        .rate(14_400);
    let needs = needs.restarts_per_day(12.0).disposable_nodes();
    let advice = Layout::advise(&needs).unwrap();
    let short = advice.alternatives()[0].as_ref().unwrap_err();
    assert_eq!(short.needed, [31, 23, 10]);
    assert_eq!(short.node_numbers, 28 + 8_345_232);
    assert_eq!(short.rate_that_fits, Some(14_336));
    // With leases a bit or two of it all is for the nodes.
    let leased = Layout::advise(
        &LayoutNeeds::new(EPOCH_UNIX_MS)
            .years(68)
            .nodes(28)
            .rate(14_400),
    );
    let leased = leased.unwrap();
    let leased = leased.alternatives()[0].as_ref().unwrap();
    assert_eq!(leased.nodes_needed(), 28);
    assert!(leased.headroom(LayoutField::Sequence) > 100.0);
}

/// "the average reboot frequency is 24 * 12 per node per day, [...] one project can run for
/// 34 years with 37 nodes and entirely concurrency 2400 UID/s": 37 nodes of 64 have 2,368.
#[test]
fn baidus_frequent_restarts_for_34_years_are_30_27_6() {
    assert_eq!(baidus(34, 37, 24 * 12, 37 * 64), [30, 27, 6]);
}

/// Its defaults: "The maximum time will be 8.7 years", of which 2^28 seconds are 8.5; 4.2
/// million numbers; 8,192 a second.
#[test]
fn baidus_defaults_are_4_2_million_starts_and_8192_a_second() {
    // 1,435 starts a day use 4.19 million up in 8 years.
    assert_eq!(baidus(8, 35, 41, 35 * 8_192 - 1), [28, 22, 13]);
    let layout = Layout::BAIDU_2026;
    let life = layout.end_unix_ms() - layout.epoch_unix_ms();
    assert_eq!(u128::from(life) * 10 / YEAR_MS, 85);
    assert_eq!(layout.nodes(), 4_194_304);
    assert_eq!(layout.sequences(), 8_192);
}

#[test]
fn a_shorter_tick_is_chosen_where_a_second_does_not_fit() {
    // 69 years are more than 2^31 s and less than 2^41 ms; 64 bits have a bit for that.
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS)
        .years(69)
        .nodes(1 << 20)
        .rate((1 << 20) * 1_000);
    let advice = Layout::advise(&needs).unwrap();
    assert_eq!(advice.best().layout().tick_ms(), 1_000);
    let needs = needs.rate((1 << 20) * 4_000).tick(Duration::from_millis(1));
    let advice = Layout::advise(&needs).unwrap();
    assert_eq!(widths(advice.best().layout()), [41, 20, 3]);
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS)
        .years(69)
        .nodes(1 << 20)
        .rate((1 << 20) * 8_000);
    let advice = Layout::advise(&needs).unwrap();
    assert_eq!(advice.best().layout().tick_ms(), 1);
    assert_eq!(widths(advice.best().layout()), [41, 20, 3]);
    assert_eq!(advice.best().sustained_per_node(), 8_000.0);
}

#[test]
fn what_a_second_brings_depends_on_the_tick() {
    for (tick_ms, ticks_a_second) in [(1_000, 1.0), (100, 10.0), (2_000, 0.5)] {
        let needs = LayoutNeeds::new(EPOCH_UNIX_MS).nodes(4);
        let advice = Layout::advise(&needs.tick(Duration::from_millis(tick_ms))).unwrap();
        let best = advice.best();
        let sustained = best.layout().sequences() as f64 * ticks_a_second;
        assert_eq!(best.sustained_per_node(), sustained, "{tick_ms} ms");
        assert_eq!(best.sustained(), 4.0 * sustained, "{tick_ms} ms");
    }
}

#[test]
fn bits_to_spare_go_where_there_is_least_room() {
    // Ten years in seconds have a headroom of 1.7 in 29 bits, and 2 is enough. What is left
    // is for the other two in turns, sequences first.
    let advice = Layout::advise(&LayoutNeeds::new(EPOCH_UNIX_MS)).unwrap();
    assert_eq!(widths(advice.best().layout()), [30, 17, 17]);
    let narrower = advice.alternatives()[0].as_ref().unwrap();
    assert_eq!(widths(narrower.layout()), [30, 16, 17]);

    // A life of just 512 such ticks has a headroom of 1, and then of 2.
    let tick = Duration::from_secs(61_700);
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS).years(1).tick(tick);
    let advice = Layout::advise(&needs).unwrap();
    assert_eq!(advice.best().headroom(LayoutField::Time), 2.0);

    // Time comes before nodes where both have none, and there is one bit to spare.
    let needs = needs.nodes(1 << 32).rate(200_000_000_000);
    let advice = Layout::advise(&needs).unwrap();
    assert_eq!(widths(advice.best().layout()), [10, 32, 22]);
    // Also where there is none.
    let advice = Layout::advise(&needs.rate(400_000_000_000)).unwrap();
    assert_eq!(widths(advice.best().layout()), [9, 32, 23]);
    assert_eq!(advice.best().binds(), LayoutField::Time);
}

#[test]
fn a_node_that_starts_again_needs_the_numbers_that_wait() {
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS)
        .nodes(10)
        .lease_duration(Duration::from_secs(3_600));
    for (restarts, numbers) in [(0.0, 10), (24.0, 20), (25.0, 30), (48.0, 30)] {
        let advice = Layout::advise(&needs.restarts_per_day(restarts)).unwrap();
        assert_eq!(advice.best().nodes_needed(), numbers, "{restarts} restarts");
    }
}

#[test]
fn a_refusal_says_how_many_restarts_the_leases_allow() {
    // 30 years are 30 bits, 400 IDs a tick 9, and so 25 are left: 32 numbers for each node,
    // of which 31 can wait for the end of their leases of half an hour.
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS)
        .years(30)
        .nodes(1 << 20)
        .rate((1 << 20) * 400)
        .tick(Duration::from_secs(1))
        .lease_duration(Duration::from_secs(1_800));
    let error = Layout::advise(&needs.restarts_per_day(2_000.0)).unwrap_err();
    let AdviceError::TooNarrow(short) = error else {
        panic!("{error}");
    };
    assert_eq!(short.needed, [30, 26, 9]);
    assert_eq!(short.node_numbers_that_fit, Some(1 << 25));
    assert_eq!(short.restarts_that_fit, Some(1_488.0));
    assert!(Layout::advise(&needs.restarts_per_day(1_488.0)).is_ok());
}

#[test]
fn a_burst_comes_from_the_ring_and_the_borrow_limit() {
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS)
        .capacity(1_000)
        .borrow_limit(Duration::from_millis(2_999))
        .nodes(2)
        .tick(Duration::from_secs(1));
    let needs = needs.burst(2 * (1_000 + 2 * 256));
    let advised = *Layout::advise(&needs).unwrap().best();
    let sequences = advised.layout().sequences();
    assert_eq!(advised.burst_per_node(), 1_000 + 2 * sequences);
    assert_eq!(advised.burst(), 2 * (1_000 + 2 * sequences));
    assert_eq!(
        advised.headroom(LayoutField::Sequence),
        sequences as f64 / 256.0
    );
    // Without borrowing there is the ring alone.
    let needs = needs.borrow_limit(Duration::from_millis(999));
    let Err(AdviceError::TooNarrow(short)) = Layout::advise(&needs) else {
        panic!("nothing can be borrowed");
    };
    assert_eq!(short.sequences, u128::MAX);
    assert_says(&short.to_string(), &["shorter than the tick of 1000 ms"]);
    assert!(Layout::advise(&needs.burst(2_000)).is_ok());
}

#[test]
fn a_refusal_says_what_each_need_would_have_to_be() {
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS)
        .years(30)
        .nodes(500)
        .rate(200_000);
    let needs = needs.restarts_per_day(20.0).disposable_nodes();
    let error = Layout::advise(&needs).unwrap_err();
    assert_eq!(
        error.to_string(),
        "64 bits are not enough: with ticks of 1000 ms 30 years need 30, 109,575,500 node \
         numbers need 27, and 400 IDs a node and tick need 9, in all 66; one of these would do: \
         at most 8 years, or 33,554,432 node numbers, which are 6.12 restarts a day, or 64,000 \
         IDs/s and bursts of 36,608,000 on all nodes, or leases, by which node numbers are reused"
    );
}

#[test]
fn a_need_out_of_range_is_refused_with_the_range() {
    let needs = LayoutNeeds::new(EPOCH_UNIX_MS);
    let long = Duration::from_secs(31_557_601);
    for (needs, said) in [
        (needs.years(0), "0 years can't be asked for: give 1 to 1000"),
        (needs.years(1_001), "give 1 to 1000"),
        (needs.nodes(0), "0 nodes"),
        (needs.nodes((1 << 32) + 1), "give 1 to 4294967296"),
        (needs.restarts_per_day(f64::NAN), "NaN restarts a day"),
        (needs.restarts_per_day(-1.0), "give 0 to 1000000"),
        (needs.restarts_per_day(f64::INFINITY), "inf restarts"),
        (needs.rate(0), "give 1 to 1000000000000"),
        (needs.rate(u64::MAX), "IDs a second"),
        (needs.burst(u64::MAX), "IDs of a burst"),
        (needs.capacity(u64::MAX), "slots"),
        (needs.borrow_limit(long), "seconds of the borrow limit"),
        (needs.lease_duration(long), "seconds of a lease"),
        (
            needs.tick(Duration::from_secs(86_401)),
            "give 0.001 to 86400",
        ),
        (
            needs.tick(Duration::from_secs(u64::MAX)),
            "seconds of a tick",
        ),
    ] {
        let error = Layout::advise(&needs).unwrap_err();
        assert!(matches!(error, AdviceError::OutOfRange { .. }), "{error}");
        assert_says(&error.to_string(), &[said]);
    }
    for tick in [Duration::ZERO, Duration::from_micros(1_500)] {
        let error = Layout::advise(&needs.tick(tick)).unwrap_err();
        assert_eq!(error, AdviceError::Layout(LayoutError::Tick { tick }));
    }
    let late = Layout::advise(&LayoutNeeds::new(u64::MAX)).unwrap_err();
    assert!(matches!(
        late,
        AdviceError::Layout(LayoutError::EpochTooLate { .. })
    ));
}

#[test]
fn the_most_that_may_be_asked_is_refused_by_numbers() {
    let needs = LayoutNeeds::new(253_402_300_799_999)
        .years(LayoutNeeds::MAX_YEARS)
        .nodes(LayoutNeeds::MAX_NODES)
        .restarts_per_day(1e6)
        .rate(LayoutNeeds::MAX_RATE)
        .burst(LayoutNeeds::MAX_BURST);
    for needs in [
        needs,
        needs.disposable_nodes(),
        needs.lease_duration(Duration::ZERO),
    ] {
        let error = Layout::advise(&needs.tick(Duration::from_millis(1))).unwrap_err();
        assert_says(&error.to_string(), &["64 bits are not enough"]);
        if !error.to_string().contains("leases,") {
            assert_says(&error.to_string(), &["relax several"]);
        }
    }
}

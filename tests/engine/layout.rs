//! Layouts: fields, life, text, and the parts of a node.

use std::time::Duration;

use proptest::prelude::*;
use ringflake::{
    Layout, LayoutError, LayoutField, MissingPart, NodeFields, NodeFieldsError, ParseLayoutError,
};
use ringflake_kit::known_answers;

const MAX_EPOCH_UNIX_MS: u64 = 253_402_300_799_999;

const PRESETS: [(&str, Layout, &str); 8] = [
    (
        "randflake",
        Layout::RANDFLAKE,
        "30/17/17@2024-10-27T03:33:20Z/1s",
    ),
    (
        "region-type-machine",
        Layout::REGION_TYPE_MACHINE,
        "30/22/12@2024-10-27T03:33:20Z/1s",
    ),
    (
        "baidu-2026",
        Layout::BAIDU_2026,
        "28/22/13@2026-01-01T00:00:00Z/1s",
    ),
    ("baidu", Layout::BAIDU, "28/22/13@2016-05-20T00:00:00Z/1s"),
    (
        "baidu-31-23-9",
        Layout::BAIDU_31_23_9,
        "31/23/9@2016-05-20T00:00:00Z/1s",
    ),
    (
        "twitter",
        Layout::TWITTER,
        "41/10/12@2010-11-04T01:42:54.657Z/1ms",
    ),
    (
        "sonyflake-sized",
        Layout::SONYFLAKE_SIZED,
        "39/16/8@2014-09-01T00:00:00Z/10ms",
    ),
    (
        "js-safe",
        Layout::JS_SAFE,
        "31/10/12@2024-10-27T03:33:20Z/1s",
    ),
];

/// Every valid layout, and each extreme often.
fn layouts() -> impl Strategy<Value = Layout> {
    let widths = prop_oneof![
        (1..=62_u32, 1..=62_u32, 1..=62_u32)
            .prop_filter("at most 64 bits", |(t, n, s)| t + n + s <= 64),
        (1..=62_u32)
            .prop_flat_map(|time| (Just(time), 1..=63 - time))
            .prop_map(|(time, node)| (time, node, 64 - time - node)),
    ];
    let epoch = prop_oneof![Just(0), Just(MAX_EPOCH_UNIX_MS), 0..=MAX_EPOCH_UNIX_MS];
    (widths, epoch)
        .prop_flat_map(|(widths, epoch)| {
            let longest = (u64::MAX - epoch) >> widths.0;
            let tick = prop_oneof![
                Just(1),
                Just(longest),
                1..=longest.min(100_000),
                1..=longest
            ];
            (Just(widths), Just(epoch), tick)
        })
        .prop_map(|((time, node, sequence), epoch, tick)| {
            Layout::builder()
                .bits(time, node, sequence)
                .tick(Duration::from_millis(tick))
                .epoch_unix_ms(epoch)
                .build()
                .unwrap()
        })
}

/// A number under `count`, and the edges often.
fn below(count: u64) -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(count - 1), 0..count]
}

fn layout_and_fields() -> impl Strategy<Value = (Layout, u64, u64, u64)> {
    layouts().prop_flat_map(|layout| {
        (
            Just(layout),
            below(layout.ticks()),
            below(layout.nodes()),
            below(layout.sequences()),
        )
    })
}

mod fields {
    use super::*;

    #[test]
    fn the_vectors_pack_and_unpack() {
        let layout = Layout::RANDFLAKE;
        let seconds = known_answers::numbers("timestamp_unix_s");
        let nodes = known_answers::numbers("node");
        let sequences = known_answers::numbers("sequence");
        let raws = known_answers::numbers("raw_u64");
        let mut in_second_half = 0;
        for (((unix_s, node), sequence), raw) in
            seconds.into_iter().zip(nodes).zip(sequences).zip(raws)
        {
            let tick = layout.tick_at(unix_s * 1_000).unwrap();
            assert_eq!(layout.pack(tick, node, sequence), Ok(raw));
            let parts = layout.unpack(raw).unwrap();
            assert_eq!(
                (parts.tick, parts.node, parts.sequence, parts.unix_ms),
                (tick, node, sequence, unix_s * 1_000)
            );
            in_second_half += usize::from(raw >= 1 << 63);
        }
        assert!(in_second_half > 0, "raws with the top bit set are covered");
    }

    /// A signed raw would turn negative half-way through the 34 years.
    #[test]
    fn the_second_half_of_the_life_unpacks() {
        let layout = Layout::RANDFLAKE;
        for tick in [layout.ticks() / 2, layout.ticks() - 1] {
            let raw = layout.pack(tick, 5, 7).unwrap();
            assert!(raw >= 1 << 63);
            let parts = layout.unpack(raw).unwrap();
            assert_eq!((parts.tick, parts.node, parts.sequence), (tick, 5, 7));
            assert_eq!(parts.unix_ms, 1_730_000_000_000 + tick * 1_000);
        }
    }

    #[test]
    fn a_value_past_its_field_is_refused_and_never_spills() {
        let layout = Layout::BAIDU;
        let out_of_range = |field, value, max| Err(LayoutError::OutOfRange { field, value, max });
        assert_eq!(
            layout.pack(7, 1 << 22, 0),
            out_of_range(LayoutField::Node, 1 << 22, (1 << 22) - 1)
        );
        assert_eq!(
            layout.pack(7, 0, 1 << 13),
            out_of_range(LayoutField::Sequence, 1 << 13, (1 << 13) - 1)
        );
        assert_eq!(
            layout.pack(1 << 28, 0, 0),
            out_of_range(LayoutField::Time, 1 << 28, (1 << 28) - 1)
        );
        assert_eq!(
            layout.pack(u64::MAX, u64::MAX, u64::MAX),
            out_of_range(LayoutField::Time, u64::MAX, (1 << 28) - 1)
        );
        assert_eq!(
            layout.pack((1 << 28) - 1, (1 << 22) - 1, (1 << 13) - 1),
            Ok((1 << 63) - 1)
        );
    }

    #[test]
    fn the_field_that_is_too_narrow_is_named() {
        let layout = Layout::TWITTER;
        for ((tick, node, sequence), begin, end) in [
            ((1 << 41, 0, 0), "time 2199023255552 is", "wider time field"),
            ((0, 1 << 10, 0), "node 1024 is", "wider node field"),
            ((0, 0, 1 << 12), "sequence 4096 is", "wider sequence field"),
        ] {
            let message = layout.pack(tick, node, sequence).unwrap_err().to_string();
            assert!(message.starts_with(begin), "{message}");
            assert!(message.ends_with(end), "{message}");
        }
    }

    #[test]
    fn a_raw_with_bits_above_the_layout_is_refused() {
        for (layout, bits) in [(Layout::JS_SAFE, 53), (Layout::BAIDU, 63)] {
            assert!(layout.unpack((1 << bits) - 1).is_ok());
            for raw in [1 << bits, u64::MAX] {
                assert_eq!(
                    layout.unpack(raw),
                    Err(LayoutError::ExtraBits {
                        raw,
                        total_bits: bits
                    })
                );
            }
        }
    }

    #[test]
    fn the_largest_js_safe_raw_is_javascripts_largest_integer() {
        let layout = Layout::JS_SAFE;
        let largest = layout.pack(
            layout.ticks() - 1,
            layout.nodes() - 1,
            layout.sequences() - 1,
        );
        assert_eq!(largest, Ok(9_007_199_254_740_991));
    }

    proptest! {
        #[test]
        fn what_is_packed_unpacks((layout, tick, node, sequence) in layout_and_fields()) {
            let raw = layout.pack(tick, node, sequence).unwrap();
            let parts = layout.unpack(raw).unwrap();
            prop_assert_eq!((parts.tick, parts.node, parts.sequence), (tick, node, sequence));
            prop_assert_eq!(parts.unix_ms, layout.tick_start_unix_ms(tick));
        }

        /// Counts in a mixed radix, where a shift too far could not hide.
        #[test]
        fn a_raw_counts_sequence_then_node_then_tick(
            (layout, tick, node, sequence) in layout_and_fields(),
        ) {
            let position = (u128::from(tick) * u128::from(layout.nodes()) + u128::from(node))
                * u128::from(layout.sequences())
                + u128::from(sequence);
            prop_assert_eq!(layout.pack(tick, node, sequence).map(u128::from), Ok(position));
        }

        #[test]
        fn any_number_unpacks_and_packs_again_or_has_extra_bits(layout in layouts(), raw: u64) {
            let fits = raw.checked_shr(layout.total_bits()).unwrap_or(0) == 0;
            match layout.unpack(raw) {
                Ok(parts) => {
                    prop_assert!(fits);
                    prop_assert_eq!(layout.pack(parts.tick, parts.node, parts.sequence), Ok(raw));
                }
                Err(error) => {
                    prop_assert!(!fits);
                    let total_bits = layout.total_bits();
                    prop_assert_eq!(error, LayoutError::ExtraBits { raw, total_bits });
                }
            }
        }

        #[test]
        fn the_first_value_past_each_field_is_refused(layout in layouts(), past: u64) {
            let cases = [
                (LayoutField::Time, layout.ticks()),
                (LayoutField::Node, layout.nodes()),
                (LayoutField::Sequence, layout.sequences()),
            ];
            for (field, count) in cases {
                for value in [count, past.max(count), u64::MAX] {
                    let of = |this| if this == field { value } else { 0 };
                    let packed = layout.pack(
                        of(LayoutField::Time),
                        of(LayoutField::Node),
                        of(LayoutField::Sequence),
                    );
                    let max = count - 1;
                    prop_assert_eq!(packed, Err(LayoutError::OutOfRange { field, value, max }));
                }
            }
        }
    }
}

mod life {
    use super::*;

    /// Its users were given negative IDs from that second on.
    #[test]
    fn baidus_28_bits_ended_on_2024_11_20() {
        let layout = Layout::BAIDU;
        let end_unix_ms = 1_732_137_856_000;
        assert_eq!(layout.end_unix_ms(), end_unix_ms);
        assert_eq!(layout.check_alive(end_unix_ms - 1), Ok(()));
        assert_eq!(
            layout.check_alive(end_unix_ms),
            Err(LayoutError::Expired {
                end_unix_ms,
                now_unix_ms: end_unix_ms
            })
        );

        let last = layout.tick_at(end_unix_ms - 1).unwrap();
        let raw = layout.pack(last, layout.nodes() - 1, layout.sequences() - 1);
        assert_eq!(raw, Ok(i64::MAX as u64));
        let first_after = layout.tick_at(end_unix_ms).unwrap();
        assert_eq!(first_after, layout.ticks());
        assert_eq!(
            layout.pack(first_after, 0, 0),
            Err(LayoutError::OutOfRange {
                field: LayoutField::Time,
                value: 1 << 28,
                max: (1 << 28) - 1
            })
        );
    }

    #[test]
    fn the_presets_begin_and_end_when_the_docs_say() {
        for (layout, epoch_unix_ms, end_unix_ms) in [
            (Layout::RANDFLAKE, 1_730_000_000_000, 2_803_741_824_000),
            (
                Layout::REGION_TYPE_MACHINE,
                1_730_000_000_000,
                2_803_741_824_000,
            ),
            // 2034-07-04T21:24:16Z
            (Layout::BAIDU_2026, 1_767_225_600_000, 2_035_661_056_000),
            (Layout::BAIDU, 1_463_702_400_000, 1_732_137_856_000),
            (Layout::BAIDU_31_23_9, 1_463_702_400_000, 3_611_186_048_000),
            (Layout::TWITTER, 1_288_834_974_657, 3_487_858_230_209),
            (
                Layout::SONYFLAKE_SIZED,
                1_409_529_600_000,
                6_907_087_738_880,
            ),
            (Layout::JS_SAFE, 1_730_000_000_000, 3_877_483_648_000),
        ] {
            assert_eq!(layout.epoch_unix_ms(), epoch_unix_ms, "{layout}");
            assert_eq!(layout.end_unix_ms(), end_unix_ms, "{layout}");
        }
    }

    #[test]
    fn remaining_lifetime_counts_down_to_zero() {
        let layout = Layout::RANDFLAKE;
        let (epoch, end) = (layout.epoch_unix_ms(), layout.end_unix_ms());
        assert_eq!(
            layout.remaining_lifetime(epoch),
            Duration::from_secs(1 << 30)
        );
        assert_eq!(layout.remaining_lifetime(0), Duration::from_millis(end));
        assert_eq!(layout.remaining_lifetime(end - 1), Duration::from_millis(1));
        assert_eq!(layout.remaining_lifetime(end), Duration::ZERO);
        assert_eq!(layout.remaining_lifetime(u64::MAX), Duration::ZERO);
    }

    #[test]
    fn the_expiry_message_can_name_any_time() {
        let message = Layout::BAIDU.check_alive(u64::MAX).unwrap_err().to_string();
        assert!(message.contains("2024-11-20T21:24:16Z"), "{message}");
        assert!(message.contains(&u64::MAX.to_string()), "{message}");
    }

    #[test]
    fn a_layout_may_end_on_the_last_millisecond_and_not_after() {
        let builder = Layout::builder().bits(62, 1, 1);
        let fits = builder.tick(Duration::from_millis(3)).epoch_unix_ms(0);
        assert_eq!(fits.build().unwrap().end_unix_ms(), 3 << 62);
        let reaches = fits.bits(1, 1, 1).tick(Duration::from_millis(u64::MAX / 2));
        assert_eq!(
            reaches.epoch_unix_ms(1).build().unwrap().end_unix_ms(),
            u64::MAX
        );
        assert_eq!(
            reaches.epoch_unix_ms(2).build(),
            Err(LayoutError::EndTooLate {
                time_bits: 1,
                tick_ms: u64::MAX / 2,
                epoch_unix_ms: 2
            })
        );
    }

    proptest! {
        #[test]
        fn a_tick_begins_where_the_one_before_ends((layout, tick, _, _) in layout_and_fields()) {
            let start = layout.tick_start_unix_ms(tick);
            prop_assert_eq!(layout.tick_at(start), Some(tick));
            prop_assert_eq!(layout.tick_at(start + (layout.tick_ms() - 1)), Some(tick));
            prop_assert_eq!(layout.tick_start_unix_ms(tick + 1), start + layout.tick_ms());
            prop_assert_eq!(start.checked_sub(1).and_then(|ms| layout.tick_at(ms)), tick.checked_sub(1));
        }

        #[test]
        fn a_layout_is_alive_exactly_while_it_has_ticks(layout in layouts(), now: u64) {
            let has_ticks = layout.tick_at(now).is_none_or(|tick| tick < layout.ticks());
            prop_assert_eq!(layout.check_alive(now).is_ok(), has_ticks);
            prop_assert_eq!(layout.remaining_lifetime(now) > Duration::ZERO, has_ticks);
        }

        #[test]
        fn ticks_past_the_end_saturate(layout in layouts(), tick: u64) {
            let exact = u128::from(layout.epoch_unix_ms())
                + u128::from(tick) * u128::from(layout.tick_ms());
            let expected = u64::try_from(exact).unwrap_or(u64::MAX);
            prop_assert_eq!(layout.tick_start_unix_ms(tick), expected);
        }
    }
}

mod building {
    use super::*;

    fn error_of(time: u32, node: u32, sequence: u32) -> LayoutError {
        let builder = Layout::builder().bits(time, node, sequence);
        builder.build().unwrap_err()
    }

    #[test]
    fn the_builder_starts_with_randflake() {
        assert_eq!(Layout::builder().build(), Ok(Layout::RANDFLAKE));
    }

    #[test]
    fn widths_over_64_or_zero_are_refused_with_the_numbers() {
        assert_eq!(
            error_of(28, 30, 13),
            LayoutError::TooManyBits {
                time: 28,
                node: 30,
                sequence: 13
            }
        );
        let message = error_of(28, 30, 13).to_string();
        assert!(
            message.contains("28 time, 30 node and 13 sequence bits are 71"),
            "{message}"
        );
        let field_of = |error| match error {
            LayoutError::ZeroWidth { field } => Some(field),
            _ => None,
        };
        assert_eq!(field_of(error_of(0, 17, 17)), Some(LayoutField::Time));
        assert_eq!(field_of(error_of(30, 0, 17)), Some(LayoutField::Node));
        assert_eq!(field_of(error_of(30, 17, 0)), Some(LayoutField::Sequence));
        assert!(Layout::builder().bits(30, 17, 17).build().is_ok());
        assert!(matches!(
            error_of(30, 17, 18),
            LayoutError::TooManyBits { .. }
        ));
    }

    #[test]
    fn widths_whose_sum_overflows_are_refused() {
        let message = error_of(u32::MAX, u32::MAX, 2).to_string();
        assert!(message.contains("8589934592"), "{message}");
    }

    #[test]
    fn a_tick_is_whole_milliseconds() {
        for tick in [
            Duration::ZERO,
            Duration::from_micros(999),
            Duration::from_micros(1_500),
            Duration::from_nanos(1_000_000_001),
            Duration::from_secs(u64::MAX),
        ] {
            assert_eq!(
                Layout::builder().tick(tick).build(),
                Err(LayoutError::Tick { tick })
            );
        }
        let layout = Layout::builder().tick(Duration::from_micros(2_000)).build();
        assert_eq!(layout.unwrap().tick_ms(), 2);
    }

    /// Its fault is the end, and not the tick.
    #[test]
    fn the_longest_tick_in_a_u64_is_a_tick() {
        let builder = Layout::builder().epoch_unix_ms(0);
        let tick_ms = u64::MAX;
        assert_eq!(
            builder.tick(Duration::from_millis(tick_ms)).build(),
            Err(LayoutError::EndTooLate {
                time_bits: 30,
                tick_ms,
                epoch_unix_ms: 0
            })
        );
    }

    #[test]
    fn the_epoch_can_be_written_as_a_date() {
        let builder = Layout::builder();
        let last = builder.epoch_unix_ms(MAX_EPOCH_UNIX_MS).build().unwrap();
        assert_eq!(last.to_string(), "30/17/17@9999-12-31T23:59:59.999Z/1s");
        let epoch_unix_ms = MAX_EPOCH_UNIX_MS + 1;
        assert_eq!(
            builder.epoch_unix_ms(epoch_unix_ms).build(),
            Err(LayoutError::EpochTooLate { epoch_unix_ms })
        );
    }

    proptest! {
        #[test]
        fn the_builder_keeps_every_value(layout in layouts()) {
            let built = Layout::builder()
                .bits(layout.time_bits(), layout.node_bits(), layout.sequence_bits())
                .tick(Duration::from_millis(layout.tick_ms()))
                .epoch_unix_ms(layout.epoch_unix_ms())
                .build();
            prop_assert_eq!(built, Ok(layout));
            prop_assert_eq!(layout.ticks().ilog2(), layout.time_bits());
            prop_assert_eq!(layout.nodes().ilog2(), layout.node_bits());
            prop_assert_eq!(layout.sequences().ilog2(), layout.sequence_bits());
        }
    }
}

mod text {
    use super::*;

    #[test]
    fn each_preset_has_its_name_and_spec() {
        for (name, layout, spec) in PRESETS {
            assert_eq!(Layout::from_name(name), Some(layout));
            assert_eq!(layout.name(), Some(name));
            assert_eq!(layout.to_string(), spec);
            assert_eq!(spec.parse(), Ok(layout));
            assert_eq!(name.to_uppercase().parse(), Ok(layout));
        }
    }

    #[test]
    fn an_unknown_text_is_told_the_names_and_the_form() {
        for text in [
            "",
            "snowflake",
            "28/22",
            "28/22@2016-05-20T00:00:00Z/1s",
            "28/x/13",
            "a/b/c/1s",
        ] {
            let error = text.parse::<Layout>().unwrap_err();
            assert_eq!(error, ParseLayoutError::Unrecognized { text: text.into() });
            let message = error.to_string();
            for (name, _, _) in PRESETS {
                assert!(message.contains(&format!("{name}, ")), "{message}");
            }
            assert!(
                message.contains("time/node/sequence@epoch/tick"),
                "{message}"
            );
        }
    }

    #[test]
    fn what_a_text_lacks_is_named_with_the_presets_of_its_widths() {
        const TWITTER: &str = "give twitter, which is 41/10/12@2010-11-04T01:42:54.657Z/1ms";
        let baidu = "give baidu-2026, which is 28/22/13@2026-01-01T00:00:00Z/1s, \
                     or baidu, which is 28/22/13@2016-05-20T00:00:00Z/1s";
        for (text, missing, lacks, offered) in [
            (
                "41/10/12",
                MissingPart::EpochAndTick,
                "no epoch and no tick",
                TWITTER,
            ),
            ("41/10/12/1ms", MissingPart::Epoch, "has no epoch;", TWITTER),
            (
                "41/10/12@2020-01-01T00:00:00Z",
                MissingPart::Tick,
                "has no tick;",
                TWITTER,
            ),
            (
                "28/22/13",
                MissingPart::EpochAndTick,
                "no epoch and no tick",
                baidu,
            ),
            (
                "40/12/12",
                MissingPart::EpochAndTick,
                "no epoch and no tick",
                "give 40/12/12@EPOCH/TICK, such as 40/12/12@2024-10-27T03:33:20Z/1s",
            ),
        ] {
            let error = text.parse::<Layout>().unwrap_err();
            assert!(
                matches!(&error, ParseLayoutError::Incomplete { missing: it, .. } if *it == missing),
                "{error:?}"
            );
            let message = error.to_string();
            assert!(
                message.contains(lacks) && message.ends_with(offered),
                "{message}"
            );
        }
    }

    #[test]
    fn another_epoch_is_checked_as_in_the_builder() {
        let twitter = Layout::TWITTER;
        let later = twitter.with_epoch(MAX_EPOCH_UNIX_MS).unwrap();
        assert_eq!(later.epoch_unix_ms(), MAX_EPOCH_UNIX_MS);
        assert_eq!(later.with_epoch(twitter.epoch_unix_ms()), Ok(twitter));
        let epoch_unix_ms = MAX_EPOCH_UNIX_MS + 1;
        assert_eq!(
            twitter.with_epoch(epoch_unix_ms),
            Err(LayoutError::EpochTooLate { epoch_unix_ms })
        );
        let longest = Layout::builder()
            .tick(Duration::from_millis(u64::MAX >> 30))
            .epoch_unix_ms(0)
            .build()
            .unwrap();
        assert!(matches!(
            longest.with_epoch(MAX_EPOCH_UNIX_MS),
            Err(LayoutError::EndTooLate { .. })
        ));
    }

    #[test]
    fn a_wrong_part_is_named() {
        let error_of = |text: &str| text.parse::<Layout>().unwrap_err();
        for width in ["", "x", "-1", "+28", "2 8", "28/1", "4294967296"] {
            let text = format!("30/17/{width}@2016-05-20T00:00:00Z/1s");
            assert_eq!(
                error_of(&text),
                ParseLayoutError::Width { text: width.into() }
            );
        }
        for tick in [
            "", "s", "ms", "1", "1m", "1 s", "1.5s", "+1s", "-1s", "1s/", "1000us",
        ] {
            let text = format!("30/17/17@2016-05-20T00:00:00Z/{tick}");
            assert_eq!(
                error_of(&text),
                ParseLayoutError::Tick { text: tick.into() }
            );
        }
        for (epoch, reason) in [
            ("", "format"),
            ("2016-05-20", "format"),
            ("2016-05-20T00:00:00", "format"),
            ("2016-05-20T00:00:00+08:00", "format"),
            ("2016-13-20T00:00:00Z", "out of range"),
            ("1969-12-31T23:59:59Z", "out of range"),
            ("2016-05-20T00:00:00.0005Z", "fraction of a millisecond"),
        ] {
            let error = error_of(&format!("30/17/17@{epoch}/1s"));
            let ParseLayoutError::Epoch {
                text,
                reason: given,
            } = error
            else {
                panic!("{epoch:?} gave {error:?}");
            };
            assert_eq!(text, epoch);
            assert!(given.contains(reason), "{epoch:?}: {given}");
        }
    }

    #[test]
    fn numbers_that_make_no_layout_keep_their_error() {
        for (text, error) in [
            (
                "28/30/13@2016-05-20T00:00:00Z/1s",
                LayoutError::TooManyBits {
                    time: 28,
                    node: 30,
                    sequence: 13,
                },
            ),
            (
                "28/0/13@2016-05-20T00:00:00Z/1s",
                LayoutError::ZeroWidth {
                    field: LayoutField::Node,
                },
            ),
            (
                "28/22/13@2016-05-20T00:00:00Z/0ms",
                LayoutError::Tick {
                    tick: Duration::ZERO,
                },
            ),
            (
                "28/22/13@2016-05-20T00:00:00Z/18446744073709551615s",
                LayoutError::Tick {
                    tick: Duration::from_secs(u64::MAX),
                },
            ),
        ] {
            let parsed = text.parse::<Layout>();
            assert_eq!(parsed, Err(ParseLayoutError::Invalid(error)));
        }
    }

    #[test]
    fn a_tick_reads_in_either_unit() {
        let of = |tick: &str| format!("30/17/17@2024-10-27T03:33:20Z/{tick}").parse::<Layout>();
        assert_eq!(of("1000ms"), of("1s"));
        assert_eq!(of("1500ms").unwrap().tick_ms(), 1_500);
        assert_eq!(
            of("1500ms").unwrap().to_string().rsplit('/').next(),
            Some("1500ms")
        );
        assert_eq!(
            of("90s").unwrap().to_string().rsplit('/').next(),
            Some("90s")
        );
    }

    proptest! {
        #[test]
        fn a_layout_reads_back_from_its_text(layout in layouts()) {
            prop_assert_eq!(layout.to_string().parse(), Ok(layout));
        }

        #[test]
        fn any_text_is_a_layout_or_an_error(
            text in "[0-9]{1,3}/[0-9]{1,2}/[0-9]{1,2}@\\PC{0,25}/[0-9a-z ]{0,30}|\\PC{0,40}",
        ) {
            match text.parse::<Layout>() {
                Ok(layout) => prop_assert_eq!(layout.to_string().parse(), Ok(layout)),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}

mod node_fields {
    use super::*;

    #[test]
    fn the_named_sets_have_their_widths() {
        let twitter = NodeFields::DATACENTER_MACHINE;
        assert_eq!(
            NodeFields::new(&[("datacenter", 5), ("machine", 5)]),
            Ok(twitter)
        );
        assert_eq!(twitter.bits(), Layout::TWITTER.node_bits());
        let baidu = NodeFields::REGION_TYPE_MACHINE;
        assert_eq!(
            NodeFields::new(&[("region", 6), ("type", 14), ("machine", 2)]),
            Ok(baidu)
        );
        for layout in [
            Layout::REGION_TYPE_MACHINE,
            Layout::BAIDU,
            Layout::BAIDU_2026,
        ] {
            assert_eq!(baidu.bits(), layout.node_bits());
        }
    }

    #[test]
    fn fields_stand_from_high_to_low_in_whatever_order_given() {
        let fields = NodeFields::REGION_TYPE_MACHINE;
        let node = fields.compose(&[("machine", 2), ("region", 63), ("type", 9_999)]);
        assert_eq!(node, Ok(63 << 16 | 9_999 << 2 | 2));
        let split: Vec<_> = fields.split(node.unwrap()).unwrap().collect();
        assert_eq!(split, [("region", 63), ("type", 9_999), ("machine", 2)]);
    }

    #[test]
    fn each_field_is_given_exactly_once_and_in_range() {
        let compose = |values: &[_]| NodeFields::DATACENTER_MACHINE.compose(values).unwrap_err();
        assert_eq!(
            compose(&[("datacenter", 1)]),
            NodeFieldsError::Missing {
                name: "machine".into()
            }
        );
        assert_eq!(
            compose(&[("datacenter", 1), ("machine", 1), ("datacenter", 1)]),
            NodeFieldsError::Repeated {
                name: "datacenter".into()
            }
        );
        assert_eq!(
            compose(&[("datacenter", 1), ("machine", 1), ("rack", 1)]),
            NodeFieldsError::Unknown {
                name: "rack".into(),
                known: vec!["datacenter".into(), "machine".into()]
            }
        );
        assert_eq!(
            compose(&[("datacenter", 32), ("machine", 1)]),
            NodeFieldsError::OutOfRange {
                name: "datacenter".into(),
                value: 32,
                max: 31
            }
        );
    }

    #[test]
    fn a_node_past_the_fields_is_refused() {
        let fields = NodeFields::DATACENTER_MACHINE;
        assert!(fields.split(1_023).is_ok());
        assert_eq!(
            fields.split(1_024).err(),
            Some(NodeFieldsError::NodeOutOfRange {
                node: 1_024,
                max: 1_023
            })
        );
    }

    #[test]
    fn fields_that_make_no_node_are_refused() {
        assert_eq!(NodeFields::new(&[]), Err(NodeFieldsError::NoFields));
        assert_eq!(
            NodeFields::new(&[("a", 1), ("b", 0)]),
            Err(NodeFieldsError::ZeroWidth { name: "b".into() })
        );
        assert_eq!(
            NodeFields::new(&[("a", 1), ("b", 2), ("a", 3)]),
            Err(NodeFieldsError::Repeated { name: "a".into() })
        );
        assert_eq!(
            NodeFields::new(&[("a", 31), ("b", 32)]),
            Err(NodeFieldsError::TooManyBits { bits: 63, max: 62 })
        );
        assert_eq!(
            NodeFields::new(&[("a", u32::MAX), ("b", 2)]),
            Err(NodeFieldsError::TooManyBits {
                bits: u32::MAX,
                max: 62
            })
        );
        assert!(NodeFields::new(&[("a", 62)]).is_ok());
    }

    #[test]
    fn each_fault_says_what_it_met_and_what_is_allowed() {
        let twitter = NodeFields::DATACENTER_MACHINE;
        let composed = |values: &[_]| twitter.compose(values).unwrap_err().to_string();
        let made = |fields: &[_]| NodeFields::new(fields).unwrap_err().to_string();
        for (message, parts) in [
            (made(&[]), ["at least one field", "its bits"]),
            (made(&[("a", 0)]), ["field a has 0 bits", "at least 1"]),
            (made(&[("a", 63)]), ["63 bits", "1 to 62"]),
            (made(&[("a", 1), ("a", 1)]), ["a stands", "once"]),
            (
                composed(&[("rack", 1)]),
                ["\"rack\"", "are datacenter, machine"],
            ),
            (composed(&[("machine", 1)]), ["datacenter has no", "once"]),
            (
                composed(&[("machine", 32), ("datacenter", 1)]),
                ["machine 32", "0 to 31"],
            ),
            (
                twitter.split(1024).err().unwrap().to_string(),
                ["node 1024", "0 to 1023"],
            ),
        ] {
            for part in parts {
                assert!(message.contains(part), "no {part:?} in: {message}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_composed_node_splits_into_its_values(
            widths in prop::collection::vec(1..=12_u32, 1..=5),
            node: u64,
        ) {
            let names = ["a", "b", "c", "d", "e"];
            let spec: Vec<_> = names.into_iter().zip(widths).collect();
            let fields = NodeFields::new(&spec).unwrap();
            let node = node & ((1 << fields.bits()) - 1);
            let values: Vec<_> = fields.split(node).unwrap().collect();
            for ((name, value), (expected, width)) in values.iter().zip(&spec) {
                prop_assert_eq!(name, expected);
                prop_assert!(*value < 1 << width);
            }
            prop_assert_eq!(fields.compose(&values), Ok(node));
        }
    }
}

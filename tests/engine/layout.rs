//! Layouts: fields, life, and text.

mod window;

use std::time::Duration;

use proptest::prelude::*;
use ringflake::{Layout, LayoutError, LayoutField, ParseLayoutError};
use ringflake_kit::{assert_matches, assert_says, known_answers, words};

const MAX_EPOCH_UNIX_MS: u64 = 253_402_300_799_999;

/// A name, a spec, the milliseconds of the epoch and those of the end.
const PRESETS: [(Layout, &str); 10] = [
    (
        Layout::RANDFLAKE,
        "randflake 30/17/17@2024-10-27T03:33:20Z/1s 1730000000000 2803741824000",
    ),
    (
        Layout::REGION_TYPE_MACHINE,
        "region-type-machine 30/22/12@2024-10-27T03:33:20Z/1s 1730000000000 2803741824000",
    ),
    (
        Layout::BAIDU_2026,
        // To 2034-07-04T21:24:16Z.
        "baidu-2026 28/22/13@2026-01-01T00:00:00Z/1s 1767225600000 2035661056000",
    ),
    (
        Layout::BAIDU,
        "baidu 28/22/13@2016-05-20T00:00:00Z/1s 1463702400000 1732137856000",
    ),
    (
        Layout::BAIDU_31_23_9,
        "baidu-31-23-9 31/23/9@2016-05-20T00:00:00Z/1s 1463702400000 3611186048000",
    ),
    (
        Layout::TWITTER,
        "twitter 41/10/12@2010-11-04T01:42:54.657Z/1ms 1288834974657 3487858230209",
    ),
    (
        Layout::SONYFLAKE_SIZED,
        "sonyflake-sized 39/16/8@2014-09-01T00:00:00Z/10ms 1409529600000 6907087738880",
    ),
    (
        Layout::POSITIVE,
        "positive 30/16/17@2024-10-27T03:33:20Z/1s 1730000000000 2803741824000",
    ),
    (
        Layout::POSITIVE_MS,
        // To 2094-07-03T19:20:55.552Z.
        "positive-ms 41/12/10@2024-10-27T03:33:20Z/1ms 1730000000000 3929023255552",
    ),
    (
        Layout::JS_SAFE,
        "js-safe 31/10/12@2024-10-27T03:33:20Z/1s 1730000000000 3877483648000",
    ),
];

fn ends_too_late(time_bits: u32, tick_ms: u64, epoch_unix_ms: u64) -> Result<Layout, LayoutError> {
    Err(LayoutError::EndTooLate {
        time_bits,
        tick_ms,
        epoch_unix_ms,
    })
}

fn out_of_range<T>(field: LayoutField, value: u64, max: u64) -> Result<T, LayoutError> {
    Err(LayoutError::OutOfRange { field, value, max })
}

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

    proptest! {
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
                    prop_assert_eq!(packed, out_of_range(field, value, count - 1));
                }
            }
            let all = layout.pack(u64::MAX, u64::MAX, u64::MAX);
            let time = out_of_range(LayoutField::Time, u64::MAX, layout.ticks() - 1);
            prop_assert_eq!(all, time, "the first of them is named");
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
        let now_unix_ms = end_unix_ms;
        let expired = LayoutError::Expired {
            end_unix_ms,
            now_unix_ms,
        };
        assert_eq!(layout.check_alive(end_unix_ms), Err(expired));

        let last = layout.tick_at(end_unix_ms - 1).unwrap();
        let raw = layout.pack(last, layout.nodes() - 1, layout.sequences() - 1);
        assert_eq!(raw, Ok(i64::MAX as u64));
        let first_after = layout.tick_at(end_unix_ms).unwrap();
        assert_eq!(first_after, layout.ticks());
        let refused = out_of_range(LayoutField::Time, 1 << 28, (1 << 28) - 1);
        assert_eq!(layout.pack(first_after, 0, 0), refused);
    }

    #[test]
    fn a_layout_may_end_on_the_last_millisecond_and_not_after() {
        let builder = Layout::builder().bits(62, 1, 1);
        let fits = builder.tick(Duration::from_millis(3)).epoch_unix_ms(0);
        assert_eq!(fits.build().unwrap().end_unix_ms(), 3 << 62);
        let tick_ms = u64::MAX / 2;
        let reaches = fits.bits(1, 1, 1).tick(Duration::from_millis(tick_ms));
        let reached = reaches.epoch_unix_ms(1).build().unwrap();
        assert_eq!(reached.end_unix_ms(), u64::MAX);
        assert_eq!(
            reaches.epoch_unix_ms(2).build(),
            ends_too_late(1, tick_ms, 2)
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
        for (time, node, sequence, sum) in [
            (28, 30, 13, "28 time, 30 node and 13 sequence bits are 71"),
            (30, 17, 18, "30 time, 17 node and 18 sequence bits are 65"),
            (u32::MAX, u32::MAX, 2, "8589934592"),
        ] {
            let error = error_of(time, node, sequence);
            assert_eq!(
                error,
                LayoutError::TooManyBits {
                    time,
                    node,
                    sequence
                }
            );
            assert!(error.to_string().contains(sum), "{error}");
        }
        for (widths, field) in [
            ([0, 17, 17], LayoutField::Time),
            ([30, 0, 17], LayoutField::Node),
            ([30, 17, 0], LayoutField::Sequence),
        ] {
            let [time, node, sequence] = widths;
            assert_eq!(
                error_of(time, node, sequence),
                LayoutError::ZeroWidth { field }
            );
        }
    }

    #[test]
    fn widths_need_a_tick_of_their_own() {
        let (time, node, sequence) = (41, 10, 12);
        let error = error_of(time, node, sequence);
        let why = LayoutError::NoTick {
            time,
            node,
            sequence,
        };
        assert_eq!(error, why);
        let text = error.to_string();
        for part in [
            "41/10/12",
            "1ms gives a node 4096000 IDs a second",
            "1s gives it 4096",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(
            error_of(1, 1, 62)
                .to_string()
                .contains("4611686018427387904000")
        );
        // Before or after the widths.
        let tick = Duration::from_secs(1);
        let after = Layout::builder().bits(30, 17, 17).tick(tick);
        assert_eq!(after.build(), Ok(Layout::RANDFLAKE));
        let before = Layout::builder().tick(tick).bits(30, 17, 17);
        assert_eq!(before.build(), Ok(Layout::RANDFLAKE));
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
}

mod text {
    use super::*;

    #[test]
    fn each_preset_has_its_name_spec_epoch_and_end() {
        for (layout, described) in PRESETS {
            let [name, spec, epoch, end] = words(described).try_into().unwrap();
            assert_eq!(Layout::from_name(name), Some(layout));
            assert_eq!(layout.name(), Some(name));
            assert_eq!(layout.to_string(), spec);
            assert_eq!(layout.epoch_unix_ms().to_string(), epoch, "{name}");
            assert_eq!(layout.end_unix_ms().to_string(), end, "{name}");
            assert_eq!(spec.parse(), Ok(layout));
            assert_eq!(name.to_uppercase().parse(), Ok(layout));
        }
    }

    #[test]
    fn an_unknown_text_is_told_the_names_and_the_form() {
        let at = "28/22@2016-05-20T00:00:00Z/1s";
        for text in ["", "snowflake", "28/22", at, "28/x/13", "a/b/c/1s"] {
            let error = text.parse::<Layout>().unwrap_err();
            assert_eq!(error, ParseLayoutError::Unrecognized { text: text.into() });
            let message = error.to_string();
            assert_says(&message, &["time/node/sequence@epoch/tick"]);
            for (layout, _) in PRESETS {
                assert_says(&message, &[&format!("{}, ", layout.name().unwrap())]);
            }
        }
    }

    #[test]
    fn what_a_text_lacks_is_named_with_the_presets_of_its_widths() {
        const TWITTER: &str = "give twitter, which is 41/10/12@2010-11-04T01:42:54.657Z/1ms";
        let baidu = "give baidu-2026, which is 28/22/13@2026-01-01T00:00:00Z/1s, \
                     or baidu, which is 28/22/13@2016-05-20T00:00:00Z/1s";
        let other = "give 40/12/12@EPOCH/TICK, such as 40/12/12@2024-10-27T03:33:20Z/1s";
        let both = "no epoch and no tick";
        for (text, lack, offered) in [
            ("41/10/12", both, TWITTER),
            ("41/10/12/1ms", "no epoch", TWITTER),
            ("41/10/12@2020-01-01T00:00:00Z", "no tick", TWITTER),
            ("28/22/13", both, baidu),
            ("40/12/12", both, other),
        ] {
            let error = text.parse::<Layout>().unwrap_err();
            let ParseLayoutError::Incomplete { missing, .. } = &error else {
                panic!("{text}: {error:?}");
            };
            assert_eq!(*missing, lack, "{text}");
            let message = error.to_string();
            assert!(message.contains(&format!("has {lack};")), "{message}");
            assert!(message.ends_with(offered), "{message}");
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
        assert_matches!(
            longest.with_epoch(MAX_EPOCH_UNIX_MS),
            Err(LayoutError::EndTooLate { .. })
        );
    }

    #[test]
    fn a_wrong_part_is_named() {
        let error_of = |text: &str| text.parse::<Layout>().unwrap_err();
        for width in ["", "x", "-1", "+28", "2 8", "28/1", "4294967296"] {
            let text = format!("30/17/{width}@2016-05-20T00:00:00Z/1s");
            let wrong = ParseLayoutError::Width { text: width.into() };
            assert_eq!(error_of(&text), wrong);
        }
        for tick in [
            "", "s", "ms", "1", "1m", "1 s", "1.5s", "+1s", "-1s", "1s/", "1000us",
        ] {
            let text = format!("30/17/17@2016-05-20T00:00:00Z/{tick}");
            let wrong = ParseLayoutError::Tick { text: tick.into() };
            assert_eq!(error_of(&text), wrong);
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
            assert!(
                matches!(&error, ParseLayoutError::Epoch { text, reason: given }
                    if text == epoch && given.contains(reason)),
                "{epoch:?} gave {error:?}"
            );
        }
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

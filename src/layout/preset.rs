//! Layouts with a name.

use std::time::Duration;

use super::{Layout, LayoutBuilder};

const SECOND: Duration = Duration::from_secs(1);
const RANDFLAKE_EPOCH_UNIX_MS: u64 = 1_730_000_000_000;
const BAIDU_EPOCH_UNIX_MS: u64 = 1_463_702_400_000;
/// 2026-01-01T00:00:00Z.
const YEAR_2026_UNIX_MS: u64 = 1_767_225_600_000;

/// Every named layout. Names are lowercase.
pub(super) const PRESETS: [(&str, Layout); 10] = [
    ("randflake", Layout::RANDFLAKE),
    ("region-type-machine", Layout::REGION_TYPE_MACHINE),
    ("baidu-2026", Layout::BAIDU_2026),
    ("baidu", Layout::BAIDU),
    ("baidu-31-23-9", Layout::BAIDU_31_23_9),
    ("twitter", Layout::TWITTER),
    ("sonyflake-sized", Layout::SONYFLAKE_SIZED),
    ("positive", Layout::POSITIVE),
    ("positive-ms", Layout::POSITIVE_MS),
    ("js-safe", Layout::JS_SAFE),
];

/// # Presets
///
/// | | name | time / node / sequence | tick | first tick | ends (UTC) | IDs/s a node |
/// |---|---|---|---|---|---|---|
/// | [`RANDFLAKE`](Self::RANDFLAKE) | `randflake` | 30 / 17 / 17 | 1 s | 2024-10-27 | 2058-11-05 | 131,072 |
/// | [`REGION_TYPE_MACHINE`](Self::REGION_TYPE_MACHINE) | `region-type-machine` | 30 / 22 / 12 | 1 s | 2024-10-27 | 2058-11-05 | 4,096 |
/// | [`BAIDU_2026`](Self::BAIDU_2026) | `baidu-2026` | 28 / 22 / 13 | 1 s | 2026-01-01 | 2034-07-04 | 8,192 |
/// | [`BAIDU`](Self::BAIDU) | `baidu` | 28 / 22 / 13 | 1 s | 2016-05-20 | 2024-11-20 | 8,192 |
/// | [`BAIDU_31_23_9`](Self::BAIDU_31_23_9) | `baidu-31-23-9` | 31 / 23 / 9 | 1 s | 2016-05-20 | 2084-06-07 | 512 |
/// | [`TWITTER`](Self::TWITTER) | `twitter` | 41 / 10 / 12 | 1 ms | 2010-11-04 | 2080-07-10 | 4,096,000 |
/// | [`SONYFLAKE_SIZED`](Self::SONYFLAKE_SIZED) | `sonyflake-sized` | 39 / 16 / 8 | 10 ms | 2014-09-01 | 2188-11-16 | 25,600 |
/// | [`POSITIVE`](Self::POSITIVE) | `positive` | 30 / 16 / 17 | 1 s | 2024-10-27 | 2058-11-05 | 131,072 |
/// | [`POSITIVE_MS`](Self::POSITIVE_MS) | `positive-ms` | 41 / 12 / 10 | 1 ms | 2024-10-27 | 2094-07-03 | 1,024,000 |
/// | [`JS_SAFE`](Self::JS_SAFE) | `js-safe` | 31 / 10 / 12 | 1 s | 2024-10-27 | 2092-11-14 | 4,096 |
impl Layout {
    /// Randflake's: 30/17/17, ticks of 1 s from Unix second 1,730,000,000.
    ///
    /// Uses all 64 bits. Source:
    /// [Randflake](https://github.com/gosuda/randflake).
    #[doc(alias = "default")]
    pub const RANDFLAKE: Self = preset((30, 17, 17), SECOND, RANDFLAKE_EPOCH_UNIX_MS);

    /// For nodes numbered by region, type and machine: 30/22/12, ticks of 1 s from Unix
    /// second 1,730,000,000. Ends in 2058.
    ///
    /// Its 22 node bits hold a region of 6 bits, a type of 14 and a machine of 2:
    /// `region << 16 | type << 2 | machine`. Its life is that of
    /// [`RANDFLAKE`](Self::RANDFLAKE). Uses all 64 bits.
    #[doc(alias = "NodeFields")]
    pub const REGION_TYPE_MACHINE: Self = preset((30, 22, 12), SECOND, RANDFLAKE_EPOCH_UNIX_MS);

    /// The widths of Baidu's UidGenerator with an epoch that lives: 28/22/13, ticks of 1 s
    /// from 2026-01-01T00:00:00Z. **It ends in 2034**, on 4 July.
    ///
    /// Its numbers are those of [`BAIDU`](Self::BAIDU) once more. It is for new ID spaces, and
    /// for none that has IDs of the earlier epoch, unless they are kept apart or encrypted
    /// with another secret. Encrypted IDs use all 64 bits; plain ones stay positive as signed
    /// numbers.
    pub const BAIDU_2026: Self = preset((28, 22, 13), SECOND, YEAR_2026_UNIX_MS);

    /// The defaults of Baidu's UidGenerator: 28/22/13, ticks of 1 s from
    /// 2016-05-20T00:00:00Z. **It ended on 2024-11-20** and serves only to read
    /// old IDs.
    ///
    /// The epoch built into Baidu's code is that midnight at UTC+8. To read IDs
    /// made with it, build the layout with the epoch 1,463,673,600,000 ms.
    /// Source: [uid-generator](https://github.com/baidu/uid-generator).
    pub const BAIDU: Self = preset((28, 22, 13), SECOND, BAIDU_EPOCH_UNIX_MS);

    /// Baidu's proposal for a long life at a low rate: 31/23/9, ticks of
    /// 1 s from 2016-05-20T00:00:00Z.
    pub const BAIDU_31_23_9: Self = preset((31, 23, 9), SECOND, BAIDU_EPOCH_UNIX_MS);

    /// Twitter's Snowflake: 41/10/12, ticks of 1 ms from
    /// 2010-11-04T01:42:54.657Z.
    ///
    /// Source: [Snowflake](https://github.com/twitter-archive/snowflake).
    #[doc(alias = "SNOWFLAKE")]
    pub const TWITTER: Self = preset((41, 10, 12), Duration::from_millis(1), 1_288_834_974_657);

    /// The widths of Sonyflake: 39/16/8, ticks of 10 ms from
    /// 2014-09-01T00:00:00Z.
    ///
    /// Only the sizes are Sonyflake's. It puts the sequence before the machine,
    /// where every layout here puts the node before the sequence, so neither
    /// reads the other's IDs. Source:
    /// [Sonyflake](https://github.com/sony/sonyflake).
    pub const SONYFLAKE_SIZED: Self =
        preset((39, 16, 8), Duration::from_millis(10), 1_409_529_600_000);

    /// 63 bits in all, for IDs that are positive as signed numbers: 30/16/17, ticks of 1 s
    /// from Unix second 1,730,000,000. Ends in 2058.
    ///
    /// [`RANDFLAKE`](Self::RANDFLAKE) with half the nodes, 65,536. Encrypted IDs are positive
    /// with [`IdWidth::Positive`](crate::IdWidth::Positive), and have 64 bits without.
    pub const POSITIVE: Self = preset((30, 16, 17), SECOND, RANDFLAKE_EPOCH_UNIX_MS);

    /// The same by milliseconds: 41/12/10, ticks of 1 ms from Unix second 1,730,000,000.
    /// Ends in 2094.
    ///
    /// 4,096 nodes, and 1,024 IDs of each in a millisecond. Encrypted as
    /// [`POSITIVE`](Self::POSITIVE).
    pub const POSITIVE_MS: Self = preset(
        (41, 12, 10),
        Duration::from_millis(1),
        RANDFLAKE_EPOCH_UNIX_MS,
    );

    /// 53 bits in all: 31/10/12, ticks of 1 s from Unix second 1,730,000,000. Ends in 2092.
    ///
    /// No raw is above 2<sup>53</sup> - 1, JavaScript's `MAX_SAFE_INTEGER`, and so no plain
    /// ID. Encrypted ones keep to that with [`IdWidth::JsSafe`](crate::IdWidth::JsSafe), and
    /// are refused without.
    ///
    /// Its ceilings: 1,024 nodes, 4,096 IDs a second of each, and 4,194,304 of all. Encryption
    /// to 53 bits makes more than a million a second in one thread.
    pub const JS_SAFE: Self = preset((31, 10, 12), SECOND, RANDFLAKE_EPOCH_UNIX_MS);

    /// The preset with this name, in upper or lower case.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Layout;
    ///
    /// assert_eq!(Layout::from_name("Twitter"), Some(Layout::TWITTER));
    /// assert_eq!(Layout::from_name("28/22/13"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        PRESETS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|&(_, layout)| layout)
    }

    /// The name of the preset that equals this layout, in lowercase.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Layout;
    ///
    /// assert_eq!(Layout::JS_SAFE.name(), Some("js-safe"));
    /// assert_eq!(Layout::POSITIVE.with_epoch(0)?.name(), None);
    /// # Ok::<(), ringflake::LayoutError>(())
    /// ```
    pub fn name(&self) -> Option<&'static str> {
        PRESETS
            .iter()
            .find(|(_, layout)| layout == self)
            .map(|&(name, _)| name)
    }
}

/// Evaluated by the compiler alone: a preset that is not valid does not build.
const fn preset(bits: (u32, u32, u32), tick: Duration, epoch_unix_ms: u64) -> Layout {
    let builder = LayoutBuilder {
        time_bits: bits.0,
        node_bits: bits.1,
        sequence_bits: bits.2,
        tick,
        epoch_unix_ms,
        has_own_widths: true,
        has_own_tick: true,
    };
    match builder.build() {
        Ok(layout) => layout,
        Err(_) => panic!("a preset must be a valid layout"),
    }
}

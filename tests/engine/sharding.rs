//! Encrypted IDs fall evenly into shards, whatever takes a shard from an ID; plain ones don't.
//!
//! Pearson's chi-squared test of 131,072 IDs each time, against both tails: too uneven, and
//! too even for chance. The secret is fixed, so what a run finds every run finds. All 168
//! tests together would fail by chance once in a hundred secrets: each has its share of
//! that (Bonferroni), half of it on either side.

use std::time::Duration;

use ringflake::{Cipher, Layout, Secret};

/// How many raws are tried, of which kind.
const IDS: u64 = 1 << 17;

/// Shards, from two for a pair of databases to the slots of a large cluster.
const SHARDS: [u64; 16] = [
    2, 3, 4, 7, 8, 16, 32, 64, 100, 128, 256, 512, 1_000, 1_024, 2_048, 4_096,
];

/// Ways to take a shard from an ID: by its remainder, and where the shards are a power of
/// two, which makes the remainder its low bits, by its high bits as well.
const POWERS_OF_TWO: usize = 12;

/// Two ciphers, three kinds of raws.
const TESTS: usize = 2 * 3 * (SHARDS.len() + POWERS_OF_TWO);

/// The standard normal deviate that is passed with a probability of 0.01 / (2 x 168).
const DEVIATE: f64 = 4.014_690_66;

/// Room for a moment a day, on as many days as there are IDs.
fn layout() -> Layout {
    let builder = Layout::builder()
        .bits(40, 12, 11)
        .tick(Duration::from_secs(1));
    builder.build().unwrap()
}

/// Raws of one node: as a generator makes them one after another, and one in each of so
/// many ticks, as a quiet one does.
fn raws(kind: &str) -> Vec<u64> {
    let layout = layout();
    let first = |tick| layout.pack(40_000_000 + tick, 77, 0).unwrap();
    let raw = |number| match kind {
        "consecutive" => first(0) + number,
        "one a second" => first(number),
        _ => first(number * 86_400),
    };
    (0..IDS).map(raw).collect()
}

const KINDS: [&str; 3] = ["consecutive", "one a second", "one a day"];

/// The sum of (observed - expected)^2 / expected.
fn chi_squared(shards: u64, of: impl Iterator<Item = u64>) -> f64 {
    let mut observed = vec![0_u64; shards as usize];
    of.for_each(|shard| observed[shard as usize] += 1);
    let expected = IDS as f64 / shards as f64;
    let square = |&count: &u64| (count as f64 - expected).powi(2) / expected;
    observed.iter().map(square).sum()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    TooEven,
    ByChance,
    TooUneven,
}

/// On which side of the two quantiles the statistic lies (Wilson and Hilferty 1931, who
/// are a few percent too high for one degree of freedom and closer for more).
fn judge(statistic: f64, shards: u64) -> Verdict {
    let degrees = (shards - 1) as f64;
    let ninth = 2.0 / (9.0 * degrees);
    let quantile = |deviate: f64| {
        let root = 1.0 - ninth + deviate * ninth.sqrt();
        degrees * root.max(0.0).powi(3)
    };
    if statistic > quantile(DEVIATE) {
        Verdict::TooUneven
    } else if statistic < quantile(-DEVIATE) {
        Verdict::TooEven
    } else {
        Verdict::ByChance
    }
}

/// Calls `each` with every way to shard these IDs of so many bits: its name, the number of
/// shards, and the verdict with its statistic.
fn every_way(ids: &[u64], bits: u32, mut each: impl FnMut(&str, u64, Verdict, f64)) {
    for shards in SHARDS {
        let mut judged = |way, of: &mut dyn Iterator<Item = u64>| {
            let statistic = chi_squared(shards, of);
            each(way, shards, judge(statistic, shards), statistic);
        };
        judged("remainder", &mut ids.iter().map(|id| id % shards));
        if shards.is_power_of_two() {
            let shift = bits - shards.ilog2();
            judged("high bits", &mut ids.iter().map(|id| id >> shift));
        }
    }
}

#[test]
fn encrypted_ids_fall_evenly_into_shards() {
    let secret = Secret::from_hex("00112233445566778899aabbccddeeff").unwrap();
    let mut tests = 0;
    for cipher in [Cipher::sparx64(&secret), Cipher::positive(&secret)] {
        for kind in KINDS {
            let ids: Vec<_> = raws(kind).iter().map(|raw| cipher.encrypt(*raw)).collect();
            let bits = cipher.id_bits();
            every_way(&ids, bits, |way, shards, verdict, statistic| {
                tests += 1;
                assert_eq!(
                    verdict,
                    Verdict::ByChance,
                    "{kind}, {bits} bits, {shards} shards by {way}: {statistic}"
                );
            });
        }
    }
    assert_eq!(tests, TESTS, "the correction is for as many");
    assert_eq!(tests, 168);
}

/// The negative control: the same tests find out plain IDs, each in the way it is bad.
#[test]
fn plain_ids_do_not_fall_evenly_into_shards() {
    for kind in KINDS {
        every_way(&raws(kind), 63, |way, shards, verdict, statistic| {
            let about = || format!("{kind}, {shards} shards by {way}: {statistic}");
            let is_low_bits = way == "remainder" && shards.is_power_of_two();
            if way == "high bits" || (is_low_bits && kind != "consecutive") {
                // All or most of them in few shards.
                assert_eq!(verdict, Verdict::TooUneven, "{}", about());
            } else if kind == "consecutive" && shards >= 64 {
                assert_eq!(verdict, Verdict::TooEven, "{}", about());
            }
        });
    }
}

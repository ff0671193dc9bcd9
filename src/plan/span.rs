//! Lengths of time as they stand in a load: a whole number and one unit.

use std::fmt;
use std::time::Duration;

/// The units in nanoseconds, the largest first. The short ones come after those
/// that end in the same letter.
const UNITS: [(&str, u64); 6] = [
    ("min", 60_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The length of time that `text` says, if it says one that is not zero.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let (digits, nanos) = UNITS.into_iter().find_map(|(unit, nanos)| {
        let digits = text.strip_suffix(unit)?;
        Some((digits, nanos))
    })?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    let nanos = count.checked_mul(nanos)?;
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

/// Writes a length of time in the largest unit of which it is a multiple.
pub(super) struct Span(pub(super) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let fitting = UNITS
            .into_iter()
            .filter(|&(_, unit)| nanos.is_multiple_of(u128::from(unit)));
        let (unit, size) = fitting.max_by_key(|&(_, size)| size).unwrap_or(("ns", 1));
        write!(f, "{}{unit}", nanos / u128::from(size))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_length_has_one_unit() {
        assert_eq!(parse("100ms"), Some(Duration::from_millis(100)));
        assert_eq!(parse("5min"), Some(Duration::from_secs(300)));
        assert_eq!(parse("24h"), Some(Duration::from_secs(86_400)));
        assert_eq!(parse("250us"), Some(Duration::from_micros(250)));
        for wrong in [
            "",
            "s",
            "5",
            "0s",
            "-1s",
            "+1s",
            "1.5s",
            "1 s",
            "1m",
            "1s1ms",
            "18446744073709551616ns",
            "18446744073709551615h",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(nanos in 1..u64::MAX) {
            let span = Duration::from_nanos(nanos);
            prop_assert_eq!(parse(&Span(span).to_string()), Some(span));
        }

        #[test]
        fn round_lengths_too(count in 1..1000_u64, unit in 0..6_usize) {
            let span = Duration::from_nanos(count * UNITS[unit].1);
            prop_assert_eq!(parse(&Span(span).to_string()), Some(span));
        }
    }
}

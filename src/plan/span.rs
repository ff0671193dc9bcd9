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
    let in_unit = |(unit, nanos)| Some((text.strip_suffix::<&str>(unit)?, nanos));
    let (digits, nanos) = UNITS.into_iter().find_map(in_unit)?;
    let nanos = whole(digits)?.checked_mul(nanos)?;
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

/// A whole number without a sign.
pub(super) fn whole(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
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
    use super::*;

    #[test]
    fn a_length_has_one_unit() {
        assert_eq!(parse("100ms"), Some(Duration::from_millis(100)));
        assert_eq!(parse("5min"), Some(Duration::from_secs(300)));
        assert_eq!(parse("24h"), Some(Duration::from_secs(86_400)));
        assert_eq!(parse("250us"), Some(Duration::from_micros(250)));
        let [more, hours] = [format!("{}0ns", u64::MAX), format!("{}h", u64::MAX)];
        for wrong in [
            "", "s", "5", "0s", "-1s", "+1s", "1.5s", "1 s", "1m", "1s1ms", &more, &hours,
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}

//! Numbers as people read them, and times as whole milliseconds.

use std::time::Duration;

/// A count of IDs or a rate, with three digits and a unit: `950`, `1.25 M`.
pub(crate) fn short(value: f64) -> String {
    let units = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    scaled(value, &units, "")
}

/// A time that is given in seconds: `1.5 us`, `20 ms`, `3 h`.
pub(crate) fn time(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    const YEAR: f64 = 365.25 * DAY;
    if seconds >= YEAR {
        return format!("{} years", digits(seconds / YEAR));
    }
    let long = [(DAY, " days"), (HOUR, " h"), (MINUTE, " min")];
    for (unit, name) in long {
        if seconds >= 2.0 * unit {
            return format!("{}{name}", digits(seconds / unit));
        }
    }
    let units = [(1e9, " s"), (1e6, " ms"), (1e3, " us")];
    scaled(seconds * 1e9, &units, " ns")
}

/// Whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A share in percent, without the sign: `79`, and `<0.01` where digits would say 0.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent > 0.0 && percent < 0.01 {
        true => "<0.01".to_owned(),
        false => digits(percent),
    }
}

/// A number of bytes: `512 KiB`.
pub(crate) fn bytes(bytes: usize) -> String {
    let units = [(30, " GiB"), (20, " MiB"), (10, " KiB")];
    let units = units.map(|(shift, name)| (f64::from(1 << shift), name));
    scaled(bytes as f64, &units, " bytes")
}

/// A whole number in groups of three: `65,536`.
pub(crate) fn grouped(value: u64) -> String {
    match value {
        0..1000 => value.to_string(),
        _ => format!("{},{:03}", grouped(value / 1000), value % 1000),
    }
}

/// So many things: `1 node`, `65,536 nodes`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(count))
}

/// `value` in the first of these units that it reaches, the largest first, or in `rest`.
fn scaled(value: f64, units: &[(f64, &str)], rest: &str) -> String {
    // A value that would round up to the unit is printed in it.
    let found = units.iter().find(|(unit, _)| value >= unit * 0.9995);
    let (unit, name) = found.copied().unwrap_or((1.0, rest));
    format!("{}{name}", digits(value / unit))
}

/// Three digits at least, and no zeros after the point that say nothing.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        Some(_) => text.trim_end_matches('0').to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_three_digits_and_the_unit_that_suits_it() {
        for (value, text) in [
            (0.0, "0"),
            (950.0, "950"),
            (999.6, "1 k"),
            (1250.0, "1.25 k"),
            (2.9e6, "2.9 M"),
            (131_072.0 * 32.0, "4.19 M"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_time_has_the_unit_that_suits_it() {
        for (seconds, text) in [
            (0.0, "0 ns"),
            (3e-9, "3 ns"),
            (2e-6, "2 us"),
            (0.0505, "50.5 ms"),
            (0.9999, "1 s"),
            (59.0, "59 s"),
            (600.0, "10 min"),
            (32.0 * 365.25 * 86400.0, "32 years"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn a_share_is_never_rounded_to_nothing() {
        for (share, text) in [(0.0, "0"), (1e-6, "<0.01"), (0.0003, "0.03"), (0.79, "79")] {
            assert_eq!(percent(share), text);
        }
        assert_eq!(percent(7.63), "763");
    }

    #[test]
    fn bytes_and_whole_numbers_are_grouped() {
        assert_eq!(bytes(512), "512 bytes");
        assert_eq!(bytes(8 << 16), "512 KiB");
        assert_eq!(bytes(8 << 18), "2 MiB");
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(65_536), "65,536");
        assert_eq!(grouped(1_048_576), "1,048,576");
    }
}

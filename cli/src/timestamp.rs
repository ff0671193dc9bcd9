//! Unix milliseconds as text.

use std::time::{Duration, UNIX_EPOCH};

/// RFC 3339 has four digits for the year.
pub(crate) const END_OF_9999_UNIX_MS: u64 = 253_402_300_800_000;

/// `unix_ms` as RFC 3339 in UTC; `None` after the year 9999.
pub(crate) fn rfc3339(unix_ms: u64, with_ms: bool) -> Option<String> {
    if unix_ms >= END_OF_9999_UNIX_MS {
        return None;
    }
    let time = UNIX_EPOCH + Duration::from_millis(unix_ms);
    Some(if with_ms {
        humantime::format_rfc3339_millis(time).to_string()
    } else {
        humantime::format_rfc3339_seconds(time).to_string()
    })
}

/// RFC 3339, with milliseconds where there are any; `None` after the year 9999.
pub(crate) fn exact(unix_ms: u64) -> Option<String> {
    rfc3339(unix_ms, !unix_ms.is_multiple_of(1000))
}

/// `unix_ms` for a sentence: RFC 3339 to the second, or the number.
pub(crate) fn in_words(unix_ms: u64) -> String {
    rfc3339(unix_ms, false).unwrap_or_else(|| format!("Unix time {unix_ms} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_after_the_year_9999_has_no_text() {
        let last = END_OF_9999_UNIX_MS - 1;
        assert_eq!(rfc3339(last, true).unwrap(), "9999-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(last + 1, true), None);
        assert_eq!(rfc3339(u64::MAX, false), None);
        assert_eq!(in_words(u64::MAX), "Unix time 18446744073709551615 ms");
    }
}

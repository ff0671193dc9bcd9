//! Unix milliseconds as RFC 3339 text.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year.
pub(super) const LATEST_UNIX_MS: u64 = 253_402_300_799_999;

/// Displays milliseconds since 1970 as a date and time in UTC, with a fraction
/// if there is one. Of times past the year 9999 it displays the year alone.
pub(crate) struct Utc(pub(crate) u64);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(unix_ms) = *self;
        if unix_ms > LATEST_UNIX_MS {
            // RFC 3339 can't write it. The year is exact enough for people.
            return write!(f, "the year {}", 1970 + unix_ms / 31_556_952_000);
        }
        let time = UNIX_EPOCH + Duration::from_millis(unix_ms);
        if unix_ms.is_multiple_of(1_000) {
            humantime::format_rfc3339_seconds(time).fmt(f)
        } else {
            humantime::format_rfc3339_millis(time).fmt(f)
        }
    }
}

/// Displays a time in days to milliseconds, such as `1m 30s` or `366 days`, rounded up.
pub(crate) fn span(time: Duration) -> Span {
    let ms = time.as_nanos().div_ceil(1_000_000);
    Span(Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)))
}

/// Whole milliseconds.
pub(crate) struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY_SECS: u64 = 86_400;
        let days = self.0.as_secs() / DAY_SECS;
        let rest = self.0 - Duration::from_secs(days * DAY_SECS);
        // Without humantime's years and months, which are no whole days.
        match days {
            0 => return humantime::format_duration(rest).fmt(f),
            1 => f.write_str("1 day")?,
            _ => write!(f, "{days} days")?,
        }
        if rest.is_zero() {
            return Ok(());
        }
        write!(f, " {}", humantime::format_duration(rest))
    }
}

/// Displays a moment as [`Utc`] does, to the millisecond.
pub(crate) struct Moment(pub(crate) SystemTime);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.duration_since(UNIX_EPOCH) {
            Ok(age) => {
                let unix_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
                fmt::Display::fmt(&Utc(unix_ms), f)
            }
            Err(_) => f.write_str("a moment before 1970"),
        }
    }
}

/// Reads RFC 3339 in UTC, from 1970 to 9999. The error says what is wrong.
pub(super) fn parse_unix_ms(text: &str) -> Result<u64, String> {
    let time = humantime::parse_rfc3339(text).map_err(|error| error.to_string())?;
    let since_1970 = time
        .duration_since(UNIX_EPOCH)
        .map_err(|_| "it lies before 1970")?;
    if !since_1970.subsec_nanos().is_multiple_of(1_000_000) {
        return Err("it has a fraction of a millisecond".into());
    }
    u64::try_from(since_1970.as_millis()).map_err(|_| "it lies after the year 9999".into())
}

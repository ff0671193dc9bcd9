//! The clock of a member, out of the `Date` of its replies.
//!
//! etcd's own interface has no time, but the server of its JSON gateway sends
//! the date as HTTP asks of it, to the second. The time of the member then lies
//! in `[date, date + 1 s)`. Decisions use the beginning of that
//! second, so that no grant reaches beyond the horizon. Two clocks are apart by
//! no less than the nearest moment at which the member can have sent its reply.
//!
//! The date belongs to a read that comes before the transaction, and the
//! transaction is only done if nothing has changed since. So the date is older than the
//! transaction, never newer.

use std::time::UNIX_EPOCH;

/// The start of the second that an HTTP date names, in milliseconds since 1970.
pub(super) fn parse(date: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(date).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_http_is_read() {
        assert_eq!(
            parse("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777_000)
        );
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for wrong in [
            "",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 08:49:37 GMT GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nox 1994 08:49:37 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}

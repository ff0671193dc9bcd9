//! What somebody ought to know, in words.
//!
//! Each alert says what is the matter, what will happen if nothing is done, and what to do.
//! They are of this moment: what is over is in the log and in the metrics.

use std::time::Duration;

use ringflake::Stats;
use ringflake::lease::{GrantState, LeaseStatus};
use serde::Serialize;

use crate::readiness::Obstacle;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// It may explain something.
    Note,
    /// Somebody should look at it today.
    Warning,
    /// No ID is issued, or soon none will be.
    Critical,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Alert {
    severity: Severity,
    text: String,
}

pub(super) struct Facts<'a> {
    pub(super) unix_ms: u64,
    /// For how long it can issue IDs though no store answers, or why it can issue none.
    pub(super) readiness: Result<Duration, Obstacle>,
    pub(super) stats: &'a Stats,
    /// None where the lease was given.
    pub(super) leases: Option<&'a LeaseStatus>,
    pub(super) layout_end_unix_ms: u64,
}

/// A layout that ends within this time has to be replaced in time.
const LAYOUT_ENDS_SOON: Duration = Duration::from_secs(365 * 24 * 3600);

/// The alerts of a namespace, the most urgent first.
pub(super) fn of(facts: &Facts<'_>) -> Vec<Alert> {
    let mut alerts = Vec::new();
    macro_rules! say {
        ($severity:expr, $($text:tt)+) => {
            alerts.push(Alert { severity: $severity, text: format!($($text)+) })
        };
    }
    let (now, stats) = (facts.unix_ms, facts.stats);
    match facts.readiness {
        Err(Obstacle::NoLease) => {
            let since = facts.leases.and_then(|it| it.expired_since_unix_ms);
            let first = since.map_or("No lease is in force".to_owned(), |since| {
                format!("No lease has been in force for {}", elapsed(now, since))
            });
            say!(
                Severity::Critical,
                "{first}: no ID is issued. The store must be reachable and have a free block."
            );
        }
        Err(Obstacle::Ahead { retry_after }) => say!(
            Severity::Critical,
            "The next ID lies further ahead of the clock than may be borrowed: no ID is issued \
             for {} more. The lease begins later, as after a start with an unknown past, or the \
             clock was set back. Wait, or take from another server.",
            span(retry_after)
        ),
        _ => {}
    }
    if let Some(leases) = facts.leases
        && let Some(since) = leases.health.failing_since_unix_ms
    {
        let left = facts.readiness.unwrap_or(Duration::ZERO);
        // As the shipped rule `RingflakeLeaseRunsOut` has it.
        let severity = match left < leases.lease_duration / 3 {
            true => Severity::Critical,
            false => Severity::Warning,
        };
        say!(
            severity,
            "Requests to the store have failed for {}. IDs can be issued for {} more.",
            elapsed(now, since),
            span(left)
        );
    }
    let (borrowed, limit) = (stats.borrowed, stats.borrow_limit);
    if !limit.is_zero() && limit != Duration::MAX && borrowed * 10 >= limit * 9 {
        say!(
            Severity::Warning,
            "IDs are made {} ahead of the clock, of the {} that may be borrowed: more are taken \
             than the leases sustain, or the clock was set back. Takes wait or fail at the limit. \
             More blocks raise what is sustained.",
            span(borrowed),
            span(limit)
        );
    }
    let panics = stats.panics;
    if panics > 0 {
        let text = "fills ended in a panic, which is a bug: the log has its text.";
        say!(Severity::Warning, "{panics} {text}");
    }
    let left = Duration::from_millis(facts.layout_end_unix_ms.saturating_sub(now));
    if left < LAYOUT_ENDS_SOON {
        say!(
            Severity::Warning,
            "The layout has no more ticks in {}. Begin a namespace with another layout before that.",
            span(left)
        );
    }
    let grants = facts.leases.into_iter().flat_map(|it| &it.grants);
    let given_up = grants.filter(|it| it.state == GrantState::Draining).count();
    if given_up > 0 {
        say!(
            Severity::Note,
            "{given_up} blocks are given up: the store refused to renew them, or its reply was \
             lost. What was confirmed of them is used; others have taken their place."
        );
    }
    // One in a thousand, of enough to say so.
    let empties = stats.empties;
    if stats.issued >= 1_000_000 && empties >= stats.issued / 1000 {
        say!(
            Severity::Note,
            "{empties} takes found the ring empty, and made IDs in place. A larger capacity spares \
             them that microsecond."
        );
    }
    alerts
}

fn elapsed(now_unix_ms: u64, then_unix_ms: u64) -> String {
    span(Duration::from_millis(
        now_unix_ms.saturating_sub(then_unix_ms),
    ))
}

/// A span of time in its largest unit, or two.
fn span(time: Duration) -> String {
    let secs = time.as_secs();
    match secs {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{secs} s"),
        60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        3600..86_400 => format!("{} h {} min", secs / 3600, secs / 60 % 60),
        _ => format!("{} days", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use ringflake::CachedGenerator;

    use super::Severity::{Critical, Note, Warning};
    use super::*;

    const NOW: u64 = 1_800_000_000_000;
    const YEAR: u64 = 365 * 24 * 3600 * 1000;
    const LASTS: Result<Duration, Obstacle> = Ok(Duration::from_secs(120));
    const AHEAD: Result<Duration, Obstacle> = Err(Obstacle::Ahead {
        retry_after: Duration::from_secs(61),
    });
    const NO_LEASE: Result<Duration, Obstacle> = Err(Obstacle::NoLease);

    type Change = fn(&mut Stats, &mut LeaseStatus, &mut u64);

    /// The alerts of a namespace that is healthy but for this.
    fn alerts(
        ids: &CachedGenerator,
        readiness: Result<Duration, Obstacle>,
        change: Change,
    ) -> Vec<Alert> {
        let mut leases = ids.lease_status().unwrap();
        let (mut stats, mut layout_end_unix_ms) = (Stats::default(), NOW + YEAR);
        stats.borrow_limit = Duration::from_secs(10);
        change(&mut stats, &mut leases, &mut layout_end_unix_ms);
        of(&Facts {
            unix_ms: NOW,
            readiness,
            stats: &stats,
            leases: Some(&leases),
            layout_end_unix_ms,
        })
    }

    #[test]
    fn each_alert_has_its_limit_and_the_most_urgent_comes_first() {
        #[rustfmt::skip]
        let cases: [(_, Change, &[Severity]); 14] = [
            (LASTS, |_, _, _| {}, &[]),
            (NO_LEASE, |_, _, _| {}, &[Critical]),
            (AHEAD, |_, _, _| {}, &[Critical]),
            (LASTS, |_, _, end| *end -= 1, &[Warning]),
            (LASTS, |it, _, _| it.borrowed = Duration::from_secs(9), &[Warning]),
            (LASTS, |it, _, _| it.borrowed = Duration::from_millis(8_999), &[]),
            (LASTS, |it, _, _| (it.borrowed, it.borrow_limit) = Default::default(), &[]),
            (LASTS, |it, _, _| it.panics = 1, &[Warning]),
            (LASTS, |it, _, _| (it.issued, it.empties) = (1_000_000, 1_000), &[Note]),
            (LASTS, |it, _, _| (it.issued, it.empties) = (1_000_000, 999), &[]),
            (LASTS, |it, _, _| (it.issued, it.empties) = (999_999, 999_999), &[]),
            (LASTS, |_, of, _| of.grants[0].state = GrantState::Draining, &[Note]),
            (LASTS, |_, of, _| of.health.failing_since_unix_ms = Some(NOW), &[Warning]),
            (NO_LEASE, |it, _, _| (it.issued, it.empties, it.panics) = (1_000_000, 1_000, 1), &[Critical, Warning, Note]),
        ];
        let home = tempfile::tempdir().unwrap();
        let ids = ringflake::local_in(home.path(), "orders").unwrap();
        for (at, (readiness, change, expected)) in cases.into_iter().enumerate() {
            let found = alerts(&ids, readiness, change);
            let severities: Vec<_> = found.iter().map(|alert| alert.severity).collect();
            assert_eq!(severities, expected, "case {at}: {found:?}");
        }
    }

    #[test]
    fn an_alert_says_since_when_and_for_how_long() {
        let home = tempfile::tempdir().unwrap();
        let ids = ringflake::local_in(home.path(), "orders").unwrap();
        let away: Change = |_, of, _| {
            of.lease_duration = Duration::from_secs(600);
            of.health.failing_since_unix_ms = Some(NOW - 61_000);
        };
        for (left_ms, severity, left) in [
            (200_000, Warning, "3 min 20 s"),
            (199_999, Critical, "3 min 19 s"),
        ] {
            let found = alerts(&ids, Ok(Duration::from_millis(left_ms)), away);
            let text = format!(
                "Requests to the store have failed for 1 min 1 s. IDs can be issued for {left} \
                 more."
            );
            assert_eq!(found, [Alert { severity, text }]);
        }
        let found = alerts(&ids, NO_LEASE, |_, of, _| {
            of.expired_since_unix_ms = Some(NOW - 5_000);
        });
        let start = "No lease has been in force for 5 s:";
        assert!(found[0].text.starts_with(start), "{found:?}");
    }

    #[test]
    fn a_span_has_its_largest_units() {
        for (ms, text) in [
            (999, "999 ms"),
            (1_000, "1 s"),
            (59_999, "59 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
            (172_800_000, "2 days"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), text);
        }
    }
}

//! The counters, and how much of each was published.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::catalogue::{self as metric, Metric};
use crate::generator::Stats;
use crate::lease::{FenceCounts, LeaseStatus, RenewalCounts};
use crate::timeline::RefusalCounts;

/// One counter, as the generator has it.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) metric: &'static Metric,
    /// Which part of the metric it is, by a label.
    pub(super) part: Option<(&'static str, &'static str)>,
    pub(super) count: u64,
}

/// The published part of each counter, in the order of [`counted`].
#[derive(Debug)]
pub(super) struct Published(Vec<AtomicU64>);

impl Published {
    pub(super) fn nothing() -> Self {
        Self((0..COUNTERS).map(|_| AtomicU64::new(0)).collect())
    }

    /// Each counter, and how much has come to it since it was handed on last. Of calls at
    /// one time each gets a part. One that has gone down stays until it is exceeded.
    pub(super) fn more<'a>(
        &'a self,
        counted: &'a [Counted],
    ) -> impl Iterator<Item = (&'a Counted, u64)> {
        // Relaxed: each word decides alone.
        let more = |(counted, published): (&'a Counted, &'a AtomicU64)| {
            let before = published.fetch_max(counted.count, Relaxed);
            (counted, counted.count.saturating_sub(before))
        };
        debug_assert!(counted.len() <= COUNTERS);
        counted.iter().zip(&self.0).map(more)
    }
}

/// How many counters there are where a store leases the nodes; others have fewer.
const COUNTERS: usize = 33;

/// All counters, always in the same order: those of leases from a store come last.
pub(super) fn counted(stats: &Stats, lease: Option<&LeaseStatus>) -> Vec<Counted> {
    let (fills, failed) = (stats.fills, stats.failed);
    let mut all = Vec::with_capacity(COUNTERS);
    all.push(whole(&metric::IDS_ISSUED, stats.issued));
    let causes = [
        ("padding", fills.padding),
        ("threshold", fills.threshold),
        ("scheduled", fills.scheduled),
        ("assist", fills.assist),
    ];
    all.extend(parts(&metric::REFILLS, "cause", causes));
    all.push(whole(&metric::EMPTIES, stats.empties));
    all.push(whole(&metric::IN_PLACE, stats.in_place));
    let refused = by_reason(stats.refused);
    all.extend(parts(&metric::REFUSALS, "reason", refused));
    let refused = by_reason(failed.refused);
    all.extend(parts(&metric::FAILED_TAKES, "reason", refused));
    let others = [("empty", failed.empty), ("timed_out", failed.timed_out)];
    all.extend(parts(&metric::FAILED_TAKES, "reason", others));
    all.push(whole(&metric::RETIRED, stats.retired));
    all.push(whole(&metric::PRODUCER_PANICS, stats.panics));
    if let Some(lease) = lease {
        let counts = lease.counts;
        let renewals = by_outcome(counts.renewals);
        all.extend(parts(&metric::LEASE_RENEWALS, "outcome", renewals));
        all.extend(parts(&metric::FENCED, "fence", by_fence(counts.fenced)));
        all.push(whole(&metric::HISTORY_LOST, counts.history_lost));
    }
    all
}

fn whole(metric: &'static Metric, count: u64) -> Counted {
    Counted {
        metric,
        part: None,
        count,
    }
}

/// The parts of a counter, by the values of a label.
fn parts<const N: usize>(
    metric: &'static Metric,
    label: &'static str,
    counts: [(&'static str, u64); N],
) -> impl Iterator<Item = Counted> {
    counts.into_iter().map(move |(value, count)| Counted {
        metric,
        part: Some((label, value)),
        count,
    })
}

fn by_reason(counts: RefusalCounts) -> [(&'static str, u64); 4] {
    [
        ("borrow_limit", counts.borrow_limit),
        ("lease_ended", counts.lease_ended),
        ("no_lease", counts.no_lease),
        ("invalidated", counts.invalidated),
    ]
}

fn by_outcome(counts: RenewalCounts) -> [(&'static str, u64); 6] {
    [
        ("renewed", counts.renewed),
        ("fenced", counts.fenced),
        ("unavailable", counts.unavailable),
        ("denied", counts.denied),
        ("ambiguous", counts.ambiguous),
        ("other", counts.other),
    ]
}

fn by_fence(counts: FenceCounts) -> [(&'static str, u64); 7] {
    [
        ("never_granted", counts.never_granted),
        ("epoch", counts.epoch),
        ("end", counts.end),
        ("floor", counts.floor),
        ("incarnation", counts.incarnation),
        ("upstream", counts.upstream),
        ("quarantined", counts.quarantined),
    ]
}

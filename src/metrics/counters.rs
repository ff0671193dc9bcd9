//! The counters, and how much of each was published.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::catalogue::{self as metric, Metric};
use super::snapshot::Snapshot;
use crate::generator::Stats;
use crate::lease::{FenceCounts, LeaseCounts, RenewalCounts};
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
        Self((0..STRIPES + REQUESTS).map(|_| AtomicU64::new(0)).collect())
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
        counted.iter().zip(&self.0).map(more)
    }
}

/// How many counters any generator has.
const STRIPES: usize = 19;

/// How many more there are where a store leases the nodes.
const REQUESTS: usize = 14;

/// All counters, always in the same order: those of leases from a store come last.
pub(super) fn counted(snapshot: &Snapshot) -> Vec<Counted> {
    let mut all = Vec::with_capacity(STRIPES + REQUESTS);
    all.extend(of_stripes(&snapshot.stats));
    if let Some(lease) = &snapshot.lease {
        all.extend(of_requests(lease.counts));
    }
    all
}

fn of_stripes(stats: &Stats) -> [Counted; STRIPES] {
    let (fills, failed) = (stats.fills, stats.failed);
    let refills = |cause, count| part(&metric::REFILLS, ("cause", cause), count);
    let refused = |at: usize| {
        let (reason, count) = by_reason(stats.refused)[at];
        part(&metric::REFUSALS, ("reason", reason), count)
    };
    let failed_takes = |reason, count| part(&metric::FAILED_TAKES, ("reason", reason), count);
    let failed_by_reason = |at: usize| {
        let (reason, count) = by_reason(failed.refused)[at];
        failed_takes(reason, count)
    };
    [
        whole(&metric::IDS_ISSUED, stats.issued),
        refills("padding", fills.padding),
        refills("threshold", fills.threshold),
        refills("scheduled", fills.scheduled),
        refills("assist", fills.assist),
        whole(&metric::EMPTIES, stats.empties),
        whole(&metric::IN_PLACE, stats.in_place),
        refused(0),
        refused(1),
        refused(2),
        refused(3),
        failed_by_reason(0),
        failed_by_reason(1),
        failed_by_reason(2),
        failed_by_reason(3),
        failed_takes("empty", failed.empty),
        failed_takes("timed_out", failed.timed_out),
        whole(&metric::RETIRED, stats.retired),
        whole(&metric::PRODUCER_PANICS, stats.panics),
    ]
}

fn of_requests(counts: LeaseCounts) -> impl Iterator<Item = Counted> {
    let renewals = by_outcome(counts.renewals).into_iter();
    let renewals =
        renewals.map(|(outcome, count)| part(&metric::LEASE_RENEWALS, ("outcome", outcome), count));
    let fenced = by_fence(counts.fenced).into_iter();
    let fenced = fenced.map(|(fence, count)| part(&metric::FENCED, ("fence", fence), count));
    renewals
        .chain(fenced)
        .chain([whole(&metric::HISTORY_LOST, counts.history_lost)])
}

fn whole(metric: &'static Metric, count: u64) -> Counted {
    Counted {
        metric,
        part: None,
        count,
    }
}

fn part(metric: &'static Metric, part: (&'static str, &'static str), count: u64) -> Counted {
    Counted {
        metric,
        part: Some(part),
        count,
    }
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

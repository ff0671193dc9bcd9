//! Hands a snapshot to a recorder.

use std::time::Duration;

use ::metrics::{Key, Label, Level, Metadata, Recorder};

use super::catalogue::{self as metric, Metric};
use super::snapshot::Snapshot;
use crate::generator::Stats;
use crate::lease::{FenceCounts, GrantState, LeaseStatus, Renewal, RenewalCounts, RenewalOutcome};
use crate::timeline::RefusalCounts;

static METADATA: Metadata<'static> =
    Metadata::new("ringflake", Level::INFO, Some("ringflake::metrics"));

/// Where metrics go, and under which labels.
pub(super) struct Report<'a> {
    pub(super) recorder: &'a dyn Recorder,
    pub(super) labels: &'a [Label],
}

impl Report<'_> {
    /// `issued` is what is published of IDs that were issued.
    pub(super) fn all(&self, snapshot: &Snapshot, issued: u64) {
        self.stripes(&snapshot.stats, issued);
        self.limits(snapshot);
        if let Some(lease) = &snapshot.lease {
            self.lease(lease, snapshot.stats.now_unix_ms);
            self.requests(lease);
        }
        self.durations(&snapshot.renewals);
    }

    fn stripes(&self, stats: &Stats, issued: u64) {
        self.counter(&metric::IDS_ISSUED, issued);
        let fills = stats.fills;
        for (cause, count) in [
            ("padding", fills.padding),
            ("threshold", fills.threshold),
            ("scheduled", fills.scheduled),
            ("assist", fills.assist),
        ] {
            self.counter_of(&metric::REFILLS, ("cause", cause), count);
        }
        self.counter(&metric::EMPTIES, stats.empties);
        self.counter(&metric::IN_PLACE, stats.in_place);
        for (reason, count) in by_reason(stats.refused) {
            self.counter_of(&metric::REFUSALS, ("reason", reason), count);
        }
        let failed = stats.failed;
        let others = [("empty", failed.empty), ("timed_out", failed.timed_out)];
        for (reason, count) in by_reason(failed.refused).into_iter().chain(others) {
            self.counter_of(&metric::FAILED_TAKES, ("reason", reason), count);
        }
        self.counter(&metric::RETIRED, stats.retired);
        self.counter(&metric::PRODUCER_PANICS, stats.panics);
        let (level, capacity) = (stats.level as f64, stats.capacity as f64);
        self.gauge(&metric::LEVEL, level);
        self.gauge(&metric::CAPACITY, capacity);
        self.gauge(&metric::FILL_RATIO, level / capacity);
    }

    fn limits(&self, snapshot: &Snapshot) {
        let stats = &snapshot.stats;
        self.seconds(&metric::BORROWED, stats.borrowed);
        self.seconds(&metric::BORROW_LIMIT, stats.borrow_limit);
        let left_ms = stats.lease_end_unix_ms.saturating_sub(stats.now_unix_ms);
        self.seconds(&metric::LEASE_REMAINING, Duration::from_millis(left_ms));
        self.seconds(&metric::LAYOUT_REMAINING, snapshot.layout_left);
        let labels = [
            Label::from_static_parts("version", env!("CARGO_PKG_VERSION")),
            Label::new("backend", snapshot.backend.clone()),
            Label::new("layout", snapshot.layout.clone()),
        ];
        self.set(&metric::BUILD_INFO, &labels, 1.0);
    }

    fn lease(&self, lease: &LeaseStatus, now_unix_ms: u64) {
        for (name, state) in [
            ("held", GrantState::Held),
            ("lapsing", GrantState::Lapsing),
            ("draining", GrantState::Draining),
        ] {
            let count = lease
                .grants
                .iter()
                .filter(|held| held.state == state)
                .count();
            let label = Label::from_static_parts("state", name);
            self.set(&metric::LEASE_BLOCKS, &[label], count as f64);
        }
        self.gauge(&metric::LEASE_BLOCKS_TARGET, lease.target.into());
        self.seconds(&metric::LEASE_DURATION, lease.lease_duration);
        let since = lease.health.failing_since_unix_ms;
        // A clock that was set back meanwhile makes it 0, as if it had begun now.
        let failing_ms = since.map_or(0, |since| now_unix_ms.saturating_sub(since));
        self.seconds(
            &metric::LEASE_STORE_FAILING,
            Duration::from_millis(failing_ms),
        );
        if let Some(clock) = lease.clock {
            self.gauge(&metric::CLOCK_SKEW, clock.store_ahead_ms as f64 / 1e3);
        }
    }

    fn requests(&self, lease: &LeaseStatus) {
        let counts = lease.counts;
        for (outcome, count) in by_outcome(counts.renewals) {
            self.counter_of(&metric::LEASE_RENEWALS, ("outcome", outcome), count);
        }
        for (fence, count) in by_fence(counts.fenced) {
            self.counter_of(&metric::FENCED, ("fence", fence), count);
        }
        self.counter(&metric::HISTORY_LOST, counts.history_lost);
        self.counter(&metric::INCARNATION_CHANGES, counts.incarnation_changes);
    }

    fn durations(&self, renewals: &[Renewal]) {
        for renewal in renewals {
            let label = Label::from_static_parts("outcome", name_of(renewal.outcome));
            let key = self.key(&metric::LEASE_RENEW_DURATION, &[label]);
            let histogram = self.recorder.register_histogram(&key, &METADATA);
            histogram.record(renewal.took.as_secs_f64());
        }
    }

    fn counter(&self, metric: &Metric, count: u64) {
        self.absolute(metric, &[], count);
    }

    fn counter_of(&self, metric: &Metric, label: (&'static str, &'static str), count: u64) {
        let label = Label::from_static_parts(label.0, label.1);
        self.absolute(metric, &[label], count);
    }

    fn absolute(&self, metric: &Metric, labels: &[Label], count: u64) {
        let key = self.key(metric, labels);
        self.recorder
            .register_counter(&key, &METADATA)
            .absolute(count);
    }

    fn gauge(&self, metric: &Metric, value: f64) {
        self.set(metric, &[], value);
    }

    fn seconds(&self, metric: &Metric, value: Duration) {
        self.gauge(metric, value.as_secs_f64());
    }

    fn set(&self, metric: &Metric, labels: &[Label], value: f64) {
        let key = self.key(metric, labels);
        self.recorder.register_gauge(&key, &METADATA).set(value);
    }

    fn key(&self, metric: &Metric, labels: &[Label]) -> Key {
        Key::from_parts(metric.name, [self.labels, labels].concat())
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
        (name_of(RenewalOutcome::Renewed), counts.renewed),
        (name_of(RenewalOutcome::Fenced), counts.fenced),
        (name_of(RenewalOutcome::Unavailable), counts.unavailable),
        (name_of(RenewalOutcome::Denied), counts.denied),
        (name_of(RenewalOutcome::Ambiguous), counts.ambiguous),
        (name_of(RenewalOutcome::Other), counts.other),
    ]
}

fn name_of(outcome: RenewalOutcome) -> &'static str {
    match outcome {
        RenewalOutcome::Renewed => "renewed",
        RenewalOutcome::Fenced => "fenced",
        RenewalOutcome::Unavailable => "unavailable",
        RenewalOutcome::Denied => "denied",
        RenewalOutcome::Ambiguous => "ambiguous",
        RenewalOutcome::Other => "other",
    }
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

//! Hands the figures of a generator to a recorder.

use std::time::Duration;

use ::metrics::{Key, Label, Level, Metadata, Recorder};

use super::catalogue::{self as metric, Metric};
use super::counters::{self, Counted, Published};
use crate::generator::Stats;
use crate::layout::Layout;
use crate::lease::{GrantState, LeaseStatus};

static METADATA: Metadata<'static> =
    Metadata::new("ringflake", Level::INFO, Some("ringflake::metrics"));

/// Where metrics go, and under which labels.
pub(super) struct Report<'a> {
    pub(super) recorder: &'a dyn Recorder,
    pub(super) labels: &'a [Label],
    pub(super) layout: &'a Layout,
    pub(super) build_info: &'a [Label],
}

impl Report<'_> {
    /// Adds to the counters what was not `published` yet, and sets the gauges.
    pub(super) fn all(&self, stats: &Stats, lease: Option<&LeaseStatus>, published: &Published) {
        self.counters(published.more(&counters::counted(stats, lease)));
        self.stripes(stats);
        self.limits(stats);
        if let Some(lease) = lease {
            self.lease(lease, stats.now_unix_ms);
        }
    }

    fn stripes(&self, stats: &Stats) {
        let (level, capacity) = (stats.level as f64, stats.capacity as f64);
        self.gauge(&metric::LEVEL, level);
        self.gauge(&metric::CAPACITY, capacity);
        self.gauge(&metric::FILL_RATIO, level / capacity);
    }

    fn limits(&self, stats: &Stats) {
        self.seconds(&metric::BORROWED, stats.borrowed);
        self.seconds(&metric::BORROW_LIMIT, stats.borrow_limit);
        let left_ms = stats.lease_end_unix_ms.saturating_sub(stats.now_unix_ms);
        self.seconds(&metric::LEASE_REMAINING, Duration::from_millis(left_ms));
        let left = self.layout.remaining_lifetime(stats.now_unix_ms);
        self.seconds(&metric::LAYOUT_REMAINING, left);
        self.set(&metric::BUILD_INFO, self.build_info, 1.0);
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
    }

    fn counters<'a>(&self, more: impl Iterator<Item = (&'a Counted, u64)>) {
        for (counted, more) in more {
            let part = counted.part;
            let part = part.map(|(name, value)| Label::from_static_parts(name, value));
            let key = self.key(counted.metric, part.as_slice());
            let counter = self.recorder.register_counter(&key, &METADATA);
            // By nothing too: then it is there.
            counter.increment(more);
        }
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

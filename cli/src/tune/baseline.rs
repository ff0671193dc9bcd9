//! The same load without a ring: what is late for want of a core, and not of an ID.

use crate::drive::measurement::Measurement;
use crate::load::PERCENTILES;
use crate::tune::trial::latency_at;

/// All runs of the load with takes that cost nothing.
///
/// Its consumers are as many as those of a trial, are due at the same moments, and have no
/// producer beside them. So what a take lasts longer than here comes from the ring, or
/// from sharing the cores with a producer.
#[derive(Clone, Debug)]
pub(super) struct Baseline {
    pub(super) total: Measurement,
}

impl Baseline {
    /// All of `runs` together; `None` if there were none.
    pub(super) fn of(runs: impl IntoIterator<Item = Measurement>) -> Option<Self> {
        let add = |mut total: Measurement, run: Measurement| {
            total.demanded += run.demanded;
            total.taken += run.taken;
            total.by_end += run.by_end;
            total.away += run.away;
            total.missed += run.missed;
            total.latency += run.latency;
            total.took += run.took;
            total
        };
        let total = runs.into_iter().reduce(add)?;
        // Of a run that was broken off at once nothing is known.
        (total.taken > 0).then_some(Self { total })
    }

    /// Seconds that a share of the takes did not exceed.
    pub(super) fn latency_at(&self, share: f64) -> f64 {
        latency_at(&self.total, share)
    }

    /// Seconds, for each of the named percentiles.
    pub(super) fn latencies(&self) -> [f64; PERCENTILES.len()] {
        PERCENTILES.map(|(_, share)| self.latency_at(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::trial::tests::measurement;

    #[test]
    fn all_runs_count_and_none_without_takes() {
        assert!(Baseline::of([]).is_none());
        assert!(Baseline::of([Measurement::nothing()]).is_none());
        let runs = [100, 900].map(|nanos| measurement(0, nanos, 1));
        let taken = runs[0].taken;
        let baseline = Baseline::of(runs).unwrap();
        assert_eq!(baseline.total.taken, 2 * taken);
        assert_eq!(baseline.total.took.as_secs(), 2);
        let [half, .., longest] = baseline.latencies();
        assert!(half < 150e-9 && longest > 800e-9, "{half} {longest}");
    }
}

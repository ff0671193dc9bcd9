//! Samples, sorted by what they are about.

use std::collections::BTreeMap;
use std::time::Instant;

use super::exposition::Sample;

/// An answer, or why there is none.
pub(super) type Reading = Result<Snapshot, String>;

/// All figures of a process at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) at: Instant,
    /// Of the library, if it says so.
    pub(super) version: Option<String>,
    /// By name; one without a label has the empty one.
    pub(super) namespaces: BTreeMap<String, Figures>,
}

/// Those of a namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) issued: f64,
    pub(super) refills: f64,
    pub(super) failed_takes: f64,
    pub(super) level: f64,
    pub(super) capacity: f64,
    pub(super) borrowed: f64,
    pub(super) borrow_limit: f64,
    pub(super) lease_remaining: f64,
    pub(super) store_failing: f64,
}

/// Labels that say which part of a figure it is, and not whose.
const PARTS: [&str; 8] = [
    "cause", "reason", "state", "outcome", "le", "quantile", "version", "backend",
];

impl Snapshot {
    pub(super) fn new(at: Instant, samples: impl Iterator<Item = Sample>) -> Self {
        let mut snapshot = Self {
            at,
            version: None,
            namespaces: BTreeMap::new(),
        };
        for sample in samples {
            if let Some(name) = sample.name.strip_prefix("ringflake_") {
                snapshot.take(name, &sample);
            }
        }
        snapshot
    }

    fn take(&mut self, name: &str, sample: &Sample) {
        if name == "build_info" {
            self.version = sample.labels.get("version").cloned();
            return;
        }
        // Only what is shown makes a namespace.
        if Figures::default().figure(name).is_none() {
            return;
        }
        let figures = self.namespaces.entry(owner(sample)).or_default();
        if let Some(figure) = figures.figure(name) {
            // Parts of one figure add up.
            *figure += sample.value;
        }
    }

    /// Whether every namespace can issue IDs.
    pub(super) fn is_ready(&self) -> bool {
        self.namespaces.values().all(Figures::is_ready)
    }

    /// How much more of this there is than in an earlier snapshot, for each second.
    pub(super) fn rate(
        &self,
        earlier: Option<&Self>,
        name: &str,
        of: impl Fn(&Figures) -> f64,
    ) -> f64 {
        let rate = || {
            let earlier = earlier?;
            let seconds = self.at.checked_duration_since(earlier.at)?.as_secs_f64();
            let more = of(self.namespaces.get(name)?) - of(earlier.namespaces.get(name)?);
            // A process that began anew counts from zero.
            (seconds > 0.0 && more >= 0.0).then(|| more / seconds)
        };
        rate().unwrap_or(0.0)
    }
}

impl Figures {
    /// That of a metric, named without the program's part.
    fn figure(&mut self, name: &str) -> Option<&mut f64> {
        Some(match name {
            "ids_issued_total" => &mut self.issued,
            "refills_total" => &mut self.refills,
            "failed_takes_total" => &mut self.failed_takes,
            "level" => &mut self.level,
            "capacity" => &mut self.capacity,
            "borrowed_seconds" => &mut self.borrowed,
            "borrow_limit_seconds" => &mut self.borrow_limit,
            "lease_remaining_seconds" => &mut self.lease_remaining,
            "lease_store_failing_seconds" => &mut self.store_failing,
            _ => return None,
        })
    }

    pub(super) fn is_ready(&self) -> bool {
        self.lease_remaining > 0.0
    }

    /// The level as a part of the capacity.
    pub(super) fn fill(&self) -> f64 {
        match self.capacity > 0.0 {
            true => (self.level / self.capacity).clamp(0.0, 1.0),
            false => 0.0,
        }
    }
}

/// Whose a sample is: its namespace, or all labels that say so.
fn owner(sample: &Sample) -> String {
    if let Some(namespace) = sample.labels.get("namespace") {
        return namespace.clone();
    }
    let labels = sample.labels.iter();
    let labels = labels.filter(|(name, _)| !PARTS.contains(&name.as_str()));
    let texts: Vec<_> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::exposition::samples;
    use super::*;

    fn snapshot(at: Instant, text: &str) -> Snapshot {
        Snapshot::new(at, samples(text))
    }

    #[test]
    fn parts_of_a_figure_add_up_and_others_are_left_out() {
        let text = "\
            ringflake_refills_total{namespace=\"a\",cause=\"threshold\"} 3\n\
            ringflake_refills_total{namespace=\"a\",cause=\"assist\"} 4\n\
            ringflake_level{pod=\"x\",zone=\"y\"} 5\n\
            ringflake_lease_remaining_seconds 6\n\
            ringflake_build_info{namespace=\"z\",version=\"1.2.3\"} 1\n\
            ringflake_of_tomorrow{namespace=\"z\"} 1\n\
            process_cpu_seconds_total 9\n";
        let found = snapshot(Instant::now(), text);
        let names: Vec<_> = found.namespaces.keys().map(String::as_str).collect();
        assert_eq!(names, ["", "a", "pod=x zone=y"]);
        assert_eq!(found.namespaces["a"].refills, 7.0);
        assert_eq!(found.namespaces["pod=x zone=y"].level, 5.0);
        assert_eq!(found.version.as_deref(), Some("1.2.3"));
        assert!(found.namespaces[""].is_ready() && !found.is_ready());
    }

    #[test]
    fn a_rate_is_of_two_moments_and_never_below_zero() {
        let start = Instant::now();
        let issued = |n: u32| format!("ringflake_ids_issued_total{{namespace=\"a\"}} {n}\n");
        let first = snapshot(start, &issued(100));
        let second = snapshot(start + Duration::from_secs(2), &issued(400));
        let of = |it: &Figures| it.issued;
        assert_eq!(second.rate(Some(&first), "a", of), 150.0);
        assert_eq!(first.rate(Some(&second), "a", of), 0.0);
        assert_eq!(second.rate(Some(&first), "b", of), 0.0);
        assert_eq!(second.rate(None, "a", of), 0.0);
    }
}

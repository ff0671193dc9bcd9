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
    issued: Option<f64>,
    refills: Option<f64>,
    failed_takes: Option<f64>,
    level: Option<f64>,
    capacity: Option<f64>,
    borrowed: Option<f64>,
    borrow_limit: Option<f64>,
    lease_remaining: Option<f64>,
    store_failing: Option<f64>,
    server_ready: Option<f64>,
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
            self.version = sample.labels.get("version").map(|it| printable(it));
            return;
        }
        // Only what is shown makes a namespace.
        if Figures::default().figure(name).is_none() {
            return;
        }
        let figures = self.namespaces.entry(owner(sample)).or_default();
        let value = sample.value;
        // Whoever writes that has nothing to say.
        if let Some(figure) = figures.figure(name).filter(|_| value.is_finite()) {
            *figure = Some(match (*figure, name) {
                (None, _) => value,
                // Of several generators the worst one.
                (
                    Some(other),
                    "lease_remaining_seconds" | "borrow_limit_seconds" | "server_ready",
                ) => other.min(value),
                (Some(other), "borrowed_seconds" | "lease_store_failing_seconds") => {
                    other.max(value)
                }
                // Parts of one figure add up, and so do the rings.
                (Some(other), _) => other + value,
            });
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

macro_rules! read {
    ($($figure:ident)*) => { $(
        /// Zero while there is none.
        pub(super) fn $figure(&self) -> f64 {
            self.$figure.unwrap_or(0.0)
        }
    )* };
}

impl Figures {
    read! {
        issued refills failed_takes level capacity borrowed borrow_limit lease_remaining
        store_failing
    }

    /// That of a metric, named without the program's part.
    fn figure(&mut self, name: &str) -> Option<&mut Option<f64>> {
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
            "server_ready" => &mut self.server_ready,
            _ => return None,
        })
    }

    /// A server says it itself: its lease may begin later.
    pub(super) fn is_ready(&self) -> bool {
        self.lease_remaining() > 0.0 && self.server_ready.is_none_or(|ready| ready > 0.0)
    }

    /// Whether a lease is in force, though perhaps of no use yet.
    pub(super) fn has_lease(&self) -> bool {
        self.lease_remaining() > 0.0
    }

    /// The level as a part of the capacity.
    pub(super) fn fill(&self) -> f64 {
        match self.capacity() > 0.0 {
            true => (self.level() / self.capacity()).clamp(0.0, 1.0),
            false => 0.0,
        }
    }
}

/// Whose a sample is: its namespace, or all labels that say so.
fn owner(sample: &Sample) -> String {
    if let Some(namespace) = sample.labels.get("namespace") {
        return printable(namespace);
    }
    let labels = sample.labels.iter();
    let labels = labels.filter(|(name, _)| !PARTS.contains(&name.as_str()));
    let texts: Vec<_> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    printable(&texts.join(" "))
}

/// Without what a terminal would obey.
fn printable(text: &str) -> String {
    text.escape_debug().collect()
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
        assert_eq!(found.namespaces["a"].refills(), 7.0);
        assert_eq!(found.namespaces["pod=x zone=y"].level(), 5.0);
        assert_eq!(found.version.as_deref(), Some("1.2.3"));
        assert!(found.namespaces[""].is_ready() && !found.is_ready());
    }

    #[test]
    fn of_several_generators_the_worst_one_is_shown() {
        let text = |figure: &str, x: &str, y: &str| {
            format!(
                "ringflake_{figure}{{namespace=\"a\",instance=\"x\"}} {x}\n\
                 ringflake_{figure}{{namespace=\"a\",instance=\"y\"}} {y}\n"
            )
        };
        let found = |figure: &str, x, y| {
            let found = snapshot(Instant::now(), &text(figure, x, y));
            found.namespaces["a"].clone()
        };
        let remaining = found("lease_remaining_seconds", "0", "500");
        assert!(!remaining.is_ready(), "{remaining:?}");
        assert_eq!(
            found("lease_remaining_seconds", "9", "5").lease_remaining(),
            5.0
        );
        assert_eq!(
            found("borrow_limit_seconds", "60", "30").borrow_limit(),
            30.0
        );
        assert_eq!(found("borrowed_seconds", "7", "3").borrowed(), 7.0);
        assert_eq!(
            found("lease_store_failing_seconds", "0", "3").store_failing(),
            3.0
        );
        assert_eq!(found("level", "5", "6").level(), 11.0);
        assert_eq!(found("ids_issued_total", "5", "6").issued(), 11.0);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        for odd in ["NaN", "+Inf", "-Inf"] {
            let text = format!("ringflake_level 3\nringflake_level{{le=\"1\"}} {odd}\n");
            let found = snapshot(Instant::now(), &text);
            assert_eq!(found.namespaces[""].level(), 3.0, "{odd}");
        }
    }

    #[test]
    fn names_keep_nothing_that_a_terminal_obeys() {
        let text = "ringflake_level{namespace=\"a\u{1b}[2J\u{e4}\"} 3\n\
                    ringflake_level{pod=\"x\u{7}\"} 3\n\
                    ringflake_build_info{version=\"1\u{1b}c\"} 1\n";
        let found = snapshot(Instant::now(), text);
        let names: Vec<_> = found.namespaces.keys().map(String::as_str).collect();
        assert_eq!(names, ["a\\u{1b}[2J\u{e4}", "pod=x\\u{7}"]);
        assert_eq!(found.version.as_deref(), Some("1\\u{1b}c"));
    }

    #[test]
    fn a_rate_is_of_two_moments_and_never_below_zero() {
        let start = Instant::now();
        let issued = |n: u32| format!("ringflake_ids_issued_total{{namespace=\"a\"}} {n}\n");
        let first = snapshot(start, &issued(100));
        let second = snapshot(start + Duration::from_secs(2), &issued(400));
        let of = Figures::issued;
        assert_eq!(second.rate(Some(&first), "a", of), 150.0);
        assert_eq!(first.rate(Some(&second), "a", of), 0.0);
        assert_eq!(second.rate(Some(&first), "b", of), 0.0);
        assert_eq!(second.rate(None, "a", of), 0.0);
    }
}

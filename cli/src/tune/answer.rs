//! The answer: a lease and a ring, computed by the formula of `ringflake::plan`.

use std::fmt;

use anyhow::{Result, bail};
use ringflake::plan::{self, Level, Load, MARGIN, SizingError};
use ringflake::{Layout, RingBuffer};

use super::lease::LeasePlan;
use super::machine::{Measured, Threads};
use crate::count::whole;
use crate::threshold::Threshold;
use crate::units::{bytes, counted, grouped, short, time};

/// A ring and its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) capacity: usize,
    pub(super) threshold: Threshold,
}

impl Setting {
    /// As a generator is built without options.
    pub(super) const DEFAULT: Self = Self {
        capacity: 1 << 16,
        threshold: Threshold(50),
    };

    /// Slots below the threshold.
    pub(super) fn below(self) -> usize {
        let slots = self.threshold.fill().in_slots(self.capacity);
        slots.unwrap_or(self.capacity)
    }

    pub(super) fn bytes(self) -> usize {
        self.capacity * size_of::<u64>()
    }

    /// This one, and others of the same capacity, by threshold.
    pub(super) fn with_thresholds(self) -> Vec<Self> {
        let mut thresholds = vec![Threshold(25), Threshold(50), Threshold(75), self.threshold];
        thresholds.sort_unstable();
        thresholds.dedup();
        let with = |threshold| Self { threshold, ..self };
        thresholds.into_iter().map(with).collect()
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = grouped(self.capacity as u64);
        write!(f, "{slots} slots, threshold {}", self.threshold)
    }
}

/// The number of slots of a ring: a power of two.
pub(super) fn capacity(text: &str) -> Result<usize> {
    const MOST: usize = RingBuffer::MAX_CAPACITY;
    let slots = whole(text).and_then(|slots| usize::try_from(slots).ok());
    match slots.filter(|&slots| slots.is_power_of_two() && slots <= MOST) {
        Some(slots) => Ok(slots),
        None => bail!("give a power of two from 1 to {MOST}, such as 65536"),
    }
}

/// A load, the machine, and what follows from them.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) load: Load,
    pub(super) layout: Layout,
    pub(super) lease: LeasePlan,
    pub(super) measured: Measured,
    pub(super) threads: Threads,
    pub(super) threshold: Threshold,
    /// The capacity that was asked about.
    pub(super) asked: Option<usize>,
    /// The capacity to choose.
    pub(super) capacity: Result<usize, SizingError>,
    pub(super) now_unix_ms: u64,
}

impl Answer {
    /// Whether a ring and a lease serve the load.
    pub(super) fn is_served(&self) -> bool {
        self.capacity.is_ok() && !self.lease.is_too_small()
    }

    /// The ring to choose.
    pub(super) fn setting(&self) -> Result<Setting, SizingError> {
        let threshold = self.threshold;
        self.capacity.map(|capacity| Setting {
            capacity,
            threshold,
        })
    }

    /// The capacity to choose, by the formula.
    pub(super) fn compute(&mut self) {
        let machine = self.measured.machine(self.threads);
        let fill = self.threshold.fill();
        let is_enough = |&capacity: &usize| plan::is_enough(&self.load, &machine, capacity, fill);
        let computed = plan::capacity_for(&self.load, &machine, fill);
        self.capacity = match (computed, self.asked.filter(is_enough)) {
            (Ok(_), Some(asked)) => Ok(asked),
            (computed, _) => computed,
        };
    }

    /// How low the load drives the ring with some thresholds, in the worst case; none if no
    /// ring serves the load.
    pub(super) fn levels(&self) -> Vec<(Setting, Level)> {
        let machine = self.measured.machine(self.threads);
        let level = |setting: Setting| {
            let fill = setting.threshold.fill();
            let level = plan::lowest_level(&self.load, &machine, setting.capacity, fill);
            Some((setting, level.ok()?))
        };
        let settings = self.setting().map(Setting::with_thresholds);
        settings
            .unwrap_or_default()
            .into_iter()
            .filter_map(level)
            .collect()
    }

    /// What to do, in a few sentences.
    pub(super) fn headline(&self) -> String {
        let ring = match (self.setting(), self.asked) {
            (Err(error), _) => format!("No ring serves this load: {error}."),
            (Ok(setting), Some(asked)) if asked == setting.capacity => {
                format!("This ring is enough: {setting}.")
            }
            (Ok(setting), Some(asked)) => format!(
                "A capacity of {} is not enough with a margin of {MARGIN}: choose {setting} ({}).",
                grouped(asked as u64),
                bytes(setting.bytes())
            ),
            (Ok(setting @ Setting::DEFAULT), None) => {
                format!("The default ring is enough: {setting}.")
            }
            (Ok(setting), None) => format!("Choose {setting} ({}).", bytes(setting.bytes())),
        };
        format!("{ring} {}", self.lease.headline())
    }

    /// The figures behind it: names and sentences.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let measured = &self.measured;
        let mut facts = vec![
            ("lease", self.lease.details(self.capacity.ok())),
            (
                "load",
                format!(
                    "{}; {} IDs/s on average, {} at the peak",
                    self.load,
                    short(self.load.mean()),
                    short(self.load.peak())
                ),
            ),
        ];
        facts.extend(self.ring().map(|text| ("ring", text)));
        let threads = &self.threads;
        facts.extend([
            (
                "machine",
                format!(
                    "a producer makes {} IDs/s and wakes up in {}, at the longest {}; a take costs \
                     {}; {} to take and {} to fill, on {}",
                    short(measured.fill_rate),
                    time(measured.wake_median),
                    time(measured.wake_longest),
                    time(measured.take_cost),
                    counted(threads.consumers as u64, "thread"),
                    counted(threads.producers as u64, "thread"),
                    counted(threads.cores as u64, "core")
                ),
            ),
            (
                "margin",
                format!(
                    "{MARGIN}: the nodes sustain {MARGIN} times the mean rate, bursts borrow at most \
                     half of the limit, and the ring holds {MARGIN} times what is needed"
                ),
            ),
        ]);
        facts
    }

    fn ring(&self) -> Option<String> {
        let setting = self.setting().ok()?;
        let level = self.levels().into_iter().find(|(it, _)| *it == setting)?.1;
        let assists = match level.assisted {
            true => ", where takes make some IDs themselves while a producer wakes up",
            false => "",
        };
        let lowest = grouped(level.lowest as u64);
        Some(format!(
            "{lowest} IDs stay in it in the worst case{assists}"
        ))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use ringflake_kit::assert_says;

    use super::*;

    /// For a load on two cores that make 400 M IDs/s.
    pub(in super::super) fn answer(rate: &str, burst: Option<&str>) -> Answer {
        let mut load = Load::steady(rate.parse().unwrap());
        if let Some(burst) = burst {
            load = load.with_burst(burst.parse().unwrap());
        }
        let mut answer = Answer {
            layout: Layout::RANDFLAKE,
            lease: LeasePlan::new(&load, &Layout::RANDFLAKE, None).unwrap(),
            load,
            measured: Measured {
                fill_rate: 400e6,
                wake_median: 1e-5,
                wake_longest: 5e-3,
                take_cost: 5e-9,
            },
            threads: Threads {
                cores: 2,
                producers: 1,
                consumers: 1,
            },
            threshold: Threshold(50),
            asked: None,
            capacity: Ok(0),
            now_unix_ms: 1_763_640_000_000,
        };
        answer.compute();
        answer
    }

    #[test]
    fn the_headline_names_the_defaults_or_what_to_change() {
        let bursts = answer("1M", Some("20M:100ms/1s"));
        let defaults = "The default ring is enough: 65,536 slots, threshold 50 %. Lease at least \
                        45 nodes: the bursts borrow 239 ms.";
        assert_eq!(bursts.headline(), defaults);
        let asked = |capacity| {
            let mut answer = bursts.clone();
            answer.asked = Some(capacity);
            answer.compute();
            (answer.headline(), answer.is_served())
        };
        let enough = "This ring is enough: 4,096 slots, threshold 50 %.";
        assert!(asked(4096).0.starts_with(enough), "{:?}", asked(4096));
        let too_small = "A capacity of 1,024 is not enough with a margin of 2: choose 65,536 slots, \
                         threshold 50 % (512 KiB).";
        assert!(asked(1024).0.starts_with(too_small), "{:?}", asked(1024));
        assert!(asked(1024).1);

        // Takes leave little time for assists.
        let mut slow = answer("1M", Some("150M:10ms/1s"));
        (slow.measured.take_cost, slow.measured.fill_rate) = (1e-9, 50e6);
        slow.compute();
        let choose = "Choose 8,388,608 slots, threshold 50 % (64 MiB).";
        assert!(slow.headline().starts_with(choose), "{}", slow.headline());
        slow.measured.take_cost = 1e-7;
        slow.compute();
        let none = "No ring serves this load: the peak needs";
        assert!(slow.headline().starts_with(none));
        assert!(!slow.is_served() && slow.levels().is_empty());
    }

    #[test]
    fn facts_begin_with_the_lease_and_tell_the_burst_in_ids() {
        let text = |answer: &Answer| {
            let facts = answer.facts().into_iter();
            facts
                .map(|(name, text)| format!("{name}: {text}\n"))
                .collect::<String>()
        };
        let bursts = text(&answer("50000", Some("2M:200ms/10s")));
        let first = "lease: 2 nodes (1 block of 32";
        assert!(bursts.starts_with(first), "{bursts}");
        let parts = [
            "load: 50k/s, and 2M/s for the first 200ms of every 10s (400k IDs a burst)",
            " IDs stay in it in the worst case",
        ];
        assert_says(&bursts, &parts);
        let slow = text(&answer("1/s", None));
        assert!(!slow.contains(" 0 ns"), "{slow}");
    }

    #[test]
    fn the_table_has_the_usual_thresholds_and_the_chosen_one() {
        let thresholds = |threshold| {
            let mut answer = answer("1M", None);
            answer.threshold = threshold;
            let shown = answer.levels().into_iter();
            shown
                .map(|(it, _)| it.threshold.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(thresholds(Threshold(50)), ["25 %", "50 %", "75 %"]);
        assert_eq!(thresholds(Threshold(60)), ["25 %", "50 %", "60 %", "75 %"]);
    }

    #[test]
    fn a_capacity_is_a_power_of_two() {
        for (text, slots) in [("1", 1), ("65536", 65_536)] {
            assert_eq!(capacity(text).unwrap(), slots);
        }
        for wrong in ["", "0", "-1", "64k", "18446744073709551615"] {
            assert!(capacity(wrong).is_err(), "{wrong}");
        }
    }
}

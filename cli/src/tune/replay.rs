//! `--run`: the load on a real ring, which confirms the answer or corrects it.
//!
//! The ring of the answer runs first. If a take finds it empty, a ring twice as large runs,
//! and so on. If the answer is larger than the default, and the level fell so little that half
//! of the ring has the margin, half of it runs; not if only the beginning of a trace ran. Then the
//! other thresholds run, unless the machine could not keep pace with the load.

use std::time::Duration;

use anyhow::{Context, Result};
use ringflake::plan::MARGIN;
use ringflake::{CachedGenerator, Secret, StaticLease};
use serde::Serialize;

use super::answer::{Answer, Setting};
use crate::drive::{Measurement, OpenLoop};
use crate::interrupt::Interrupt;
use crate::load::{BORROW_LIMIT, PERCENTILES};
use crate::report::say;
use crate::units::{counted, grouped, time};

/// How often the capacity is doubled, at the most.
const DOUBLINGS: usize = 3;

/// One ring under the load.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) setting: Setting,
    pub(super) measured: Measurement,
}

impl Run {
    /// The lowest level, as far as samples show it.
    pub(super) fn lowest(&self) -> usize {
        if self.measured.empties > 0 {
            return 0;
        }
        let levels = self.measured.samples.iter().map(|sample| sample.level);
        levels.min().unwrap_or(self.setting.capacity)
    }

    /// Whether the takes kept pace with what was due. If not, the ring met less than the load.
    fn kept_pace(&self) -> bool {
        /// IDs that may be left when the run ends: some are due at the very end.
        const LEFT: u64 = 20;
        let it = &self.measured;
        let left = it.demanded.saturating_sub(it.by_end).saturating_sub(LEFT);
        it.missed == 0 && it.refused == 0 && left as f64 <= 0.02 * it.demanded as f64
    }

    /// Whether the whole load was taken, and no take found the ring empty.
    fn served(&self) -> bool {
        self.measured.empties == 0 && self.kept_pace()
    }

    /// Whether half of the ring would have the margin.
    fn has_room(&self) -> bool {
        let below = self.setting.below();
        let fall = below.saturating_sub(self.lowest());
        fall as f64 * MARGIN <= below as f64 / 2.0
    }
}

/// Seconds, for each of the named percentiles.
pub(super) fn latencies(measured: &Measurement) -> [f64; PERCENTILES.len()] {
    PERCENTILES.map(|(_, share)| measured.latency.value_at_quantile(share) as f64 / 1e9)
}

/// What the runs say about the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Finding {
    Confirmed,
    /// Another capacity serves the load.
    Corrected,
    /// Even the largest ring that ran was empty at times.
    RanDry,
    /// The IDs were not taken when they were due.
    NotServed,
    /// No run came to its end with any ID.
    NotMeasured,
}

impl Finding {
    pub(super) fn is_good(self) -> bool {
        matches!(self, Self::Confirmed | Self::Corrected)
    }
}

/// All runs.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    pub(super) finding: Finding,
    /// How much of a trace ran, if not all of it.
    pub(super) part: Option<Duration>,
    /// Of the answer, and of the capacities that corrected it.
    pub(super) runs: Vec<Run>,
    /// Of the other thresholds.
    pub(super) thresholds: Vec<Run>,
}

impl Replay {
    /// Runs the load for `time`, and sets the capacity of the answer to the one that it finds.
    pub(super) fn new(answer: &mut Answer, time: Duration, interrupt: &Interrupt) -> Result<Self> {
        let before = answer.clone();
        Self::with(answer, time, |setting| {
            run_ring(&before, setting, time, interrupt)
        })
    }

    /// As [`Replay::new`] does, where `run` runs a ring for `time`.
    fn with(
        answer: &mut Answer,
        time: Duration,
        mut run: impl FnMut(Setting) -> Result<Option<Run>>,
    ) -> Result<Self> {
        let is_part = answer.load.duration().is_some_and(|whole| whole > time);
        let mut replay = Self {
            finding: Finding::NotMeasured,
            part: is_part.then_some(time),
            runs: Vec::new(),
            thresholds: Vec::new(),
        };
        let Ok(first) = answer.setting() else {
            return Ok(replay);
        };
        let least = match is_part {
            // The rest may be busier, so no ring is halved.
            true => first.capacity,
            false => (answer.asked.unwrap_or(0)).max(Setting::DEFAULT.capacity),
        };
        let (finding, chosen) = replay.settle(first, least, &mut run)?;
        replay.finding = finding;
        answer.capacity = Ok(chosen.capacity);
        if finding == Finding::NotServed {
            return Ok(replay);
        }
        for setting in chosen.with_thresholds() {
            if setting != chosen {
                replay.thresholds.extend(run(setting)?);
            }
        }
        Ok(replay)
    }

    /// Doubles or halves the capacity until a ring serves the load.
    fn settle(
        &mut self,
        first: Setting,
        least: usize,
        mut run: impl FnMut(Setting) -> Result<Option<Run>>,
    ) -> Result<(Finding, Setting)> {
        let mut setting = first;
        let mut clean: Option<Setting> = None;
        while let Some(done) = run(setting)? {
            let (has_room, served, kept_pace) = (done.has_room(), done.served(), done.kept_pace());
            self.runs.push(done);
            if !kept_pace && clean.is_none() {
                return Ok((Finding::NotServed, first));
            }
            if served {
                clean = Some(setting);
                if !has_room || setting.capacity <= least || setting.capacity > first.capacity {
                    break;
                }
                setting.capacity /= 2;
            } else if clean.is_some() {
                break;
            } else if self.runs.len() > DOUBLINGS {
                return Ok((Finding::RanDry, setting));
            } else {
                setting.capacity *= 2;
            }
        }
        Ok(match clean {
            Some(clean) if clean == first => (Finding::Confirmed, first),
            Some(clean) => (Finding::Corrected, clean),
            None if self.runs.is_empty() => (Finding::NotMeasured, first),
            None => (Finding::RanDry, first),
        })
    }

    /// The run of a ring.
    pub(super) fn run_of(&self, setting: Setting) -> Option<&Run> {
        self.runs
            .iter()
            .chain(&self.thresholds)
            .find(|run| run.setting == setting)
    }

    /// The run that decided.
    pub(super) fn decisive(&self) -> Option<&Run> {
        let last = self.runs.iter().rev().find(|run| run.served());
        last.or(self.runs.last())
    }

    /// What came of it, in a sentence.
    pub(super) fn in_words(&self, answer: &Answer) -> String {
        if answer.capacity.is_err() {
            return "Nothing ran.".to_owned();
        }
        let Some(run) = self.decisive() else {
            let text = "Not confirmed: no run had an ID and came to its end. Give a longer \
                        --seconds.";
            return text.to_owned();
        };
        let text = self.words_about(run, answer);
        match self.part {
            Some(part) => {
                let part = time(part.as_secs_f64());
                format!("{text} Only the first {part} of the trace ran.")
            }
            None => text,
        }
    }

    fn words_about(&self, run: &Run, answer: &Answer) -> String {
        let measured = &run.measured;
        let took = time(measured.took.as_secs_f64());
        let served = format!(
            "no take found {} empty in {took}, and {} IDs were left at the lowest level",
            run.setting,
            grouped(run.lowest() as u64)
        );
        match self.finding {
            Finding::Confirmed => format!("Confirmed by a run: {served}."),
            Finding::Corrected => {
                let first = &self.runs[0];
                let why = match first.measured.empties {
                    0 => "had more than was needed".to_owned(),
                    empties => format!("was found empty {} times", grouped(empties)),
                };
                format!("Corrected by a run: {} {why}; {served}.", first.setting)
            }
            Finding::RanDry => format!(
                "Not confirmed: {} of {} takes found {} empty, and made their IDs themselves. {}",
                grouped(measured.empties),
                grouped(measured.taken),
                run.setting,
                self.why_late(run, answer)
            ),
            Finding::NotServed => format!(
                "Not served: {} of {} IDs were taken when they were due in {took}, {} %. {}",
                grouped(measured.by_end),
                grouped(measured.demanded),
                // Never rounded up to all of them.
                (measured.by_end as f64 / measured.demanded.max(1) as f64 * 1e3).floor() / 10.0,
                self.why_late(run, answer)
            ),
            Finding::NotMeasured => String::new(),
        }
    }

    /// Why the load is late, if the figures show it.
    fn why_late(&self, run: &Run, answer: &Answer) -> String {
        let (threads, measured) = (&answer.threads, &run.measured);
        if let Some(refusal) = measured.refusal {
            return format!("{} were refused: {refusal}.", grouped(measured.refused));
        }
        format!(
            "{} to take and {} to fill share {}: take batches, or use more cores.",
            counted(threads.consumers as u64, "thread"),
            counted(threads.producers as u64, "thread"),
            counted(threads.cores as u64, "core")
        )
    }
}

/// Runs the load on a real ring. None if it was interrupted, or no ID was due.
fn run_ring(
    answer: &Answer,
    setting: Setting,
    time: Duration,
    interrupt: &Interrupt,
) -> Result<Option<Run>> {
    if interrupt.came() {
        return Ok(None);
    }
    say(format_args!("running {setting}"));
    let lease = StaticLease::assume_unique(answer.layout, answer.lease.nodes.clone());
    let generator = CachedGenerator::builder(answer.layout)
        // A secret of its own: a process makes each ID only once.
        .secret(Secret::generate()?)
        .lease(lease)
        .producers(answer.threads.producers)
        .borrow_limit(BORROW_LIMIT)
        .capacity(setting.capacity)
        .threshold_fill(setting.threshold.fill())
        .build()?;
    let open_loop = OpenLoop {
        generator: &generator,
        load: &answer.load,
        consumers: answer.threads.consumers,
        time,
        stop: interrupt.flag(),
    };
    let measured = open_loop.run().context("a thread can't be started")?;
    let is_whole = !interrupt.came() && measured.taken + measured.refused > 0;
    Ok(is_whole.then_some(Run { setting, measured }))
}

#[cfg(test)]
pub(super) mod tests {
    use ringflake::plan::Load;

    use super::*;
    use crate::drive::Sample;
    use crate::threshold::Threshold;
    use crate::tune::answer::tests::answer;

    /// A run of two seconds whose level falls to `lowest` again and again.
    pub(in super::super) fn run(setting: Setting, empties: u64, lowest: usize) -> Run {
        let fall = setting.capacity - lowest;
        let sample = |at: usize| Sample {
            seconds: at as f64 / 500.0,
            level: setting.capacity - fall * (at % 11) / 10,
            issued: 1_000 * at as u64,
            borrowed: 0.0,
        };
        let mut measured = Measurement {
            demanded: 1_000_000,
            taken: 1_000_000,
            by_end: 1_000_000,
            empties,
            samples: (0..1_000).map(sample).collect(),
            took: Duration::from_secs(2),
            ..Measurement::nothing()
        };
        measured.latency.saturating_record_n(200, 990_000);
        measured.latency.saturating_record_n(60_000, 9_999);
        measured.latency.saturating_record(3_000_000);
        Run { setting, measured }
    }

    pub(in super::super) fn replay(runs: Vec<Run>, finding: Finding) -> Replay {
        Replay {
            finding,
            part: None,
            runs,
            thresholds: Vec::new(),
        }
    }

    const FIRST: Setting = Setting {
        capacity: 1 << 18,
        threshold: Threshold(50),
    };

    /// The finding for rings with these empties and lowest levels.
    fn settle(ring: impl Fn(usize) -> (u64, usize)) -> (Finding, u32, Vec<u32>) {
        let mut replay = replay(Vec::new(), Finding::NotMeasured);
        let outcome = replay.settle(FIRST, 1 << 16, |setting| {
            let (empties, lowest) = ring(setting.capacity);
            Ok(Some(run(setting, empties, lowest)))
        });
        let (finding, chosen) = outcome.unwrap();
        let ran = replay.runs.iter().map(|run| run.setting.capacity.ilog2());
        (finding, chosen.capacity.ilog2(), ran.collect())
    }

    #[test]
    fn empties_double_the_ring_and_room_halves_it() {
        use Finding::{Confirmed, Corrected, RanDry};
        // The IDs taken before a producer wakes up; the threshold is half of the ring.
        let takes = |ids: usize| {
            settle(move |capacity| {
                let left = (capacity / 2).saturating_sub(ids);
                (u64::from(left == 0), left)
            })
        };
        assert_eq!(takes(100_000), (Confirmed, 18, vec![18]));
        assert_eq!(takes(200_000), (Corrected, 19, vec![18, 19]));
        assert_eq!(takes(600_000), (Corrected, 21, vec![18, 19, 20, 21]));
        assert_eq!(takes(9_000_000), (RanDry, 21, vec![18, 19, 20, 21]));
        // A quarter of what lies below the threshold, and less than an eighth of it.
        assert_eq!(takes(32_768), (Corrected, 17, vec![18, 17]));
        assert_eq!(takes(100), (Corrected, 16, vec![18, 17, 16]));
        // Half of the ring has empties by chance.
        let chance = settle(|capacity| match capacity == FIRST.capacity {
            true => (0, capacity / 2),
            false => (1, 0),
        });
        assert_eq!(chance, (Confirmed, 18, vec![18, 17]));
    }

    #[test]
    fn a_run_that_did_not_keep_pace_decides_nothing() {
        let mut replay = replay(Vec::new(), Finding::NotMeasured);
        let ran = replay.settle(FIRST, 1 << 16, |setting| {
            let mut run = run(setting, 0, setting.below());
            run.measured.missed = u64::from(setting != FIRST);
            Ok(Some(run))
        });
        assert_eq!(ran.unwrap(), (Finding::Confirmed, FIRST));
        assert_eq!(replay.decisive().unwrap().setting, FIRST);
    }

    #[test]
    fn a_load_that_is_not_taken_when_due_is_not_served() {
        let outcome = |change: fn(&mut Measurement)| {
            let mut replay = replay(Vec::new(), Finding::NotMeasured);
            let ran = replay.settle(FIRST, 1 << 16, |setting| {
                let mut run = run(setting, 0, 1 << 15);
                change(&mut run.measured);
                Ok(Some(run))
            });
            replay.finding = ran.unwrap().0;
            (replay.finding, replay.in_words(&answer("1M", None)))
        };
        let (finding, text) = outcome(|it| it.by_end = 979_980);
        assert!(finding.is_good(), "2 % and 20 are due at the end");
        assert!(text.starts_with("Confirmed by a run: "), "{text}");
        let not_served = |change: fn(&mut Measurement), said: &str| {
            let (finding, text) = outcome(change);
            assert_eq!(finding, Finding::NotServed);
            let text = text.strip_prefix("Not served: ").unwrap();
            assert!(text.contains(said), "{text}");
        };
        let late = "97.9 %. 1 thread to take and 1 thread to fill";
        not_served(|it| it.by_end = 979_979, late);
        not_served(|it| it.missed = 1, "100 %. 1 thread to take");
        let empty: fn(&mut Measurement) =
            |it| (it.refused, it.refusal) = (9, Some(ringflake::TakeError::Empty));
        not_served(empty, "9 were refused: ");
    }

    /// The replay of a trace of 4 s that is quiet until it is busy from second 2 to 3, with the
    /// text and the answer's capacity before and after. Each ring stays full but for `change`.
    fn replay_of_quiet_then_busy(
        seconds: u64,
        change: impl Fn(&mut Measurement),
    ) -> (Replay, String, [usize; 2]) {
        let mut answer = answer("1M", None);
        answer.load = Load::trace("0,100\n2,60000000\n3,0").unwrap();
        (answer.measured.take_cost, answer.measured.fill_rate) = (1e-9, 50e6);
        answer.compute();
        let before = answer.setting().unwrap().capacity;
        let ran = Replay::with(&mut answer, Duration::from_secs(seconds), |setting| {
            let mut run = run(setting, 0, setting.below());
            change(&mut run.measured);
            Ok(Some(run))
        });
        let replay = ran.unwrap();
        let text = replay.in_words(&answer);
        (replay, text, [before, answer.setting().unwrap().capacity])
    }

    #[test]
    fn the_quiet_beginning_of_a_trace_halves_no_ring() {
        let (replay, text, [before, after]) = replay_of_quiet_then_busy(2, |_| ());
        assert!(before > Setting::DEFAULT.capacity, "{before}");
        assert_eq!((replay.finding, after), (Finding::Confirmed, before));
        let part = " Only the first 2 s of the trace ran.";
        assert!(text.ends_with(part), "{text}");
        // All of it needs less.
        let (replay, text, [_, after]) = replay_of_quiet_then_busy(4, |_| ());
        let corrected = (Finding::Corrected, Setting::DEFAULT.capacity);
        assert_eq!((replay.finding, after), corrected);
        assert!(!text.contains("Only the first"), "{text}");
    }

    #[test]
    fn no_other_threshold_runs_if_the_load_is_not_served() {
        let (replay, ..) = replay_of_quiet_then_busy(4, |_| ());
        assert_eq!(replay.thresholds.len(), 2);
        let (replay, ..) = replay_of_quiet_then_busy(4, |it| it.missed = 1);
        assert_eq!(replay.finding, Finding::NotServed);
        assert_eq!((replay.runs.len(), replay.thresholds.len()), (1, 0));
    }

    #[test]
    fn an_interrupted_run_confirms_nothing() {
        let mut replay = replay(Vec::new(), Finding::NotMeasured);
        let (finding, _) = replay.settle(FIRST, 1 << 16, |_| Ok(None)).unwrap();
        assert_eq!(finding, Finding::NotMeasured);
        let text = replay.in_words(&answer("1M", None));
        assert!(text.contains("longer --seconds"), "{text}");
    }
}

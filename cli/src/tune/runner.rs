//! The real rings on which the load runs, and the time that there is.
//!
//! ```text
//!     0              0.9                       1.9    1.95  2   x --seconds
//!     +---------------+-------------------------+------+----+
//!     | no | search   |          proof          |  no  | spare
//!     | ring          |                         | ring |
//! ```
//!
//! A run is begun only if it ends within its stage, so `tune` ends well before twice
//! `--seconds`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use ringflake::plan::{Load, Trace};
use ringflake::{CachedGenerator, Layout, Secret, StaticLease};

use super::nodes::NodeBudget;
use super::search::{Runner, Stage};
use super::setting::Setting;
use crate::drive::measurement::Measurement;
use crate::drive::open_loop::OpenLoop;
use crate::interrupt::Interrupt;
use crate::load::{BORROW_LIMIT, GROUPS_PER_SECOND};

/// What a run takes besides the load: threads that start, a ring that is made.
const OVERHEAD: Duration = Duration::from_millis(120);

/// Until when a stage may last, as shares of the time that was asked for.
pub(super) const SEARCH_ENDS: f64 = 0.9;
const PROOF_ENDS: f64 = 1.9;
pub(super) const ALL_ENDS: f64 = 1.95;

/// For how long the load runs without a ring at once, at the most, likewise.
const WITHOUT_RING: f64 = 0.125;

/// For how long the recommended setting runs until it counts as proven, likewise.
const PROOF: f64 = 0.6;

/// So many runs are a proof in any case: of a trace that is over before the time is.
const RUNS_OF_PROOF: f64 = 20.0;

/// How long each run of a proof is at the least, likewise.
const RUN_OF_PROOF: f64 = 0.15;

/// Runs a load on rings of this machine.
pub(super) struct RealRings<'a> {
    pub(super) load: &'a Load,
    pub(super) layout: Layout,
    pub(super) nodes: &'a NodeBudget,
    pub(super) producers: usize,
    pub(super) consumers: usize,
    pub(super) interrupt: &'a Interrupt,
    pub(super) bar: &'a ProgressBar,
    /// When the first run could begin.
    pub(super) started: Instant,
    /// The value of `--seconds`.
    pub(super) time: Duration,
    /// How long a run of the search is; those of the proof are longer.
    pub(super) run: Duration,
}

impl RealRings<'_> {
    fn length(&self, stage: Stage) -> Duration {
        let length = match stage {
            Stage::Search => self.run,
            Stage::Proof => self.run.max(self.time.mul_f64(RUN_OF_PROOF)),
        };
        length.min(self.load.duration().unwrap_or(Duration::MAX))
    }

    fn end_of(&self, stage: Stage) -> Duration {
        self.time.mul_f64(match stage {
            Stage::Search => SEARCH_ENDS,
            Stage::Proof => PROOF_ENDS,
        })
    }

    /// Whether a run that begins after so much time ends within its stage.
    fn has_time(&self, stage: Stage, elapsed: Duration) -> bool {
        elapsed + self.length(stage) + OVERHEAD <= self.end_of(stage)
    }

    /// The load, for so long.
    fn open_loop(&self, time: Duration) -> OpenLoop<'_> {
        OpenLoop {
            load: self.load,
            consumers: self.consumers,
            time,
            stop: self.interrupt.flag(),
            groups_per_second: GROUPS_PER_SECOND,
        }
    }

    fn show_progress(&self) {
        (self.bar).set_position(self.started.elapsed().as_millis() as u64);
    }

    /// Runs the load with takes that cost nothing, or returns `None` if it would not end
    /// by `until`, a share of the time that was asked for.
    pub(super) fn run_without_ring(&self, until: f64) -> Result<Option<Measurement>> {
        let length = self
            .length(Stage::Search)
            .min(self.time.mul_f64(WITHOUT_RING));
        let ends = self.started.elapsed() + length + OVERHEAD;
        if self.interrupt.came() || ends > self.time.mul_f64(until) {
            return Ok(None);
        }
        self.bar.set_message("no ring");
        let run = Measurement::without_generator(self.open_loop(length), &|_| self.show_progress())
            .context("a thread can't be started")?;
        Ok(Some(run))
    }

    fn generator(&self, setting: Setting) -> Result<CachedGenerator> {
        let lease = StaticLease::assume_unique(self.layout, self.nodes.nodes.clone());
        let generator = CachedGenerator::builder(self.layout)
            // A secret of its own: a process makes each ID only once.
            .secret(&Secret::generate()?)
            .lease(lease)
            .producers(self.producers)
            .borrow_limit(BORROW_LIMIT)
            .capacity(setting.capacity)
            .threshold_fill(setting.threshold.fill())
            .build()?;
        Ok(generator)
    }
}

impl Runner for RealRings<'_> {
    fn run(&mut self, setting: Setting, stage: Stage) -> Result<Option<Measurement>> {
        if self.interrupt.came() || !self.has_time(stage, self.started.elapsed()) {
            return Ok(None);
        }
        self.bar.set_message(setting.to_string());
        let open_loop = self.open_loop(self.length(stage));
        let generator = self.generator(setting)?;
        let show = |_| self.show_progress();
        let (run, _) = Measurement::run(open_loop, &generator, &show, || ())
            .context("a thread can't be started")?;
        // A run that was broken off can show empties, but not that there are none.
        let is_clean = run.empties == 0 && run.refused == 0;
        // Nor does one show anything in which no ID was due.
        let is_empty = run.taken + run.refused == 0;
        if is_empty || self.interrupt.came() && is_clean {
            return Ok(None);
        }
        Ok(Some(run))
    }

    fn proof_seconds(&self) -> f64 {
        let runs = self.length(Stage::Proof).as_secs_f64() * RUNS_OF_PROOF;
        runs.min(self.time.as_secs_f64() * PROOF)
    }
}

/// How long a run of the search is: a period and the burst that follows, because the
/// first burst finds a full ring. At least a sixteenth of the time, and what a few IDs
/// take; at the most a quarter of it.
pub(super) fn run_length(load: &Load, time: Duration) -> Duration {
    const AFTERWARDS: f64 = 0.02;
    const FEW_IDS: f64 = 20.0;
    let longest = time.as_secs_f64() / 4.0;
    let shortest = (time.as_secs_f64() / 16.0)
        .max(FEW_IDS / load.mean())
        .min(longest);
    let meets_all = match load.duration() {
        Some(whole) => whole.as_secs_f64(),
        // The burst, what follows it, and the next burst.
        None => match (load.period(), load.pieces().next()) {
            (Some(period), Some(burst)) => period.as_secs_f64() + burst.until + AFTERWARDS,
            _ => shortest,
        },
    };
    Duration::from_secs_f64(meets_all.clamp(shortest, longest))
}

/// The busiest part of a trace that is longer than `most`, and when it begins.
pub(super) fn busiest_part(load: &Load, most: Duration) -> Result<Option<(f64, Load)>> {
    let Some(whole) = load.duration() else {
        return Ok(None);
    };
    let (whole, length) = (whole.as_secs_f64(), most.as_secs_f64());
    if whole <= length {
        return Ok(None);
    }
    let ids_from = |from: f64| load.demanded_by(from + length) - load.demanded_by(from);
    // The busiest part begins or ends with a piece.
    let begins = load.pieces().map(|piece| piece.from);
    let ends = load.pieces().map(|piece| piece.until - length);
    let starts = begins
        .chain(ends)
        .filter(|&at| at >= 0.0 && at + length <= whole + 1e-9);
    let busiest = starts.max_by(|&one, &other| ids_from(one).total_cmp(&ids_from(other)));
    let from = busiest.unwrap_or(0.0);
    let part = cut(load, from, length).context("the busiest part of the trace can't be cut out")?;
    Ok(Some((from, part)))
}

/// The load from a moment on, for so many seconds.
fn cut(load: &Load, from: f64, length: f64) -> Result<Load> {
    /// A shorter piece is a rounding error of the sums.
    const SHORTEST: f64 = 4e-6;
    let until = from + length;
    let mut text = String::new();
    for piece in load.pieces_until(until).filter(|piece| piece.until > from) {
        let start = piece.from.max(from);
        let whole = piece.until.min(until) - start;
        if whole < SHORTEST {
            continue;
        }
        let half = whole / 2.0;
        let ids = (piece.rate * half).ceil();
        // In halves, because the last line of a trace lasts as long as the one before.
        writeln!(text, "{:.6},{ids}", start - from)?;
        writeln!(text, "{:.6},{ids}", start - from + half)?;
    }
    Ok(text.parse::<Trace>()?.into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    use proptest::prelude::*;
    use ringflake_kit::eventually;

    use super::*;
    use crate::threshold::Threshold;

    const TIME: Duration = Duration::from_secs(20);

    /// Sets the flag at its end, also after a panic.
    struct SetOnDrop<'a>(&'a AtomicBool);

    impl Drop for SetOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    /// Hands `test` rings for 1,000 IDs a second.
    fn with_rings<T>(interrupt: &Interrupt, test: impl FnOnce(RealRings<'_>) -> T) -> T {
        let load = Load::steady("1k".parse().unwrap());
        test(RealRings {
            load: &load,
            layout: Layout::RANDFLAKE,
            nodes: &NodeBudget::new(&load, &Layout::RANDFLAKE, None).unwrap(),
            producers: 1,
            consumers: 1,
            interrupt,
            bar: &ProgressBar::hidden(),
            started: Instant::now(),
            time: TIME,
            run: run_length(&load, TIME),
        })
    }

    #[test]
    fn a_run_meets_a_second_burst() {
        let steady = Load::steady("1M".parse().unwrap());
        let length = |load: &Load| run_length(load, TIME).as_secs_f64();
        assert_eq!(length(&steady), 1.25);
        let bursts = |text: &str| steady.clone().with_burst(text.parse().unwrap());
        assert_eq!(length(&bursts("20M:1ms/10ms")), 1.25);
        assert!((length(&bursts("20M:1s/2s")) - 3.02).abs() < 1e-9);
        assert_eq!(length(&bursts("20M:1s/1h")), 5.0);
        // Some IDs are due, if there is time for that.
        assert_eq!(length(&Load::steady("5/s".parse().unwrap())), 4.0);
        assert_eq!(length(&Load::steady("1/s".parse().unwrap())), 5.0);
    }

    #[test]
    fn a_run_that_was_broken_off_shows_no_absence_of_empties() {
        let interrupt = Interrupt::default();
        // For the first minute it needs no producer, which a busy machine may not run.
        let setting = Setting::new(1 << 16, Threshold::Percent(50));
        let run = with_rings(&interrupt, |mut rings| {
            // Far longer than it takes to break it off.
            (rings.time, rings.run) = (50 * TIME, 5 * TIME);
            let bar = rings.bar.clone();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // If there is no progress, the run ends now, and not after its 100 s.
                    let _set = SetOnDrop(interrupt.flag());
                    eventually("the run shows progress", || bar.position() > 0);
                });
                rings.run(setting, Stage::Search).unwrap()
            })
        });
        assert!(run.is_none());
    }

    #[test]
    fn no_run_is_begun_that_would_end_too_late() {
        with_rings(&Interrupt::default(), |rings| {
            for stage in [Stage::Search, Stage::Proof] {
                assert!(rings.has_time(stage, Duration::ZERO));
                assert!(!rings.has_time(stage, rings.end_of(stage)));
                // With room for what comes before and after.
                assert!(rings.end_of(stage) < TIME.mul_f64(ALL_ENDS));
            }
            assert!(rings.run_without_ring(0.0).unwrap().is_none());
        });
    }

    #[test]
    fn of_a_long_trace_the_busiest_part_runs() {
        let trace: Trace = "0,10\n10,500\n20,700\n30,20\n".parse().unwrap();
        let load = Load::from(trace);
        let worst = |seconds| busiest_part(&load, Duration::from_secs(seconds)).unwrap();
        assert!(worst(40).is_none());
        let (from, part) = worst(15).unwrap();
        assert_eq!(from, 15.0);
        assert_eq!(part.duration(), Some(Duration::from_secs(15)));
        assert!((part.demanded_by(15.0) - 950.0).abs() <= 2.0);
        assert!((part.demanded_by(5.0) - 250.0).abs() <= 2.0);
        let steady = Load::steady("1M".parse().unwrap());
        assert!(busiest_part(&steady, TIME).unwrap().is_none());
    }

    #[test]
    fn without_a_ring_the_load_is_the_same_and_no_longer_than_its_share() {
        with_rings(&Interrupt::default(), |rings| {
            let run = rings.run_without_ring(ALL_ENDS).unwrap().unwrap();
            // 1,000 a second.
            let due = rings.run.as_millis() as u64;
            assert_eq!((run.demanded, run.taken + run.missed), (due, due));
            assert!(rings.run <= TIME.mul_f64(WITHOUT_RING), "{:?}", rings.run);
        });
    }

    proptest! {
        /// Steps of a tenth of a second, whose sums are never whole.
        #[test]
        fn a_part_can_be_cut_out_of_any_trace(
            counts in prop::collection::vec(0..100_000_u32, 51..200),
            begins in 0..2_000_000_000_u32,
        ) {
            let mut text = String::new();
            for (index, count) in counts.iter().enumerate() {
                let at = f64::from(begins) + index as f64 * 0.1;
                text += &format!("{at:.1},{count}\n");
            }
            let load = Load::from(text.parse::<Trace>().unwrap());
            let length = Duration::from_secs(5);
            let (from, part) = busiest_part(&load, length).unwrap().unwrap();
            let until = from + length.as_secs_f64();
            let ids = load.demanded_by(until) - load.demanded_by(from);
            let cut = part.demanded_by(length.as_secs_f64());
            // In each of some hundred pieces up to an ID more; and what lies at the
            // ends, which fall between digits.
            prop_assert!((cut - ids).abs() <= 110.0 + ids * 1e-3, "{} of {}", cut, ids);
            let most = counts.windows(50).map(|part| part.iter().sum::<u32>()).max();
            prop_assert!(cut >= f64::from(most.unwrap()) * 0.999 - 110.0);
        }
    }
}

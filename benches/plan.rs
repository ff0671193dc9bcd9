//! How far off is the model of `ringflake::plan`? And what is an adaptive threshold
//! worth?
//!
//! ```sh
//! cargo bench --bench plan [-- --only model|adaptive]
//! ```
//!
//! Runs each of `tests/traces` on real rings, and finds the smallest capacity without
//! an empty, which is held against that of `plan::capacity_for`. The threshold is
//! 75 %, and one consumer takes each ID when it is due. Then, on rings of twice what
//! is predicted, an adaptive threshold is held against the best of the fixed ones:
//! of those without empties the one that keeps the fewest IDs.
//!
//! How late a producer wakes up is chance on a machine that is shared, and a longer
//! run meets a later one; so the measured capacity would depend on luck. Here each wake-up is late on purpose: the generators have a clock that
//! holds a producer up when it comes to a fill. The model is given the same time.
//!
//! Every ID is kept, decrypted and checked to be unique.

use std::cell::Cell;
use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::plan::{self, Load, Machine, SizingError, Trace};
use ringflake::{Clock, Id, SystemClock, ThresholdFill};

use self::common::flags;
use self::common::measurement::Measurement;
use self::common::open_loop::{OpenLoop, TakeObserver};
use self::common::stock;
use self::common::unique::Marks;

mod common;

const TRACES: [(&str, &str); 6] = [
    ("steady", include_str!("../tests/traces/steady.csv")),
    ("bursts", include_str!("../tests/traces/bursts.csv")),
    ("ramp", include_str!("../tests/traces/ramp.csv")),
    ("day", include_str!("../tests/traces/day.csv")),
    ("on_off", include_str!("../tests/traces/on_off.csv")),
    ("tenfold", include_str!("../tests/traces/tenfold.csv")),
];

/// How late a producer is: ten times what chance adds where a core is idle.
const LATE: Duration = Duration::from_millis(50);

/// IDs a second that a producer makes, at the least. More than any of the traces
/// asks for by so much that it does not matter how many more.
const FILL_RATE: &str = "200M";

fn main() -> Result<(), Box<dyn Error>> {
    let (traces, time) = if flags::is_bench() {
        (&TRACES[..], Duration::MAX)
    } else {
        (&TRACES[..1], Duration::from_millis(100))
    };
    let loads = traces
        .iter()
        .map(|&(name, text)| Ok((name, Load::from(text.parse::<Trace>()?))))
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let only = flags::value_of("--only");
    let wanted = |part: &str| only.as_ref().is_none_or(|only| only == part);
    if wanted("model") {
        hold_model_against_rings(&loads, time)?;
    }
    if wanted("adaptive") {
        hold_adaptive_against_fixed(&loads, time)?;
    }
    println!("All IDs were unique.");
    Ok(())
}

/// The capacity that the model says, for a threshold of 75 %.
fn predicted(load: &Load) -> Result<usize, SizingError> {
    let fill_rate = FILL_RATE.parse().expect("a rate");
    let config = plan::capacity_for(load, &Machine::new(fill_rate, LATE).with_assist_fill(None))?;
    Ok(config.capacity())
}

fn hold_model_against_rings(loads: &[(&str, Load)], time: Duration) -> Result<(), Box<dyn Error>> {
    println!("| trace | peak, IDs/s | predicted | measured | predicted/measured |");
    println!("|---|---:|---:|---:|---:|");
    for (name, load) in loads {
        let predicted = predicted(load)?;
        let measured = smallest_capacity(load, time, predicted)?;
        println!(
            "| {name} | {:.2} M | {predicted} | {measured} | {} |",
            load.peak() / 1e6,
            predicted as f64 / measured as f64
        );
    }
    println!();
    Ok(())
}

fn hold_adaptive_against_fixed(
    loads: &[(&str, Load)],
    time: Duration,
) -> Result<(), Box<dyn Error>> {
    println!(
        "| trace | capacity | best fixed | empties | IDs kept | adaptive: empties | IDs kept |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (name, load) in loads {
        let capacity = 2 * predicted(load)?;
        let mut best: Option<(u32, Outcome)> = None;
        for percent in [25, 50, 75] {
            let run = run(load, time, capacity, ThresholdFill::percent(percent))?;
            // Fewer empties first, then fewer IDs kept.
            if best.is_none_or(|(_, best)| run.rank() < best.rank()) {
                best = Some((percent, run));
            }
        }
        let (percent, fixed) = best.expect("three ran");
        let adaptive = run(load, time, capacity, ThresholdFill::adaptive())?;
        println!(
            "| {name} | {capacity} | {percent} % | {} | {:.0} | {} | {:.0} |",
            fixed.empties, fixed.mean_level, adaptive.empties, adaptive.mean_level
        );
    }
    println!();
    Ok(())
}

/// The smallest capacity without an empty, from `start` on.
fn smallest_capacity(load: &Load, time: Duration, start: usize) -> Result<usize, Box<dyn Error>> {
    let underruns = |capacity| {
        let run = run(load, time, capacity, ThresholdFill::percent(75))?;
        Ok::<_, Box<dyn Error>>(run.empties > 0)
    };
    let mut capacity = start;
    while underruns(capacity)? {
        capacity *= 2;
    }
    // One that failed was seen on the way up.
    while capacity <= start && capacity > 1 && !underruns(capacity / 2)? {
        capacity /= 2;
    }
    Ok(capacity)
}

/// How a ring fared under a load.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// How often a take found it empty.
    empties: u64,
    /// IDs in it on average over time: by the mean rate, how old they become.
    mean_level: f64,
}

impl Outcome {
    /// The lower, the better.
    fn rank(self) -> (u64, u64) {
        (self.empties, self.mean_level as u64)
    }
}

/// Keeps all IDs.
struct Keeping(Vec<Id>);

impl TakeObserver for Keeping {
    fn taken(&mut self, ids: &[Id]) {
        self.0.extend_from_slice(ids);
    }
}

fn run(
    load: &Load,
    time: Duration,
    capacity: usize,
    fill: ThresholdFill,
) -> Result<Outcome, Box<dyn Error>> {
    let time = load.duration().unwrap_or(time).min(time);
    let generator = stock::generator(0..stock::LAYOUT.nodes())
        .clock(LateClock)
        .capacity(capacity)
        .stripes(1)
        .threshold_fill(fill)
        // They would make up for any lateness.
        .assist_fill(None)
        .build()?;
    let open_loop = OpenLoop {
        load,
        consumers: 1,
        time,
        stop: &AtomicBool::new(false),
        groups_per_second: 1e6,
    };
    let due = load.demanded_by(time.as_secs_f64()) as usize;
    // Written to beforehand, so that no page fault falls between takes.
    let observer = || {
        let mut ids = vec![Id::from_u64(u64::MAX); due + 1];
        ids.clear();
        Keeping(ids)
    };
    let (run, kept) = Measurement::run(open_loop, &generator, &|_| (), observer)?;
    assert_eq!((run.refused, run.missed), (0, 0), "{:?}", run.refusal);

    let cipher = stock::cipher();
    let mut marks = Marks::default();
    for id in kept.into_iter().flat_map(|Keeping(ids)| ids) {
        let raw = cipher.decrypt(id.to_u64());
        assert!(marks.mark(raw), "{raw:#x} came twice");
    }
    let levels = run.samples.iter().map(|sample| sample.level as f64);
    Ok(Outcome {
        empties: run.empties,
        mean_level: levels.sum::<f64>() / run.samples.len() as f64,
    })
}

/// Late when a producer asks for the time after a pause.
#[derive(Debug)]
struct LateClock;

thread_local! {
    static LAST_ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

impl Clock for LateClock {
    fn unix_ms(&self) -> u64 {
        /// Within a fill the time is asked for again and again.
        const PAUSE: Duration = Duration::from_millis(1);
        let is_producer = thread::current()
            .name()
            .is_some_and(|name| name.starts_with("ringflake-"));
        let since = LAST_ASKED.get().map(|last| last.elapsed());
        if is_producer && since.is_none_or(|since| since > PAUSE) {
            thread::sleep(LATE);
        }
        LAST_ASKED.set(Some(Instant::now()));
        SystemClock.unix_ms()
    }
}

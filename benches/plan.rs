//! How far off is the formula of `ringflake::plan`?
//!
//! ```sh
//! cargo bench --bench plan [-- --only model|assists|assist] [--trace NAME]
//! ```
//!
//! - `model`: runs each of `tests/traces` on real rings whose takes do not assist, and finds
//!   the smallest capacity without an empty, which is held against that of
//!   the formula. The threshold is 75 %, and one consumer takes each ID when it is
//!   due.
//! - `assists`: the smallest rings that are enough by the formula where takes assist, with one stripe and with
//!   one a core, with one consumer and with one a core, on cores that have nothing else to do
//!   and on cores that do. Where such a ring runs dry the next larger one runs, and so on.
//! - `assist`: how long a take lasts that assists.
//!
//! How late a producer wakes up is chance on a machine that is shared, and a longer
//! run meets a later one; so the measured capacity would depend on luck. Here each wake-up is late on purpose: the generators have a clock that
//! holds a producer up when it comes to a fill. The formula is given the same time.
//!
//! Every ID is kept, decrypted and checked to be unique.

use std::cell::Cell;
use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ringflake::plan::{self, Load, Machine, Rate};
use ringflake::{AssistFill, CachedGenerator, Clock, Id, SystemClock, ThresholdFill};

use self::common::flags;
use self::common::measurement::Measurement;
use self::common::open_loop::{Histogram, OpenLoop, TakeObserver, histogram};
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
    let named = flags::value_of("--trace");
    let loads = traces
        .iter()
        .filter(|(name, _)| named.as_ref().is_none_or(|named| named == name))
        .map(|&(name, text)| Ok((name, Load::trace(text)?)))
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let only = flags::value_of("--only");
    let wanted = |part: &str| only.as_ref().is_none_or(|only| only == part);
    if wanted("model") {
        hold_model_against_rings(&loads, time)?;
    }
    if wanted("assists") {
        hold_model_against_assists(&loads, time)?;
    }
    if wanted("assist") {
        time_assists(time.min(Duration::from_secs(5)))?;
    }
    println!("All IDs were unique.");
    Ok(())
}

/// A generator and what drives it.
#[derive(Clone, Copy, Debug)]
struct Setup {
    consumers: usize,
    stripes: usize,
    assist: Option<AssistFill>,
    fill: ThresholdFill,
}

impl Setup {
    /// One consumer, one ring, and no take that makes up for lateness.
    fn unassisted(fill: ThresholdFill) -> Self {
        Self {
            consumers: 1,
            stripes: 1,
            assist: None,
            fill,
        }
    }

    /// The smallest capacity that is enough by the formula, without a margin.
    fn predicted(self, load: &Load) -> Result<usize, Box<dyn Error>> {
        let mut machine = Machine::default();
        machine.cores = self.stripes;
        machine.consumers = self.consumers;
        machine.fill_rate = FILL_RATE.parse()?;
        machine.take_rate = Rate::MAX;
        machine.wake_up = LATE;
        machine.assists = self.assist.is_some();
        let least = if self.stripes > 1 {
            self.stripes << 10
        } else {
            1
        };
        for capacity in (least.ilog2()..28).map(|log| 1 << log) {
            if plan::lowest_level(load, &machine, capacity, self.fill)?.lowest > 0.0 {
                return Ok(capacity);
            }
        }
        Err("no ring is enough".into())
    }
}

/// The same without assists, for a threshold of 75 %.
fn predicted(load: &Load) -> Result<usize, Box<dyn Error>> {
    Setup::unassisted(ThresholdFill::percent(75)).predicted(load)
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

/// The smallest capacity without an empty, from `start` on.
fn smallest_capacity(load: &Load, time: Duration, start: usize) -> Result<usize, Box<dyn Error>> {
    let underruns = |capacity| {
        let setup = Setup::unassisted(ThresholdFill::percent(75));
        let run = run(load, time, capacity, setup)?;
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

fn hold_model_against_assists(
    loads: &[(&str, Load)],
    time: Duration,
) -> Result<(), Box<dyn Error>> {
    /// So many times as large as predicted is the largest ring that is tried.
    const FAR: usize = 16;
    println!(
        "| trace | consumers | other work | stripes | predicted | empties | of takes | assists | \
         without empties |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---:|---:|");
    let cores = cores();
    for (name, load) in loads {
        for (consumers, is_busy) in [(1, false), (cores, false), (cores, true)] {
            for stripes in [1, cores] {
                let setup = Setup {
                    consumers,
                    stripes: stripes.next_power_of_two(),
                    assist: Some(AssistFill::default()),
                    fill: ThresholdFill::percent(75),
                };
                let _busy = is_busy.then(OtherWork::start);
                let predicted = setup.predicted(load)?;
                let first = run(load, time, predicted, setup)?;
                let (mut capacity, mut empties) = (predicted, first.empties);
                while empties > 0 && capacity < FAR * predicted {
                    capacity *= 2;
                    empties = run(load, time, capacity, setup)?.empties;
                }
                let clean = match empties {
                    0 => capacity.to_string(),
                    _ => "none".to_owned(),
                };
                println!(
                    "| {name} | {consumers} | {} | {} | {predicted} | {} | {} | {} | {clean} |",
                    if is_busy { "on each core" } else { "none" },
                    setup.stripes,
                    first.empties,
                    first.taken,
                    first.assists,
                );
            }
        }
    }
    println!();
    Ok(())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A thread for each core that wants all of its time, until this is dropped.
struct OtherWork {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl OtherWork {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                // Relaxed: a request to end, which carries nothing.
                while !stop.load(Relaxed) {
                    spin_loop();
                }
            })
        };
        let threads = (0..cores()).map(spin).collect();
        Self { stop, threads }
    }
}

impl Drop for OtherWork {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("it only spins");
        }
    }
}

/// Times each take that assists, of one thread whose producer is always late. The model
/// allows 5 us for it.
fn time_assists(time: Duration) -> Result<(), Box<dyn Error>> {
    println!(
        "| takes that assist | number | p50, ns | p99 | p99.9 | max | longer than 5 us | than 10 us |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for (name, is_cold, is_busy) in [
        ("one after the other", false, false),
        ("with cold caches", true, false),
        ("with cold caches, other work on each core", true, true),
    ] {
        let _busy = is_busy.then(OtherWork::start);
        let generator = stock::generator(0..stock::LAYOUT.nodes())
            .clock(LateClock)
            .capacity(1 << 12)
            .stripes(1)
            .threshold_fill(ThresholdFill::percent(75))
            .build()?;
        let durations = assist_durations(&generator, time, is_cold)?;
        let count = durations.len();
        let longer_than = |nanos| {
            let longer = count - durations.count_between(0, nanos);
            100.0 * longer as f64 / count.max(1) as f64
        };
        println!(
            "| {name} | {count} | {} | {} | {} | {} | {:.2} % | {:.2} % |",
            durations.value_at_quantile(0.5),
            durations.value_at_quantile(0.99),
            durations.value_at_quantile(0.999),
            durations.max(),
            longer_than(5_000),
            longer_than(10_000)
        );
    }
    println!();
    Ok(())
}

/// Times the takes that assist for so long; with cold caches each of them comes after a walk
/// through more memory than a core's own caches hold.
fn assist_durations(
    generator: &CachedGenerator,
    time: Duration,
    is_cold: bool,
) -> Result<Histogram, Box<dyn Error>> {
    const WALK: usize = 8 << 20;
    const LINE: usize = 64;
    let low_mark = generator.stats().capacity.div_ceil(10);
    let mut memory = vec![0_u8; if is_cold { WALK } else { 0 }];
    let mut durations = histogram();
    let mut marks = Marks::default();
    let cipher = stock::cipher();
    let started = Instant::now();
    let mut assists = generator.stats().fills.assist;
    while started.elapsed() < time {
        if generator.stats().level <= low_mark {
            for byte in memory.iter_mut().step_by(LINE) {
                *byte = byte.wrapping_add(1);
            }
            black_box(&memory);
        }
        let before = Instant::now();
        let id = generator.take()?;
        let took = before.elapsed();
        let now = generator.stats().fills.assist;
        if now > assists {
            durations.saturating_record(took.as_nanos() as u64);
            assists = now;
        }
        let raw = cipher.decrypt(id.to_u64());
        assert!(marks.mark(raw), "{raw:#x} came twice");
    }
    Ok(durations)
}

/// How a ring fared under a load.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// How often a take found it empty.
    empties: u64,
    taken: u64,
    /// Runs that takes made for it.
    assists: u64,
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
    setup: Setup,
) -> Result<Outcome, Box<dyn Error>> {
    let time = load.duration().unwrap_or(time).min(time);
    let generator = stock::generator(0..stock::LAYOUT.nodes())
        .clock(LateClock)
        .capacity(capacity)
        .stripes(setup.stripes)
        .threshold_fill(setup.fill)
        .assist_fill(setup.assist)
        .build()?;
    let open_loop = OpenLoop {
        load,
        consumers: setup.consumers,
        time,
        stop: &AtomicBool::new(false),
        groups_per_second: 1e6,
    };
    let due = load.demanded_by(time.as_secs_f64()) as usize;
    // Written to beforehand, so that no page fault falls between takes.
    let observer = || {
        let mut ids = vec![Id::from_u64(u64::MAX); due / setup.consumers + (1 << 10)];
        ids.clear();
        Keeping(ids)
    };
    let (run, kept) = Measurement::run(open_loop, &generator, &|_| (), observer)?;
    assert_eq!(run.refused, 0, "{:?}", run.refusal);
    // A short run shows that no ID comes twice, on however slow a machine.
    assert!(
        !flags::is_bench() || run.missed == 0,
        "{} takes were not made before the end",
        run.missed
    );

    let cipher = stock::cipher();
    let mut marks = Marks::default();
    for id in kept.into_iter().flat_map(|Keeping(ids)| ids) {
        let raw = cipher.decrypt(id.to_u64());
        assert!(marks.mark(raw), "{raw:#x} came twice");
    }
    Ok(Outcome {
        empties: run.empties,
        taken: run.taken,
        assists: run.assists,
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

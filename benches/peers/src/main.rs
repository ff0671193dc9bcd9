//! ringflake beside other ID generators: one process, one loop, the same work.
//!
//! ```sh
//! cd benches/peers && cargo run --release [-- [--quick] [NAME...]]
//! ```
//!
//! Each generator runs in the loop of ringflake's own benchmarks, alone and on
//! two threads, and in two ways:
//!
//! - *burst*: as fast as it goes for 10 ms, or, where there is a stock, until
//!   a million IDs that were made before are used up;
//! - *sustained*: for a second. What has to be made is made in that second, by
//!   whatever threads the generator starts.
//!
//! A generator that has used up its tick waits or refuses, as it is made to;
//! what counts is the IDs that it gave. Then it runs again with the IDs kept.
//! They are checked to be distinct, and each to be what it should be: that the
//! time in it is today's, or that it decrypts to a number that was to come.

use std::time::{Duration, SystemTime};
use std::{env, fs, thread};

use self::peer::Peer;

#[path = "../../common/live_queue.rs"]
mod live_queue;
#[path = "../../../cli/src/drive/race.rs"]
mod race;
#[path = "../../common/reference.rs"]
mod reference;
#[allow(dead_code, reason = "the peers need less of it than the benchmarks")]
#[path = "../../../cli/src/drive/stock.rs"]
mod stock;

mod contestants;
mod peer;

/// How long and how often to measure. The median of the runs counts.
#[derive(Clone, Copy, Debug)]
struct Effort {
    burst: Duration,
    burst_runs: usize,
    sustained: Duration,
    sustained_runs: usize,
}

impl Effort {
    const FULL: Self = Self {
        burst: Duration::from_millis(10),
        burst_runs: 5,
        sustained: Duration::from_secs(1),
        sustained_runs: 3,
    };
    const QUICK: Self = Self {
        burst: Duration::from_millis(5),
        burst_runs: 1,
        sustained: Duration::from_millis(50),
        sustained_runs: 1,
    };
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (flags, names): (Vec<_>, Vec<_>) = arguments.iter().partition(|a| a.starts_with("--"));
    let effort = match flags.as_slice() {
        [] => Effort::FULL,
        [flag] if *flag == "--quick" => Effort::QUICK,
        _ => {
            eprintln!("usage: ringflake-peers [--quick] [NAME...]");
            std::process::exit(2);
        }
    };

    print_head(&arguments);
    for peer in contestants::all() {
        let is_wanted = |name: &&String| peer.name.contains(name.as_str());
        if names.is_empty() || names.iter().any(is_wanted) {
            print_row(&peer, effort);
        }
    }
}

fn print_head(arguments: &[String]) {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut command = "cd benches/peers && cargo run --release".to_owned();
    if !arguments.is_empty() {
        command += &format!(" -- {}", arguments.join(" "));
    }
    println!("{}; {}; `{command}`", &now[..10], machine());
    println!();
    println!(
        "Millions of IDs a second; ringflake encrypts with {}.",
        stock::cipher().backend()
    );
    println!();
    println!(
        "| generator | bits | burst, 1 thread | 2 threads | sustained, 1 thread | 2 threads \
         | unique | what it can't do |"
    );
    println!("|---|---:|---:|---:|---:|---:|---|---|");
}

fn print_row(peer: &Peer, effort: Effort) {
    let figures = [1, 2].map(|threads| peer.measure(threads, effort));
    let [alone, together] = &figures;
    let faults = figures.iter().map(|figures| &figures.faults);
    let unique = match faults.clone().map(|faults| faults.duplicates).sum() {
        0 => "yes".to_owned(),
        duplicates => format!("**{duplicates} twice**"),
    };
    let strange: usize = faults.map(|faults| faults.strange).sum();
    let unique = match strange {
        0 => unique,
        _ => format!("{unique}, **{strange} strange**"),
    };
    println!(
        "| {} | {} | {} | {} | {} | {} | {unique} | {} |",
        peer.name,
        peer.bits,
        rounded(alone.burst),
        rounded(together.burst),
        rounded(alone.sustained),
        rounded(together.sustained),
        peer.cannot,
    );
}

/// Three significant digits or the whole number, whichever is more.
fn rounded(millions: f64) -> String {
    let decimals = match millions {
        0.0..1.0 => 3,
        1.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{millions:.decimals$}")
}

/// The processor's name, as far as the system tells, and the number of cores.
fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let report = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = report
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    format!("{name}, {cores} cores")
}

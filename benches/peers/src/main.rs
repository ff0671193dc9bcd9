//! ringflake beside other ID generators: one process, one loop, the same work.
//!
//! ```sh
//! cd benches/peers && cargo run --release [-- [--quick] [--threads N] [NAME...]]
//! ```
//!
//! Each generator runs in the loop of ringflake's own benchmarks, alone and on
//! several threads (two, unless `--threads` says otherwise), and in two ways:
//!
//! - *burst*: as fast as possible for 10 ms or, where there is a stock, until a million IDs that
//!   were made before are used up;
//! - *sustained*: for one second. IDs that have to be made are made in that second, by whatever
//!   threads the generator starts.
//!
//! A generator that has used up its tick waits or refuses, as it was designed to; the result is the
//! number of IDs it gave. The generators take turns, so that a change in the machine's speed
//! affects all of them, and medians count. Each generator first runs once with its IDs kept. These
//! must be distinct and plausible: the time in an ID is today's, or the ID decrypts to a possible
//! count.
//!
//! A second table compares: `take` with `uuid` v4, and `Handle` with every peer that
//! makes 64-bit IDs from a generator that all threads share. The exit status is 1 if an
//! ID came twice or was not what it should be.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use std::{env, fs, thread};

use self::case::Case;

mod live_queue;
#[path = "../../../cli/src/bench/race.rs"]
mod race;
#[path = "../../common/reference.rs"]
mod reference;
#[allow(dead_code, reason = "the peers need less of it than the benchmarks")]
#[path = "../../../cli/src/bench/stock.rs"]
mod stock;

mod case;
mod contestants;
mod peer;
mod verdict;

/// How long and how often to measure.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: usize,
    burst: Duration,
    sustained: Duration,
}

impl Effort {
    const FULL: Self = Self {
        rounds: 5,
        burst: Duration::from_millis(10),
        sustained: Duration::from_secs(1),
    };
    const QUICK: Self = Self {
        rounds: 1,
        burst: Duration::from_millis(5),
        sustained: Duration::from_millis(50),
    };
}

/// What the command line asks for.
struct Options {
    effort: Effort,
    /// The larger number of threads.
    threads: usize,
    /// Parts of the names of those that run; none for all.
    names: Vec<String>,
}

impl Options {
    /// `None` if there is an option that is not known, or a wrong number.
    fn parse(arguments: &[String]) -> Option<Self> {
        let mut options = Self {
            effort: Effort::FULL,
            threads: 2,
            names: Vec::new(),
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => options.effort = Effort::QUICK,
                "--threads" => {
                    let threads = arguments.next()?.parse().ok();
                    options.threads = threads.filter(|threads| (2..=1024).contains(threads))?;
                }
                flag if flag.starts_with("--") => return None,
                name => options.names.push(name.to_owned()),
            }
        }
        Some(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|part| name.contains(part))
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(options) = Options::parse(&arguments) else {
        eprintln!("usage: ringflake-peers [--quick] [--threads 2..1024] [NAME...]");
        return ExitCode::from(2);
    };

    let mut cases: Vec<Case> = contestants::all()
        .into_iter()
        .filter(|peer| options.wants(peer.name))
        .map(|peer| Case::new(peer, options.threads))
        .collect();
    for case in &mut cases {
        case.check(options.effort);
    }
    for _ in 0..options.effort.rounds {
        for case in &mut cases {
            case.run(options.effort);
        }
    }

    print_head(&arguments);
    case::print_table(&cases, options.threads);
    verdict::print_table(&cases);
    if cases.iter().all(Case::is_sound) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
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

//! `ringflake bench`: how fast it is on this machine, beside its yardsticks.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::iter;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use ringflake::Backend;

use self::figures::Figures;
use self::takers::{Takers, pinning};
use self::workloads::{NAMES, Workload};
use crate::count::count;
use crate::format::{Format, FormatArgs};
use crate::interrupt::Interrupt;
use crate::output;
use crate::report::say;
use crate::threads::{cores, thread_count};

mod figures;
mod race;
mod stock;
mod takers;
mod workloads;

#[cfg(test)]
mod race_tests;

const DETAILS: &str = "Examples:
  ringflake bench                            # everything
  ringflake bench --only take --threads 1,2  # one workload
  ringflake bench --format json > bench.json # for programs

Workloads:
  fetch_add           a shared counter: the yardstick
  array_queue_pop     crossbeam's ArrayQueue of 2^20 slots, filled before
  ring_take           the ring alone, of 2^20 slots, filled before
  ring_take_batch_64  the same, 64 IDs at a time
  take                a generator whose cache was filled before: 2^22 slots for each
                      core, but 2^26 at most
  take_batch_64       the same, 64 IDs at a time
  handle_take         the same, a handle each
  live_take           one producer; the other threads take IDs singly
  live_batch_64       one producer; the other threads take 64 IDs at a time
  sustained_take      a default generator; its producer comes on top of the threads
  sustained_handle    the same, a handle each
  in_place            no ring: each thread claims and encrypts 64 IDs at a time
  encrypt_scalar      the cipher alone, one block at a time
  encrypt_batch       the cipher alone, runs of 64 blocks

The table shows medians of all rounds, and ratios to the same workload at its fewest
threads and to fetch_add at as many. The exit status is 130 after Ctrl-C.

JSON, a line for each workload and number of threads: name, threads,
median_ids_per_s, min_ids_per_s, max_ids_per_s, rounds, unique (null where no ID is
made), backend (of the cipher)";

/// Measure the speed on this machine
#[derive(Debug, Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    format: FormatArgs,
    /// How often each workload is timed
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = count::<u16>(1..=1000))]
    rounds: u16,
    /// Only this workload; may be given more than once
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(NAMES))]
    only: Vec<String>,
    /// Numbers of threads, such as 1,2,8; the producer of a live_ workload counts as
    /// one [default: 1, 2, 4 and so on, and one a core]
    #[arg(long, value_name = "T", value_delimiter = ',', value_parser = thread_count)]
    threads: Vec<usize>,
    /// Keep each thread that takes on a core of its own. On Linux
    #[arg(long)]
    pin: bool,
}

/// One workload at one number of threads.
struct Case {
    name: &'static str,
    /// All that work.
    threads: usize,
    workload: Workload,
    /// IDs a second in each round so far.
    rates: Vec<f64>,
    unique: Option<bool>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    let prepare = if args.pin { pinning()? } else { |_| () };
    let counts = match &args.threads[..] {
        [] => &doubling_to(cores()),
        counts => counts,
    };
    let mut cases = Vec::new();
    for name in NAMES {
        if args.only.is_empty() || args.only.iter().any(|only| only == name) {
            for threads in thread_counts(name, counts) {
                let takers = Takers {
                    threads: takers(name, threads),
                    prepare,
                };
                cases.push(Case::new(name, threads, takers)?);
            }
        }
    }

    let backend = stock::cipher().backend();
    // A stderr that can't be written to is no reason to stop.
    let _ = writeln!(io::stderr(), "backend: {backend}");

    let interrupt = Interrupt::listen().context("signals can't be listened to")?;
    measure(&mut cases, args.rounds, &interrupt)?;
    let all: Vec<_> = cases
        .iter()
        .filter_map(|case| case.figures(backend))
        .collect();
    if interrupt.came() {
        say("interrupted: these are the rounds until then");
    }
    let printed = output::answer(|out| match args.format.format {
        Format::Json => all
            .iter()
            .try_for_each(|figures| output::json(out, figures)),
        Format::Text => figures::print_table(&all, out),
    });
    conclude(&cases, printed)?;
    Ok(interrupt.exit_code())
}

/// Checks each case, then times all of them in turns, until an interrupt.
fn measure(cases: &mut [Case], rounds: u16, interrupt: &Interrupt) -> Result<()> {
    for round in 0..=rounds {
        for case in &mut *cases {
            if interrupt.came() {
                return Ok(());
            }
            match round {
                0 => case.check()?,
                _ => case.time()?,
            }
        }
    }
    Ok(())
}

/// Duplicates are reported even where the figures could not be printed, or where an
/// interrupt came before there were any.
fn conclude(cases: &[Case], printed: Result<()>) -> Result<()> {
    match cases.iter().find(|case| case.unique == Some(false)) {
        Some(case) => bail!("{} handed out an ID twice", case.name),
        None => printed,
    }
}

/// The powers of two below `cores`, and `cores`.
fn doubling_to(cores: usize) -> Vec<usize> {
    let powers = iter::successors(Some(1), |power| Some(power * 2));
    powers
        .take_while(|&power| power < cores)
        .chain([cores])
        .collect()
}

/// The numbers of threads to measure a workload at, if these were asked for.
fn thread_counts(name: &str, counts: &[usize]) -> BTreeSet<usize> {
    let fewest = if has_producer(name) { 2 } else { 1 };
    counts.iter().map(|&count| count.max(fewest)).collect()
}

fn has_producer(name: &str) -> bool {
    name.starts_with("live_")
}

fn takers(name: &str, threads: usize) -> usize {
    threads - usize::from(has_producer(name))
}

fn makes_ids(name: &str) -> bool {
    !name.starts_with("encrypt_")
}

impl Case {
    fn new(name: &'static str, threads: usize, takers: Takers) -> Result<Self> {
        Ok(Self {
            name,
            threads,
            workload: workloads::by_name(name, takers)?,
            rates: Vec::new(),
            unique: None,
        })
    }

    fn check(&mut self) -> Result<()> {
        if makes_ids(self.name) {
            let unique = self.workload.is_unique();
            self.unique = Some(unique.context(self.name)?);
        }
        Ok(())
    }

    fn time(&mut self) -> Result<()> {
        let rate = self.workload.time().context(self.name)?;
        self.rates.push(rate);
        Ok(())
    }

    /// The figures, if it was timed at all.
    fn figures(&self, backend: Backend) -> Option<Figures> {
        let timed = !self.rates.is_empty();
        timed.then(|| Figures {
            unique: self.unique,
            backend: backend.to_string(),
            ..Figures::new(self.name, self.threads, self.rates.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_live_ring_has_a_producer_among_its_threads() {
        let counts = |name, cores| Vec::from_iter(thread_counts(name, &doubling_to(cores)));
        assert_eq!(counts("ring_take", 8), [1, 2, 4, 8]);
        assert_eq!(counts("ring_take", 6), [1, 2, 4, 6]);
        assert_eq!(counts("ring_take", 1), [1]);
        assert_eq!(counts("sustained_take", 2), [1, 2]);
        assert_eq!(counts("live_take", 8), [2, 4, 8]);
        assert_eq!(counts("live_take", 2), [2]);
        assert_eq!(counts("live_batch_64", 1), [2]);
        assert_eq!((takers("live_take", 2), takers("in_place", 2)), (1, 2));
    }

    #[test]
    fn a_duplicate_is_reported_whatever_was_printed_or_timed() {
        let full = || Err(anyhow!("no space left"));
        assert!(conclude(&[judged(true, vec![1.0])], full()).is_err());
        for rates in [vec![1.0], vec![]] {
            let cases = [judged(true, rates.clone()), judged(false, rates.clone())];
            for printed in [Ok(()), full()] {
                let verdict = conclude(&cases, printed).unwrap_err().to_string();
                assert_eq!(verdict, "fetch_add handed out an ID twice");
            }
            assert!(conclude(&cases[..1], Ok(())).is_ok());
            let figures = cases[1].figures(Backend::Portable);
            assert_eq!(figures.is_some(), !rates.is_empty());
        }
    }

    /// A case that was checked, and timed so often.
    fn judged(unique: bool, rates: Vec<f64>) -> Case {
        let case = Case::new("fetch_add", 1, Takers::free(1)).unwrap();
        Case {
            unique: Some(unique),
            rates,
            ..case
        }
    }
}

//! A process that issues IDs under a lease, and tells all that it does.

use std::io::BufRead;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{History, OpenOptions, StaticLease, open};
use ringflake::{CachedGenerator, Id, Refused, TakeError, ThresholdFill};

use super::grant_log::Tenure;
use super::ttl::TtlOnly;
use super::wire::{Flaw, IDS_A_LINE, Line, Task, say};
use super::witness::Witness;
use super::{Outcome, space, text};
use ringflake_kit::child;

const PERIOD: Duration = Duration::from_millis(20);

/// So many each time: 2,000 a second, of the 2,560 that its block has.
const PACED: usize = 40;

/// A greedy one would have so many each time: eight times what its block has.
const GREEDY: usize = 400;

/// What an overseer may write to a worker, each on a line.
pub(crate) const FORK: &str = "fork";
pub(crate) const INVALIDATE: &str = "invalidate";

pub(crate) fn run(task: &Task) -> ! {
    // A full disk is an error, and not the end of the process.
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let ended = AtomicBool::new(false);
    let mut built = OnceLock::new();
    thread::scope(|scope| {
        scope.spawn(|| obey(&ended, &built));
        while !ended.load(SeqCst) {
            match build(task) {
                Ok(generator) => issue(task, built.get_or_init(|| generator), &ended),
                Err(error) => {
                    say(&Line::Unbuilt { error });
                    thread::sleep(Duration::from_millis(50));
                }
            }
        }
    });
    // Its blocks are released with it.
    drop(built.take());
    std::process::exit(0)
}

fn build(task: &Task) -> Outcome<CachedGenerator> {
    let terms = &task.terms;
    let layout = space::layout(terms.node_bits);
    let builder = CachedGenerator::builder(layout)
        .secret(space::secret(&task.namespace))
        .capacity(1024)
        .producers(1)
        .threshold_fill(ThresholdFill::percent(50))
        .borrow_limit(space::BORROW);
    let options = OpenOptions::new()
        .timeout(space::PATIENCE)
        .accept_best_effort(terms.best_effort);
    let store = match terms.flaw {
        Some(Flaw::StartsAnew) => {
            let block = u64::from(task.number);
            // It has no grant to tell of; that is not what it is to be caught at.
            say(&Line::Granted(Tenure {
                block,
                epoch: u64::from(std::process::id()),
                ticks: 0..layout.ticks(),
            }));
            let lease = StaticLease::assume_unique(layout, block * 4..block * 4 + 4);
            return builder.lease(lease).build().map_err(text);
        }
        Some(Flaw::TtlOnly) => Box::new(TtlOnly::open(&task.url)),
        _ => open(&task.url, &options).map_err(text)?,
    };
    let builder = match terms.takes_it_for_new {
        true => builder.init_if_new(History::New),
        false => builder,
    };
    builder
        .lease_store(Witness {
            store,
            left: task.dies_after_reply,
            flaw: terms.flaw,
        })
        .namespace(&task.namespace)
        .block_bits(space::BLOCK_BITS)
        .widen_to(1)
        .lease_duration(space::LEASE_DURATION)
        // It is asked again by who called this, until the end.
        .first_lease_within(Duration::ZERO)
        .build()
        .map_err(text)
}

/// Does what the overseer asks for, until it asks for the end.
fn obey(ended: &AtomicBool, generator: &OnceLock<CachedGenerator>) {
    for line in std::io::stdin().lock().lines() {
        match (line.as_deref(), generator.get()) {
            (Ok(FORK), Some(generator)) => fork(generator),
            (Ok(INVALIDATE), Some(generator)) => generator.invalidate(),
            _ => {}
        }
    }
    ended.store(true, SeqCst);
}

fn numbers(ids: &[Id]) -> Vec<u64> {
    ids.iter().map(|id| id.to_u64()).collect()
}

/// Forks while the other thread takes IDs, and lets the child try to.
fn fork(generator: &CachedGenerator) {
    let status = child::in_a_fork(|| {
        // It has no parent that would end it, should it hang.
        // SAFETY: no handler is installed.
        unsafe { libc::alarm(120) };
        let mut batch = [Id::default(); 64];
        for _ in 0..100 {
            let count = generator.take_batch(&mut batch).unwrap_or(0);
            let mut ids = numbers(&batch[..count]);
            ids.extend(generator.take().ok().map(|id| id.to_u64()));
            if !ids.is_empty() {
                say(&Line::ChildIds(ids));
            }
        }
        0
    });
    say(&Line::Forked {
        status: status.unwrap_or(child::PANICKED),
    });
}

type Take<'a> = Box<dyn FnMut(&mut [Id]) -> Result<usize, TakeError> + 'a>;

/// One at a time, in batches, or by a handle.
fn way_to_take(number: u32, generator: &CachedGenerator) -> Take<'_> {
    let single = |out: &mut [Id], id| {
        out[0] = id;
        1
    };
    match number % 3 {
        0 => Box::new(move |out| Ok(single(out, generator.take()?))),
        1 => Box::new(|out| generator.take_batch(out)),
        _ => {
            let mut handle = generator.handle().unwrap();
            Box::new(move |out| Ok(single(out, handle.take()?)))
        }
    }
}

/// Takes as many as `out` has room for, and says why not all.
fn fill(out: &mut [Id], take: &mut Take<'_>) -> (usize, Option<TakeError>) {
    let mut taken = 0;
    while taken < out.len() {
        match take(&mut out[taken..]) {
            Ok(count) => taken += count,
            Err(error) => return (taken, Some(error)),
        }
    }
    (taken, None)
}

/// The errors of a worker that takes more than its leases yield, while all is well.
fn is_for_the_greedy(error: TakeError) -> bool {
    matches!(
        error,
        TakeError::Refused(Refused::BorrowLimit { .. } | Refused::NoLease { failure: None, .. })
    )
}

fn issue(task: &Task, generator: &CachedGenerator, ended: &AtomicBool) {
    let mut take = way_to_take(task.number, generator);
    let wanted = if task.is_greedy() { GREEDY } else { PACED };
    let mut refused: Option<Instant> = None;
    let mut due = Instant::now();
    let mut round = 0_u64;
    while !ended.load(SeqCst) {
        let mut left = wanted;
        while left > 0 {
            let mut out = [Id::default(); IDS_A_LINE];
            let (taken, error) = fill(&mut out[..left.min(IDS_A_LINE)], &mut take);
            if taken > 0 {
                say(&Line::Ids(numbers(&out[..taken])));
                if let Some(since) = refused.take() {
                    let after_ms = since.elapsed().as_millis() as u64;
                    say(&Line::Served { after_ms });
                }
            }
            left -= taken;
            if let Some(error) = error {
                let is_due = refused.is_none() || round.is_multiple_of(25);
                if !(task.is_greedy() && is_for_the_greedy(error)) && is_due {
                    refused.get_or_insert_with(Instant::now);
                    let error = error.to_string();
                    say(&Line::Refused { error });
                }
                break;
            }
        }
        round += 1;
        due += PERIOD;
        // Not more at once after it was stopped for a while.
        due = due.max(Instant::now());
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

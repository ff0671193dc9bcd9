//! A process that issues IDs under a lease, and tells all that it does.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{History, OpenOptions, StaticLease, open};
use ringflake::{
    CachedGenerator, Clock, Handle, Id, Refused, SystemClock, TakeError, ThresholdFill,
};

use super::space;
use super::ttl::TtlOnly;
use super::wire::{Flaw, IDS_A_LINE, Line, Task, say};
use super::witness::Witness;
use ringflake_kit::child;

/// A worker takes so often.
const PERIOD: Duration = Duration::from_millis(20);

/// So many each time: 2,000 a second, of the 2,560 that its block has.
const PACED: usize = 40;

/// A greedy one would have so many each time: eight times what its block has.
const GREEDY: usize = 400;

/// What an overseer may write to a worker, each on a line.
pub(crate) const FORK: &str = "fork";
pub(crate) const INVALIDATE: &str = "invalidate";

/// Issues IDs until the standard input ends.
pub(crate) fn run(task: &Task) -> ! {
    // A full disk is an error, and not the end of the process.
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let ended = Arc::new(AtomicBool::new(false));
    let built: Arc<std::sync::OnceLock<Arc<CachedGenerator>>> = Arc::default();
    thread::spawn({
        let (ended, built) = (Arc::clone(&ended), Arc::clone(&built));
        move || obey(&ended, || built.get().cloned())
    });
    while !ended.load(SeqCst) {
        match build(task) {
            Ok(generator) => {
                let generator = built.get_or_init(|| Arc::new(generator));
                issue(task, generator, &ended);
            }
            Err(error) => {
                say(&Line::Unbuilt { error });
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
    // Its blocks are released with the last of it.
    let generator = Arc::into_inner(built).and_then(std::sync::OnceLock::into_inner);
    drop(generator);
    std::process::exit(0)
}

fn build(task: &Task) -> Result<CachedGenerator, String> {
    let layout = space::layout(task.node_bits);
    let builder = CachedGenerator::builder(layout)
        .secret(&space::secret(&task.namespace))
        .capacity(1024)
        .producers(1)
        .threshold_fill(ThresholdFill::percent(50))
        .borrow_limit(space::BORROW);
    let options = OpenOptions::new()
        .timeout(space::PATIENCE)
        .accept_best_effort(task.best_effort);
    let store = match task.flaw {
        Some(Flaw::StartsAnew) => {
            let nodes = u64::from(task.number) * 4..u64::from(task.number) * 4 + 4;
            // It has no grant to tell of; that is not what it is to be caught at.
            say(&Line::Granted {
                renewed: false,
                block: u64::from(task.number),
                epoch: u64::from(std::process::id()),
                start: 0,
                end: layout.ticks(),
                micros: 0,
            });
            let lease = StaticLease::assume_unique(layout, nodes);
            return builder.lease(lease).build().map_err(|e| e.to_string());
        }
        Some(Flaw::TtlOnly) => Box::new(TtlOnly::open(&task.url)),
        _ => open(&task.url, &options).map_err(|error| error.to_string())?,
    };
    let builder = match task.takes_it_for_new {
        true => builder.init_if_new(History::New),
        false => builder,
    };
    builder
        .lease_store(Witness::new(store, task.dies_after_reply, task.flaw))
        .namespace(&task.namespace)
        .block_bits(space::BLOCK_BITS)
        .widen_to(1)
        .lease_duration(space::LEASE_DURATION)
        // It is asked again by who called this, until the end.
        .first_lease_within(Duration::ZERO)
        .build()
        .map_err(|error| error.to_string())
}

/// Does what the overseer asks for, until it asks for the end.
fn obey(ended: &AtomicBool, generator: impl Fn() -> Option<Arc<CachedGenerator>>) {
    for line in std::io::stdin().lock().lines() {
        match (line.as_deref(), generator()) {
            (Ok(FORK), Some(generator)) => fork(&generator),
            (Ok(INVALIDATE), Some(generator)) => generator.invalidate(),
            _ => {}
        }
    }
    ended.store(true, SeqCst);
}

/// Forks while the other thread takes IDs, and lets the child try to.
fn fork(generator: &CachedGenerator) {
    let status = child::in_a_fork(|| {
        // It has no parent that would end it, should it hang.
        // SAFETY: no handler is installed.
        unsafe { libc::alarm(30) };
        let mut batch = [Id::default(); 64];
        for _ in 0..100 {
            let count = generator.take_batch(&mut batch).unwrap_or(0);
            let mut ids: Vec<_> = batch[..count].iter().map(|id| id.to_u64()).collect();
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

/// The ways to take.
enum Taking<'a> {
    Single(&'a CachedGenerator),
    Batch(&'a CachedGenerator),
    Handle(Box<Handle>),
}

impl Taking<'_> {
    /// Fills as much of `out` as it is given, and says why not all of it.
    fn take(&mut self, out: &mut [Id]) -> (usize, Option<TakeError>) {
        let mut taken = 0;
        while taken < out.len() {
            let result = match self {
                Self::Single(ids) => ids.take().map(|id| {
                    out[taken] = id;
                    1
                }),
                Self::Batch(ids) => ids.take_batch(&mut out[taken..]),
                Self::Handle(handle) => handle.take().map(|id| {
                    out[taken] = id;
                    1
                }),
            };
            match result {
                Ok(count) => taken += count,
                Err(error) => return (taken, Some(error)),
            }
        }
        (taken, None)
    }
}

/// What one who takes more than there is must be told while all is well.
fn is_for_the_greedy(error: TakeError) -> bool {
    matches!(
        error,
        TakeError::Refused(Refused::BorrowLimit { .. } | Refused::NoLease { failure: None, .. })
    )
}

fn issue(task: &Task, generator: &CachedGenerator, ended: &AtomicBool) {
    let mut taking = match task.number % 3 {
        0 => Taking::Single(generator),
        1 => Taking::Batch(generator),
        _ => Taking::Handle(Box::new(generator.handle().unwrap())),
    };
    let layout = space::layout(task.node_bits);
    let wanted = if task.greedy { GREEDY } else { PACED };
    let mut refused: Option<Instant> = None;
    let mut due = Instant::now();
    let mut round = 0_u64;
    while !ended.load(SeqCst) {
        let mut left = wanted;
        while left > 0 {
            let mut out = [Id::default(); IDS_A_LINE];
            let (taken, error) = taking.take(&mut out[..left.min(IDS_A_LINE)]);
            if taken > 0 {
                say(&Line::Ids(
                    out[..taken].iter().map(|id| id.to_u64()).collect(),
                ));
                if let Some(since) = refused.take() {
                    let after_ms = since.elapsed().as_millis() as u64;
                    say(&Line::Served { after_ms });
                }
                if round.is_multiple_of(5) && left == wanted {
                    let tick = generator.inspect(out[taken - 1]).unwrap().tick;
                    let of_it = layout.tick_start_unix_ms(tick) as i64;
                    let ms = of_it - SystemClock.unix_ms() as i64;
                    say(&Line::Borrowed { ms });
                }
            }
            left -= taken;
            if let Some(error) = error {
                let is_due = refused.is_none() || round.is_multiple_of(25);
                if !(task.greedy && is_for_the_greedy(error)) && is_due {
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

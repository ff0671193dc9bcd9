//! Threads: how many, and doing one thing in several of them.

use std::num::NonZeroUsize;
use std::panic;
use std::thread::{self, ScopedJoinHandle};

use anyhow::{Context, Result};

use crate::count::count;

/// The most threads that an option takes.
const MOST: usize = 1024;

/// Parses a number of threads, as an option names it.
pub(crate) fn thread_count(text: &str) -> Result<usize> {
    count(1..=MOST as u64)(text)
}

/// As many threads as this machine runs at once.
pub(crate) fn cores() -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    cores.min(MOST)
}

/// Runs `work` in `count` threads at once and returns what each came to, or
/// the first error. All have ended by then.
pub(crate) fn in_threads<T: Send>(
    count: usize,
    work: impl Fn() -> Result<T> + Sync,
) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, &work);
        let threads = (0..count)
            .map(spawn)
            .collect::<std::io::Result<Vec<_>>>()
            .context("a thread can't be started")?;
        let ends = threads.into_iter().map(ScopedJoinHandle::join);
        ends.map(|end| end.unwrap_or_else(|panic| panic::resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn the_work_runs_in_all_threads_at_once() {
        let all_here = Barrier::new(3);
        let leaders = in_threads(3, || Ok(all_here.wait().is_leader())).unwrap();
        assert_eq!(leaders.iter().filter(|&&leader| leader).count(), 1);
    }

    #[test]
    fn a_panic_keeps_its_message() {
        let panic = panic::catch_unwind(|| in_threads(1, || -> Result<()> { panic!("why") }));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"why"));
    }
}

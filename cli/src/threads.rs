//! Threads: how many, and doing one thing in several of them.

use std::num::NonZeroUsize;
use std::panic;
use std::str::FromStr;
use std::thread;

use anyhow::{Context, Result};

use crate::count::count;

/// A number of threads, 1 to [`ThreadCount::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadCount(usize);

impl ThreadCount {
    const MAX: usize = 1024;

    /// As many as this machine runs at once.
    pub(crate) fn cores() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self(cores.min(Self::MAX))
    }

    /// So many as are given, or one a core, but for one core that is left to the producer.
    pub(crate) fn or_all_but_one(given: Option<Self>) -> usize {
        given.map_or(Self::cores().0 - 1, Self::get).max(1)
    }

    pub(crate) fn get(self) -> usize {
        self.0
    }
}

impl FromStr for ThreadCount {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        count(1..=Self::MAX as u64)(text).map(Self)
    }
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
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| panic::resume_unwind(panic))
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use anyhow::bail;

    use super::*;

    #[test]
    fn the_work_runs_in_all_threads_at_once() {
        let all_here = Barrier::new(3);
        let leaders = in_threads(3, || Ok(all_here.wait().is_leader())).unwrap();
        assert_eq!(leaders.iter().filter(|&&leader| leader).count(), 1);
    }

    #[test]
    fn one_error_is_passed_on() {
        let outcome: Result<Vec<()>> = in_threads(2, || bail!("no"));
        assert_eq!(outcome.unwrap_err().to_string(), "no");
    }
}

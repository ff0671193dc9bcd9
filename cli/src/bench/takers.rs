//! The threads that take in a race, and where they run.

use anyhow::Result;

/// The threads that take in a race.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takers {
    pub(super) threads: usize,
    /// Called in each of them before it starts, with its number.
    pub(super) prepare: fn(usize),
}

impl Takers {
    /// Threads that run where the system lets them.
    #[cfg(test)]
    pub(super) fn free(threads: usize) -> Self {
        Self {
            threads,
            prepare: |_| (),
        }
    }
}

/// What keeps a thread on a core of its own, by its number. An error if the system can't, or does
/// not let this process.
#[cfg(target_os = "linux")]
pub(super) fn pinning() -> Result<fn(usize)> {
    use anyhow::Context;
    use rustix::thread::sched_setaffinity;

    let allowed = linux::allowed().context("the cores that this process may use are not known")?;
    // As it is, so that a refusal is noticed before the races.
    sched_setaffinity(None, &allowed).context("threads can't be kept on a core")?;
    Ok(|number| linux::pin(number).expect("allowed a moment ago"))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn pinning() -> Result<fn(usize)> {
    anyhow::bail!("--pin works only on Linux")
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    pub(super) fn allowed() -> io::Result<CpuSet> {
        Ok(sched_getaffinity(None)?)
    }

    /// Keeps this thread, which has the cores of the process, on one of them: the next
    /// core for the next number, and from the last one on the first again.
    pub(super) fn pin(number: usize) -> io::Result<()> {
        let allowed = allowed()?;
        let rank = number % (allowed.count() as usize).max(1);
        let mut own = CpuSet::new();
        let cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        cores.skip(rank).take(1).for_each(|core| own.set(core));
        Ok(sched_setaffinity(None, &own)?)
    }

    #[cfg(test)]
    mod tests {
        use std::collections::BTreeSet;
        use std::thread;

        use super::*;

        fn cores(set: &CpuSet) -> Vec<usize> {
            let cores = 0..CpuSet::MAX_CPU;
            cores.filter(|&core| set.is_set(core)).collect()
        }

        #[test]
        fn each_thread_has_one_core_and_all_cores_have_one() {
            let all = cores(&allowed().unwrap());
            let own_of = |number| {
                let pinned = move || {
                    pin(number).unwrap();
                    cores(&allowed().unwrap())
                };
                thread::spawn(pinned).join().unwrap()
            };
            let mut seen = BTreeSet::new();
            for number in 0..all.len() {
                let own = own_of(number);
                assert_eq!(own.len(), 1);
                seen.extend(own);
            }
            assert_eq!(Vec::from_iter(seen), all);
            assert_eq!(own_of(all.len()), all[..1]);
        }
    }
}

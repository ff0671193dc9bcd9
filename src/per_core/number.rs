//! The number of the core that a thread runs on.
//!
//! | source | where | measured, a call |
//! |---|---|---:|
//! | the thread's rseq area | Linux, where glibc (since 2.35) registers one | 0.2 ns |
//! | `getcpu` of the vDSO, no system call | Linux elsewhere, as with musl | 1.6 ns |
//! | a number that the thread is given at its first call | elsewhere | |
//!
//! The kernel writes the number into the rseq area before it lets a thread go on that it
//! has moved. In the loop of a take the load costs nothing that can be measured, since the
//! take waits for its exchange, and `getcpu` a seventh.
//!
//! The number is a hint: the thread may be moved right after it was read. Everything that
//! is reached by it is safe for any number of threads.

pub(super) mod rseq;

use std::cell::Cell;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// The way to the numbers, which each thread has.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoreNumbers {
    areas: Option<rseq::Areas>,
}

impl CoreNumbers {
    /// Looks for the best way of this process.
    pub(super) fn find() -> Self {
        Self {
            areas: rseq::Areas::find(),
        }
    }

    /// The number of this thread's core at this moment; any number is possible.
    #[inline]
    pub(super) fn here(self) -> usize {
        self.here_at_once().unwrap_or_else(by_a_call)
    }

    /// The same from the rseq area, if there is one.
    #[inline]
    pub(super) fn here_at_once(self) -> Option<usize> {
        self.areas.map(rseq::Areas::number)
    }
}

#[cold]
pub(super) fn by_a_call() -> usize {
    getcpu().unwrap_or_else(thread_count)
}

/// `None` where there is no such call, and on a kernel that has none.
pub(super) fn getcpu() -> Option<usize> {
    // SAFETY: has no arguments, and changes nothing but `errno`.
    #[cfg(all(target_os = "linux", not(miri)))]
    return usize::try_from(unsafe { libc::sched_getcpu() }).ok();
    #[cfg(not(all(target_os = "linux", not(miri))))]
    None
}

/// A number for this thread, counted from 0 in the order of their first calls.
pub(super) fn thread_count() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // A thread that is ending has no number any more; any will do.
    NUMBER
        .try_with(|number| {
            if number.get() == usize::MAX {
                // Relaxed: no two threads get the same, and nothing follows from it.
                number.set(NEXT.fetch_add(1, Relaxed) & (usize::MAX >> 1));
            }
            number.get()
        })
        .unwrap_or(0)
}

/// Where models run on real threads, these find their cores by themselves.
#[cfg(feature = "loom")]
pub fn run_on_core(_core: usize) {}

/// The same.
#[cfg(feature = "loom")]
pub fn run_on_cores(_cores: &[usize]) {}

/// The numbers of the cores that this thread may run on, in ascending order; none if the
/// system does not say.
pub(super) fn allowed_cores() -> Vec<usize> {
    #[cfg(target_os = "linux")]
    return by_affinity();
    #[cfg(not(target_os = "linux"))]
    Vec::new()
}

#[cfg(target_os = "linux")]
fn by_affinity() -> Vec<usize> {
    // SAFETY: a set of bits, for which zero bytes are the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours, and as large as it is said to be.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } != 0;
    if failed {
        return Vec::new();
    }
    let numbers = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: no number is beyond the set.
    numbers
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect()
}

//! Which cores a thread runs on.

#[cfg(target_os = "linux")]
use std::io;

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The cores that a thread goes round, for tests in which threads change cores all the time.
///
/// Where threads can't be kept on a core, or there is only one, they stay where the system
/// puts them, and a note says so; with `RINGFLAKE_REQUIRE_SERVERS` the test fails.
#[derive(Clone, Debug)]
pub struct Cores(Vec<usize>);

impl Cores {
    pub fn of_this_thread() -> Self {
        let (cores, obstacle) = Self::find();
        if let Some(obstacle) = obstacle {
            crate::has(false, &format!("threads change no cores: {obstacle}"));
        }
        Self(cores)
    }

    #[cfg(target_os = "linux")]
    fn find() -> (Vec<usize>, Option<String>) {
        let cores = allowed();
        // In a thread of its own, which then may stay there.
        let attempt = || cores.iter().try_for_each(|&core| try_to_bind_to(core));
        let attempt = std::thread::scope(|scope| scope.spawn(attempt).join());
        match attempt.expect("it does not panic") {
            Err(error) => (Vec::new(), Some(error.to_string())),
            Ok(()) if cores.len() < 2 => (cores, Some("there is only one".to_owned())),
            Ok(()) => (cores, None),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn find() -> (Vec<usize>, Option<String>) {
        (Vec::new(), Some("this system binds no threads".to_owned()))
    }

    /// How many there are; 0 where threads can't be kept on them.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Has this thread run on the core of this number from now on, counted round. Allocates
    /// nothing, so that a forked child may call it.
    pub fn go_to(&self, number: usize) {
        if !self.0.is_empty() {
            #[cfg(target_os = "linux")]
            bind_to(self.0[number % self.0.len()]);
        }
    }
}

/// Runs `work` in a thread that stays on the core on which it begins.
///
/// # Panics
/// As `work` does.
pub fn on_one_core<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            #[cfg(target_os = "linux")]
            bind_to(here());
            work()
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(target_os = "linux")]
pub fn here() -> usize {
    sched_getcpu()
}

#[cfg(target_os = "linux")]
pub fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("the system says it");
    let cores = (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core));
    cores.collect()
}

#[cfg(target_os = "linux")]
pub fn bind_to(core: usize) {
    if let Err(error) = try_to_bind_to(core) {
        panic!("{error}");
    }
}

#[cfg(target_os = "linux")]
fn try_to_bind_to(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

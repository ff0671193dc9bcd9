//! A clock that can stop its readers, or fail them.

use std::fs;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use ringflake::Clock;

use crate::eventually;

/// A clock that plays its tricks on producer threads alone, so that a test can
/// stop them in the middle of a fill, or let a fill fail there.
///
/// Clones share everything.
#[derive(Clone, Debug)]
pub struct TrickyClock(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    unix_ms: u64,
    hold: usize,
    held: usize,
    /// How often those that were stopped were let on.
    releases: u64,
    /// Where the system tells how the producers that have looked at the clock do.
    producers: Vec<PathBuf>,
    /// Reads that succeed before the panics begin, and the panics.
    good: u64,
    panics: u64,
    reads: u64,
}

impl TrickyClock {
    pub fn new(unix_ms: u64) -> Self {
        let clock = Self(Arc::default());
        clock.state().unix_ms = unix_ms;
        clock
    }

    /// Stops up to this many producers, each at its next look at the clock.
    pub fn hold(&self, producers: usize) {
        self.state().hold = producers;
    }

    pub fn wait_until_held(&self) {
        eventually("a producer looks at the clock", || self.state().held > 0);
    }

    pub fn release(&self) {
        let mut state = self.state();
        state.hold = 0;
        state.releases += 1;
        self.0.released.notify_all();
    }

    /// Lets a stopped producer go on to its next look at the clock, and waits until
    /// it is there. No other may be at work.
    pub fn step(&self) {
        let before = {
            let mut state = self.state();
            state.releases += 1;
            state.reads
        };
        self.0.released.notify_all();
        eventually("the producer looks at the clock again", || {
            let state = self.state();
            state.reads > before && state.held > 0
        });
    }

    /// Whether so many producers have looked at the clock so far, and all of them
    /// sleep, at the clock or elsewhere. Where the system does not tell, those that
    /// have looked count as asleep.
    pub fn are_asleep(&self, producers: usize) -> bool {
        let known = self.state().producers.clone();
        let sleeps = |path: &PathBuf| {
            // The state follows the name, which stands in parentheses.
            let line = fs::read_to_string(path).unwrap_or_default();
            line.rsplit(')')
                .next()
                .is_some_and(|rest| rest.starts_with(" S"))
        };
        known.len() == producers && (cfg!(not(target_os = "linux")) || known.iter().all(sleeps))
    }

    /// After `good` more reads by producers, the next `panics` of them panic.
    pub fn panic_after(&self, good: u64, panics: u64) {
        let mut state = self.state();
        (state.good, state.panics) = (good, panics);
    }

    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

pub fn in_producer() -> bool {
    let here = thread::current();
    here.name()
        .is_some_and(|name| name.starts_with("ringflake-"))
}

/// Where Linux tells how this thread does; elsewhere a name that differs for each.
fn this_thread() -> PathBuf {
    let here = fs::read_link("/proc/thread-self");
    let here = here.unwrap_or_else(|_| format!("{:?}", thread::current().id()).into());
    PathBuf::from("/proc").join(here).join("stat")
}

impl Clock for TrickyClock {
    fn unix_ms(&self) -> u64 {
        let mut state = self.state();
        if !in_producer() {
            return state.unix_ms;
        }
        state.reads += 1;
        let here = this_thread();
        if !state.producers.contains(&here) {
            state.producers.push(here);
        }
        if state.held < state.hold {
            state.held += 1;
            // Longer than `eventually` waits, but not for ever: a generator that
            // is dropped by a failing test joins its producers.
            let patience = Duration::from_secs(90);
            let released = &self.0.released;
            let releases = state.releases;
            let wait =
                released.wait_timeout_while(state, patience, |state| state.releases == releases);
            (state, _) = wait.unwrap();
            state.held -= 1;
        }
        if state.good > 0 {
            state.good -= 1;
        } else if state.panics > 0 {
            state.panics -= 1;
            drop(state);
            // Without the panic hook, which would write to the test's output.
            resume_unwind(Box::new("the clock fails"));
        }
        state.unix_ms
    }
}

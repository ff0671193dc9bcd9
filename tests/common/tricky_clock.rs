//! A clock that can stop its readers, or fail them.

use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use ringflake::Clock;

use crate::eventually::eventually;

/// A clock that plays its tricks on producer threads alone, so that a test can
/// stop them in the middle of a fill, or let a fill fail there.
///
/// Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct TrickyClock(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug)]
struct State {
    unix_ms: u64,
    /// How many producers are to be stopped.
    hold: usize,
    /// How many are.
    held: usize,
    /// Reads that succeed before the panics begin, and the panics.
    good: u64,
    panics: u64,
    reads: u64,
    /// How long a producer's read takes.
    delay: Duration,
}

impl TrickyClock {
    pub(crate) fn new(unix_ms: u64) -> Self {
        let state = State {
            unix_ms,
            hold: 0,
            held: 0,
            good: 0,
            panics: 0,
            reads: 0,
            delay: Duration::ZERO,
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            released: Condvar::new(),
        }))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.state().unix_ms += by.as_millis() as u64;
    }

    /// Stops up to this many producers, each at its next look at the clock.
    pub(crate) fn hold(&self, producers: usize) {
        self.state().hold = producers;
    }

    /// Waits until a producer is stopped.
    pub(crate) fn wait_until_held(&self) {
        eventually("a producer looks at the clock", || self.state().held > 0);
    }

    pub(crate) fn release(&self) {
        self.state().hold = 0;
        self.0.released.notify_all();
    }

    /// After `good` more reads by producers, the next `panics` of them panic.
    pub(crate) fn panic_after(&self, good: u64, panics: u64) {
        let mut state = self.state();
        (state.good, state.panics) = (good, panics);
    }

    /// Lets each read by a producer take so long.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn delay_reads(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// How often producers have looked at the clock.
    pub(crate) fn reads(&self) -> u64 {
        self.state().reads
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

impl Clock for TrickyClock {
    fn unix_ms(&self) -> u64 {
        let mut state = self.state();
        let is_producer = thread::current()
            .name()
            .is_some_and(|name| name.starts_with("ringflake-"));
        if !is_producer {
            return state.unix_ms;
        }
        state.reads += 1;
        if state.held < state.hold {
            state.held += 1;
            // Longer than `eventually` waits, but not for ever: a generator that
            // is dropped by a failing test joins its producers.
            let patience = Duration::from_secs(90);
            let released = &self.0.released;
            let wait = released.wait_timeout_while(state, patience, |state| state.hold > 0);
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
        let (unix_ms, delay) = (state.unix_ms, state.delay);
        drop(state);
        if !delay.is_zero() {
            thread::sleep(delay);
        }
        unix_ms
    }
}

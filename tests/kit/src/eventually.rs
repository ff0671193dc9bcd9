//! Waiting for a condition instead of for a time.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Release;
use std::thread;
use std::time::{Duration, Instant};

/// Returns once `condition` holds. The deadline is not under test: it only turns a hang
/// into a failure.
#[track_caller]
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    eventually_within(patience(), what, condition);
}

/// The same with a deadline of its own, for a condition that may take a minute by itself.
#[track_caller]
pub fn eventually_within(patience: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    loop {
        // Read before the condition: a thread that was stopped past the deadline looks once more.
        let is_late = Instant::now() >= deadline;
        if condition() {
            return;
        }
        assert!(!is_late, "it never came to this: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// A minute, or as many seconds as `RINGFLAKE_TEST_PATIENCE` says: where tests are
/// to fail, nobody wants to wait for so long.
fn patience() -> Duration {
    let seconds = std::env::var("RINGFLAKE_TEST_PATIENCE");
    let seconds = seconds.map_or(60, |given| given.parse().expect("a number of seconds"));
    Duration::from_secs(seconds)
}

/// Sets the flag by which the threads of a test end, also when a check fails in their midst.
pub struct EndsWhenDropped<'a>(pub &'a AtomicBool);

impl Drop for EndsWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

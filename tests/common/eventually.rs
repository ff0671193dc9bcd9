//! Waiting for a condition instead of for a time.

use std::thread;
use std::time::{Duration, Instant};

/// Returns once `condition` holds. The deadline is no part of what is tested:
/// it only turns a hang into a failure.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

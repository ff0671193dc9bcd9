//! What the tests and benchmarks share.
//!
//! What a test of a module inside `src` uses must not name a type of ringflake: there
//! the crate under test is another instance of it.
//!
//! | variable | |
//! |---|---|
//! | `RINGFLAKE_LONG=1` | what is long by nature runs in full: every fault on every store, 200,000 schedules, kills by the hundred; without it the same tests do less of it |
//! | `RINGFLAKE_FAULTS=long` | every fault at full length, some 40 minutes; `tests/faults/faults.rs` has more |
//! | `RINGFLAKE_FAULT_SCENARIOS=NAME` | only the faults whose name contains this |
//! | `RINGFLAKE_SCHEDULES=N` | so many schedules of the lease protocol, whatever is long |
//! | `RINGFLAKE_SEED=N`, `RINGFLAKE_MUTATION=NAME` | one schedule, event by event |
//! | `RINGFLAKE_MESSAGES=overwrite` | tests of messages write their snapshots, to be read as a difference |
//! | `RINGFLAKE_REQUIRE_SERVERS` | a server that is not installed fails its tests, in place of a note that they are skipped; so does a machine whose threads can't change cores |
//! | `RINGFLAKE_TEST_PATIENCE=SECONDS` | how long `eventually` waits |
//!
//! Three suites inject faults. They share the kit's servers, clocks, proxy, signals, and programs
//! with their directories and logs. They check in different ways on purpose:
//!
//! * `tests/stores` runs a store in the test's own process, injects one fault at a chosen moment,
//!   and checks the result and the records.
//! * `tests/faults` runs eight worker processes on each store and injects each fault. The workers
//!   report every grant and ID, so each ID is also checked against its grant. A scenario mostly
//!   returns errors instead of panicking: its figures are reported in either case.
//! * `tests/serve_faults` runs a server whose clients know only IDs. At the end it decrypts all
//!   IDs: none may come twice, and each must be of its time.

#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::new_without_default,
    reason = "for the tests alone: a name that says it all needs no more"
)]

pub mod affinity;
#[cfg(unix)]
pub mod child;
pub mod events;
mod eventually;
pub mod faulty_store;
#[cfg(unix)]
pub mod home;
pub mod known_answers;
#[cfg(unix)]
mod logged;
pub mod oracle;
pub mod proxy;
#[cfg(target_os = "linux")]
pub mod seccomp;
#[cfg(unix)]
pub mod server;
pub mod small;
pub mod snapshot;
pub mod split_mix;
pub mod tls;
pub mod tricky_clock;
pub mod waking;

use std::ffi::OsStr;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

pub use eventually::{EndsWhenDropped, eventually, eventually_within};
#[cfg(unix)]
pub use logged::Logged;

/// This machine's time, in milliseconds since 1970.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_millis().try_into().unwrap()
}

pub fn is_long() -> bool {
    std::env::var_os("RINGFLAKE_LONG").is_some_and(|value| !value.is_empty() && value != "0")
}

/// The first in a plain run of the tests, and the second where they run in full.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}

/// Whether this test has what it needs. If not, says that it is skipped, in whole or in part, and
/// for what lack.
///
/// # Panics
/// When `RINGFLAKE_REQUIRE_SERVERS` is set.
pub fn has(found: bool, lack: &str) -> bool {
    if !found {
        let this = std::thread::current();
        let test = this.name().unwrap_or("a test");
        let required = std::env::var_os("RINGFLAKE_REQUIRE_SERVERS").is_some();
        assert!(!required, "{test}: {lack}");
        eprintln!("SKIPPED {test}: {lack}");
    }
    found
}

/// The words of a command line or a list, in which none has a space.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs this program, which must succeed, and returns what it prints.
///
/// # Panics
/// With all that it has written, if it fails.
#[track_caller]
pub fn printed(program: &mut Command) -> String {
    let output = program.output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (printed, errors, status) = (text(&output.stdout), text(&output.stderr), output.status);
    assert!(status.success(), "{program:?}: {status}\n{printed}{errors}");
    printed
}

/// Copies as `cp` does with these options.
#[track_caller]
pub fn cp(options: &str, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) {
    printed(Command::new("cp").args(words(options)).arg(from).arg(to));
}

pub fn in_full(error: &ringflake::BuildError) -> String {
    let rest = [error.note(), error.help()];
    let lines = rest.into_iter().flatten().map(|line| format!("\n{line}"));
    error.to_string() + &lines.collect::<String>()
}

/// That a value has this pattern, which is matched against a reference to it.
///
/// # Panics
/// With the value.
#[macro_export]
macro_rules! assert_matches {
    ($value:expr, $pattern:pat $(if $guard:expr)? $(,)?) => {
        match &$value {
            $pattern $(if $guard)? => {}
            other => panic!("{other:?} is not {}", stringify!($pattern)),
        }
    };
}

/// That a text says all of this.
///
/// # Panics
/// With the text and what it does not say.
#[track_caller]
pub fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

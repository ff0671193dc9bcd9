//! Real processes on real servers, and everything that can go wrong with them.
//!
//! Each scenario of the matrix is one store and one fault. Eight workers, which are
//! processes of their own, issue IDs under leases from the store while the fault
//! is done to them, to the server or to what lies between. Every ID comes back
//! through a pipe, so that a worker that is killed has told all that it issued,
//! and so does every positive reply of the store, before the worker may use it.
//! Three questions are asked of what came back (`grant_log.rs`), and what they find is on
//! record before anybody judges it, of each scenario however it ends (`report.rs`):
//! * Was a cell of ID space issued twice? Each ID is decrypted and sets a bit.
//! * Does each ID lie inside a grant of the very process that issued it?
//! * Do two grants of a block share a tick?
//!
//! Where a store is put back to an earlier state, some of that is nobody's to promise;
//! such a scenario says what it is judged by, and counts what lies outside of it. Those of
//! the command line (`scenarios/command_line.rs`) compare what its runs have printed.
//!
//! `controls.rs` runs stores and generators that are wrong, each in one way, and
//! each must be found out.
//!
//! | variable | |
//! |---|---|
//! | none | some 25 s: each fault on one store, each store with some, every control |
//! | `RINGFLAKE_LONG=1` | some two minutes of both processors: every fault on every store |
//! | `RINGFLAKE_FAULTS=long` | some 40 minutes: a thousand kills a store, a minute without a server, what is rare besides, one store after the other |
//! | `RINGFLAKE_FAULT_SCENARIOS=NAME` | of those, only the scenarios whose name contains this |
//! | `RINGFLAKE_REQUIRE_SERVERS` | a server that is missing is a failure |
//!
//! Each run writes its table to `target/tmp/faults.md`. That of a long run, with nothing left
//! out, is kept as `tests/faults/REPORT.md`.

#[cfg(target_os = "linux")]
mod matrix;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    matrix::main()
}

/// The faults are made with what Linux has: limits of another process, a signal
/// for the death of a parent.
#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("SKIPPED faults: they need Linux");
}

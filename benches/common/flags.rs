//! Command lines of the benchmarks that are not criterion's.
//!
//! Unknown flags are left to criterion, so all benchmarks can be run with one command line.

use std::env;

/// Whether this runs under `cargo bench`; under `cargo test` it should only
/// show that it works. Criterion tells the two apart in the same way.
pub(crate) fn is_bench() -> bool {
    env::args().any(|argument| argument == "--bench")
}

/// The value that follows `flag`.
pub(crate) fn value_of(flag: &str) -> Option<String> {
    env::args().skip_while(|argument| argument != flag).nth(1)
}

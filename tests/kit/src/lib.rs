//! What the tests and benchmarks share.
//!
//! What a test of a module inside `src` uses must not name a type of ringflake: there
//! the crate under test is another instance of it.
//!
//! | variable | |
//! |---|---|
//! | `RINGFLAKE_REQUIRE_SERVERS` | a server that is not installed fails its tests, in place of a note that they are skipped |
//! | `RINGFLAKE_TEST_PATIENCE=SECONDS` | how long `eventually` waits |

#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::new_without_default,
    reason = "for the tests alone: a name that says it all needs no more"
)]

#[cfg(unix)]
pub mod child;
mod eventually;
pub mod faulty_store;
pub mod known_answers;
pub mod oracle;
pub mod proxy;
#[cfg(unix)]
pub mod server;
pub mod small;
pub mod tls;
pub mod tricky_clock;

pub use eventually::eventually;

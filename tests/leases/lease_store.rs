//! Stores of leases: the suite that all must pass, the reference store under
//! clocks that jump and histories that are lost, and random schedules of the former.

mod failover;
mod past;
mod schedules;

use std::sync::Arc;

use ringflake::lease::MemoryStore;
use ringflake::lease::conformance::Suite;
use ringflake::{Clock, SystemClock};

#[test]
fn the_memory_store_conforms() {
    let server = MemoryStore::new(Arc::new(SystemClock));
    Suite::new(&|| Box::new(server.clone()), &|| SystemClock.unix_ms())
        .with_damage(&|space, block| assert!(server.damage(space, block)))
        .run();
}

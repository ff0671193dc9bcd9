//! Stores of leases: the suite that all must pass, and what the reference store does at the
//! edges of its limits, and where replies get lost.

mod edges;
mod unknown;

use std::sync::Arc;

use ringflake::lease::conformance::Suite;
use ringflake::lease::{Leases, MemoryStore};
use ringflake::{Clock, SystemClock};

#[test]
fn the_memory_store_conforms() {
    let server = MemoryStore::new(Arc::new(SystemClock));
    Suite::new(&|| Box::new(server.clone()), &|| SystemClock.unix_ms())
        .with_damage(&|space, block| assert!(server.damage(space, block)))
        .run();
}

/// Blocks are selected at random, and a part of them is read.
#[test]
fn leases_over_a_table_conform() {
    let server = MemoryStore::new(Arc::new(SystemClock));
    let open = || Leases::over(server.table().clone());
    Suite::new(&|| Box::new(open()), &|| SystemClock.unix_ms())
        .with_damage(&|space, block| assert!(server.damage(space, block)))
        .run();
}

//! Stores of leases: the suite that all must pass, the reference store under
//! clocks that jump and histories that are lost, and random schedules of both.

mod failover;
mod schedules;

use std::sync::Arc;

use ringflake::lease::MemoryStore;
use ringflake::lease::conformance::Suite;
use ringflake::{Clock, SystemClock};

#[test]
fn the_memory_store_conforms() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let server = MemoryStore::new(Arc::clone(&clock));
    Suite::new(&|| Box::new(server.clone()), &|| clock.unix_ms())
        .with_damage(&|space, block| assert!(server.damage(space, block)))
        .run();
}

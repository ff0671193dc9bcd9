//! Recovery after a machine was resumed from a snapshot.
//!
//! A snapshot can be resumed twice, and then two processes have the same leases,
//! the same IDs in the ring and the same stocks in their handles. Nothing inside
//! can tell. So the hook that runs after a resume, be it a script of the
//! hypervisor's agent, a unit of systemd or CRIU's `post-resume`, tells the
//! service (by a signal, say), and that calls `invalidate`.
//!
//! ```sh
//! cargo run --example resume_hook
//! ```

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ringflake::lease::{Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace};
use ringflake::{CachedGenerator, Clock, Layout, SystemClock};

const LAYOUT: Layout = Layout::RANDFLAKE;

fn main() -> Result<(), Box<dyn Error>> {
    // In earnest this is a store on another machine.
    let mut store = MemoryStore::new(Arc::new(SystemClock));
    let space = Namespace::new("orders", &LAYOUT, Fingerprint::PLAIN)?;
    store.init(&space, &Init::new(History::New, SystemClock.unix_ms()))?;

    let ids = CachedGenerator::builder(LAYOUT)
        .plain()
        .lease_store(store)
        .namespace("orders")
        // Without a call of `invalidate`, two copies share IDs until the lease ends: so a
        // short one.
        .lease_duration(Duration::from_secs(60))
        .build()?;
    let mut handle = ids.handle()?;
    println!("before: {}", handle.take()?);
    let shared = ids.leases();

    // Here the machine is stopped, copied and resumed, and both copies go on.
    resumed(&ids);

    for _ in 0..100_000 {
        let made = ids.inspect(handle.take()?)?;
        let is_shared = shared.iter().any(|l| l.contains(made.node, made.tick));
        assert!(!is_shared, "the other copy may issue this one, too");
    }
    println!("after:  {}", handle.take()?);
    println!("none of what a copy may have was issued");
    Ok(())
}

/// Called by the hook, before any other work.
fn resumed(ids: &CachedGenerator) {
    // From here on nothing is served that was made before.
    ids.invalidate();
    // Fresh leases come in the background. Takes would fail until then.
    while ids.leases().is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    for lease in ids.leases() {
        println!("leased anew: {lease}");
    }
}

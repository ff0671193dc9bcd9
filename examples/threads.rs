//! One generator, four threads, a handle for each of them: no ID comes twice.
//!
//! A handle is a thread's own stock of 128 IDs. Taking from it touches no memory that other threads
//! write. Its next stock comes from the ring of the thread's core, so it stays fast however many
//! threads there are.
//!
//! ```sh
//! cargo run --release --example threads
//! ```

use std::error::Error;
use std::thread;
use std::time::Instant;

use ringflake::{CachedGenerator, Handle, Id, Layout, Secret, StaticLease, TakeError};

const THREADS: usize = 4;
const IDS_A_THREAD: usize = 250_000;

fn main() -> Result<(), Box<dyn Error>> {
    let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f")?;
    let ids = CachedGenerator::builder(Layout::RANDFLAKE)
        .secret(&secret)
        .lease(StaticLease::assume_unique(Layout::RANDFLAKE, 0..32))
        .build()?;

    // Made here, where an error is easily passed on; each then moves into its
    // thread. A handle keeps the generator alive by itself.
    let handles = (0..THREADS)
        .map(|_| ids.handle())
        .collect::<Result<Vec<_>, _>>()?;

    let started = Instant::now();
    let workers: Vec<_> = handles
        .into_iter()
        .map(|handle| thread::spawn(move || work(handle)))
        .collect();

    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.join().expect("a worker panicked")?);
    }
    println!("{} IDs in {:?}", all.len(), started.elapsed());

    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), THREADS * IDS_A_THREAD, "an ID came twice");
    println!("all of them distinct");

    let stats = ids.stats();
    println!("{} stripes, one for each core", stats.stripes);
    println!(
        "{} fills by the threshold, {} assists of takes that left very few IDs, and {} IDs made \
         in place, where there were none",
        stats.fills.threshold, stats.fills.assist, stats.in_place
    );
    Ok(())
}

/// What a thread of a service does: take an ID whenever it needs one.
fn work(mut handle: Handle) -> Result<Vec<Id>, TakeError> {
    (0..IDS_A_THREAD).map(|_| handle.take()).collect()
}

//! Tasks on smol that would rather wait than make an ID themselves: from a small ring, with
//! `take_async`, which blocks no thread of the executor, and a timeout around it.
//! `cargo run --bin smol_wait`

use std::collections::HashSet;
use std::error::Error;
use std::time::Duration;

use futures_util::future::{Either, select};
use ringflake::{CachedGenerator, Id, Layout, OnEmpty, Secret, StaticLease, TakeError};
use smol::{Executor, Timer};

type Failure = Box<dyn Error + Send + Sync>;

/// The time is the task's affair: the ring has no timer.
async fn take_within(ids: &CachedGenerator, limit: Duration) -> Result<Option<Id>, TakeError> {
    let take = std::pin::pin!(ids.take_async());
    match select(take, Timer::after(limit)).await {
        Either::Left((taken, _)) => taken.map(Some),
        // Dropping the take leaves nothing behind: no ID is lost, and nobody is woken for it.
        Either::Right(_) => Ok(None),
    }
}

fn main() -> Result<(), Failure> {
    // An example has its node to itself. A service takes leases from a store, or `local`.
    let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 32..64);
    let ids = CachedGenerator::builder(Layout::RANDFLAKE)
        .secret(Secret::from_bytes(*b"only an example."))
        .lease(lease)
        .capacity(256)
        .assist_fill(None)
        .on_empty(OnEmpty::Wait(Duration::from_secs(1)))
        .build()?;

    let executor = Executor::new();
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let ids = ids.clone();
            executor.spawn(async move {
                ids.ready().await;
                let mut taken = Vec::new();
                while taken.len() < 500 {
                    taken.extend(take_within(&ids, Duration::from_secs(60)).await?);
                }
                Ok::<_, TakeError>(taken)
            })
        })
        .collect();
    let mut seen = HashSet::new();
    smol::block_on(executor.run(async {
        for task in tasks {
            for id in task.await? {
                assert!(seen.insert(id), "each ID once");
            }
        }
        Ok::<_, Failure>(())
    }))?;
    println!(
        "{} IDs for 100 tasks out of a ring of {}, each once",
        seen.len(),
        ids.capacity()
    );
    Ok(())
}

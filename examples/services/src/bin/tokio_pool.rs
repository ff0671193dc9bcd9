//! A pool of tokio tasks, each with a handle: a stock of IDs of its own, from which a take costs
//! a nanosecond and never waits, so that it is called in async code as it is.
//! `cargo run --bin tokio_pool`

use std::collections::HashSet;
use std::error::Error;

use ringflake::{CachedGenerator, Handle, Id, Layout, Secret, StaticLease};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

/// Work that needs so many IDs, and who waits for them.
struct Job {
    lines: usize,
    done: oneshot::Sender<Result<Vec<Id>, String>>,
}

async fn work(mut ids: Handle, mut jobs: mpsc::Receiver<Job>) {
    while let Some(Job { lines, done }) = jobs.recv().await {
        let taken: Result<Vec<Id>, _> = (0..lines).map(|_| ids.take()).collect();
        // The IDs of a receiver that has gone stay unused.
        let _ = done.send(taken.map_err(|error| error.to_string()));
        tokio::task::yield_now().await;
    }
    // Dropping the handle puts its rest back into the rings.
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    // An example has its node to itself. A service takes leases from a store, or `local`.
    let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..32);
    let ids = CachedGenerator::builder(Layout::RANDFLAKE)
        .secret(Secret::from_bytes(*b"only an example."))
        .lease(lease)
        .build()?;

    let mut pool = JoinSet::new();
    let mut queues = Vec::new();
    for _ in 0..4 {
        let (queue, jobs) = mpsc::channel(64);
        pool.spawn(work(ids.handle()?, jobs));
        queues.push(queue);
    }

    let mut answers = Vec::new();
    for (number, queue) in (1..=1_000).zip(queues.iter().cycle()) {
        let (done, answer) = oneshot::channel();
        let lines = number % 50;
        queue
            .send(Job { lines, done })
            .await
            .map_err(|_| "a worker has ended")?;
        answers.push((lines, answer));
    }
    let mut seen = HashSet::new();
    for (lines, answer) in answers {
        let taken = answer.await??;
        assert_eq!(taken.len(), lines);
        assert!(taken.into_iter().all(|id| seen.insert(id)), "each ID once");
    }
    drop(queues);
    pool.join_all().await;
    assert_eq!(ids.stats().issued, seen.len() as u64);
    println!("{} IDs for 1,000 jobs of 4 workers, each once", seen.len());
    Ok(())
}

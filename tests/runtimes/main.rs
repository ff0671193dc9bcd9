//! Tasks of Tokio and smol that take from one small ring, some of them cancelled.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ringflake::{CachedGenerator, Id, OnEmpty};
use smol::future::{or, yield_now};

use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{cached, layout};

const TASKS: u64 = 40;
const ROUNDS: u64 = 200;

/// A generator of sixteen slots, and the cells of its lease.
fn small() -> (Arc<CachedGenerator>, Arc<Oracle>) {
    let layout = layout(40, 8, 8);
    let ids = cached(layout, 0..8, 0..400)
        .borrow_limit(Duration::from_secs(3600))
        .capacity(16)
        .on_empty(OnEmpty::Wait(Duration::ZERO))
        .build()
        .unwrap();
    (Arc::new(ids), Arc::new(Oracle::new(layout, 0..8, 0..400)))
}

/// Takes in every way, and returns how many IDs that were. Every third take is dropped unless
/// it is ready after one turn of the other tasks.
async fn consume(ids: Arc<CachedGenerator>, oracle: Arc<Oracle>, task: u64) -> u64 {
    let mut taken = 0;
    let mut batch = [Id::default(); 5];
    for round in task..task + ROUNDS {
        let count = match round % 3 {
            0 => {
                let take = async { Some(ids.take_async().await.unwrap()) };
                let turn = async {
                    yield_now().await;
                    None
                };
                let id = or(take, turn).await;
                id.map_or(0, |id| {
                    batch[0] = id;
                    1
                })
            }
            1 => ids.take_batch_async(&mut batch).await.unwrap(),
            _ => {
                batch[0] = ids.take_async().await.unwrap();
                1
            }
        };
        for &id in &batch[..count] {
            oracle.mark(ids.inspect(id).unwrap()).unwrap();
        }
        taken += count as u64;
    }
    taken
}

/// `run` runs the tasks, and gives how many IDs they got together.
fn assert_each_id_once<F: Future<Output = u64>>(
    run: impl FnOnce(Vec<std::pin::Pin<Box<dyn Future<Output = u64> + Send>>>) -> F,
    block_on: impl FnOnce(F) -> u64,
) {
    let (ids, oracle) = small();
    let tasks = (0..TASKS)
        .map(|task| Box::pin(consume(ids.clone(), oracle.clone(), task)) as _)
        .collect();
    let taken = block_on(run(tasks));
    assert!(taken >= TASKS * ROUNDS / 2, "{taken}");
    assert_eq!(oracle.marked(), taken);
    let stats = ids.stats();
    assert_eq!((stats.issued, stats.retired), (taken, 0));
    // Nobody is left who would get the next ones, when the producer comes to make them.
    let left = smol::block_on(async { ids.take_batch_async(&mut [Id::default(); 16]).await });
    assert!(left.unwrap() > 0);
}

#[test]
fn r1_tasks_of_tokio_get_each_id_once() {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(3).build().unwrap();
    let run = |tasks: Vec<_>| async {
        let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
        let mut taken = 0;
        for task in tasks {
            taken += task.await.unwrap();
        }
        taken
    };
    assert_each_id_once(run, |all| runtime.block_on(all));
}

#[test]
fn r1_tasks_of_smol_get_each_id_once() {
    let run = |tasks: Vec<_>| async {
        let tasks: Vec<_> = tasks.into_iter().map(smol::spawn).collect();
        let mut taken = 0;
        for task in tasks {
            taken += task.await;
        }
        taken
    };
    assert_each_id_once(run, smol::block_on);
}

//! Machines whose processes have their blocks of a file, and that of the store.

use std::fs;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::{Scenario, files};
use crate::matrix::case::Case;
use crate::matrix::target::sqlite::between_operations;
use crate::matrix::worker_pool::{Terms, WORKERS, WorkerPool};
use crate::matrix::{Outcome, text};
use ringflake_kit::server;

/// How long the machine goes on without its store, and a little more.
const REACH: Duration = Duration::from_secs(90);

const FILE: &str = "tier.db";

pub(super) fn of() -> [Scenario; 2] {
    [
        Scenario::new("restarts while the store is away", restarted_while_away),
        Scenario::new("file of a tier put back and lost", put_back_and_lost),
    ]
}

/// The directory of a machine, and its pool that reaches the store of the case by way of
/// the file there.
fn machine(case: &Case<'_>) -> Outcome<(TempDir, WorkerPool)> {
    let directory = server::directory();
    let terms = Terms {
        horizon: REACH,
        ..Terms::default()
    };
    let file = directory.path().join(FILE);
    let url = format!("tier:{}?upstream={}", file.display(), case.target.url());
    let pool = case.pool_at(&case.target.direct_url(), &url, terms)?;
    Ok((directory, pool))
}

/// Every process is ended or killed, and started again, and again, while there is no
/// store.
fn restarted_while_away(case: &mut Case<'_>) -> Outcome<()> {
    let (_directory, mut pool) = machine(case)?;
    case.target.stop();
    pool.faults += 1;
    for round in 0..case.scale.pick(2, 4) {
        for number in 0..WORKERS {
            match round % 2 == 0 {
                true => pool.kill(number),
                false => pool.end(number)?,
            }
            pool.spawn(number, None);
        }
        pool.all_serve("while the store is away")?;
    }
    case.target.start();
    pool.kill_and_spawn(0..WORKERS);
    pool.all_serve("once the store is back")?;
    pool.finish()
}

/// The file is put back to what it was, by name, and removed, while everybody goes on.
fn put_back_and_lost(case: &mut Case<'_>) -> Outcome<()> {
    let (directory, mut pool) = machine(case)?;
    let [file, copy] = [FILE, "copy.db"].map(|name| directory.path().join(name));
    for _ in 0..case.scale.pick(1, 3) {
        // What belongs to two files would be mixed up by somebody inside.
        between_operations(&file, || files::copy(&file, &copy))?;
        pool.kill_and_spawn(0..WORKERS);
        pool.all_serve("before the file is put back")?;
        between_operations(&file, || fs::rename(&copy, &file).map_err(text))?;
        pool.faults += 1;
        thread::sleep(Duration::from_secs(1));
        pool.all_serve("on a file that was put back")?;
        pool.kill_and_spawn(0..WORKERS);
        pool.all_serve("started on a file that was put back")?;
        between_operations(&file, || fs::remove_file(&file).map_err(text))?;
        pool.faults += 1;
        thread::sleep(Duration::from_secs(1));
        pool.kill_and_spawn(0..WORKERS);
        pool.all_serve("on a file that is new")?;
    }
    pool.finish()
}

//! Machines whose processes have their blocks of a file, and that of the store.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::{Scenario, files};
use crate::matrix::Outcome;
use crate::matrix::case::Case;
use crate::matrix::target::sqlite::between_operations;
use crate::matrix::worker_pool::{Terms, WORKERS, WorkerPool};
use ringflake_kit::server;

/// How long the machine goes on without its store, and a little more.
const REACH: Duration = Duration::from_secs(90);

pub(super) fn of() -> [Scenario; 2] {
    [
        Scenario::new("restarts while the store is away", restarted_while_away),
        Scenario::new("file of a tier put back and lost", put_back_and_lost),
    ]
}

/// A machine with a pool that reaches the store of the case by way of its file.
struct Machine {
    directory: TempDir,
    pool: WorkerPool,
}

impl Machine {
    fn new(case: &Case<'_>) -> Outcome<Self> {
        let directory = server::directory();
        let terms = Terms {
            horizon: REACH,
            ..Terms::default()
        };
        let file = directory.path().join("tier.db");
        let url = format!("tier:{}?upstream={}", file.display(), case.target.url());
        let pool = case.pool_at(&case.target.direct_url(), &url, terms)?;
        Ok(Self { directory, pool })
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("tier.db")
    }

    fn restart(&mut self, killed: bool) -> Outcome<()> {
        for number in 0..WORKERS {
            match killed {
                true => self.pool.kill(number),
                false => self.pool.end(number)?,
            }
            self.pool.spawn(number, None);
        }
        Ok(())
    }
}

/// Every process is ended or killed, and started again, and again, while there is no
/// store.
fn restarted_while_away(case: &mut Case<'_>) -> Outcome<()> {
    let mut machine = Machine::new(case)?;
    case.target.stop();
    machine.pool.faults += 1;
    for round in 0..case.scale.pick(2, 4) {
        machine.restart(round % 2 == 0)?;
        machine.pool.all_serve("while the store is away")?;
    }
    case.target.start();
    machine.restart(true)?;
    machine.pool.all_serve("once the store is back")?;
    machine.pool.finish()
}

/// The file is put back to what it was, by name, and removed, while everybody goes on.
fn put_back_and_lost(case: &mut Case<'_>) -> Outcome<()> {
    let mut machine = Machine::new(case)?;
    for _ in 0..case.scale.pick(1, 3) {
        let text = |error: std::io::Error| error.to_string();
        let (file, copy) = (machine.file(), machine.directory.path().join("copy.db"));
        // What belongs to two files would be mixed up by somebody inside.
        between_operations(&file, || files::copy(&file, &copy))?;
        machine.restart(true)?;
        machine.pool.all_serve("before the file is put back")?;
        between_operations(&file, || fs::rename(&copy, &file).map_err(text))?;
        machine.pool.faults += 1;
        thread::sleep(Duration::from_secs(1));
        machine.pool.all_serve("on a file that was put back")?;
        machine.restart(true)?;
        machine
            .pool
            .all_serve("started on a file that was put back")?;
        between_operations(&file, || fs::remove_file(&file).map_err(text))?;
        machine.pool.faults += 1;
        thread::sleep(Duration::from_secs(1));
        machine.restart(true)?;
        machine.pool.all_serve("on a file that is new")?;
    }
    machine.pool.finish()
}

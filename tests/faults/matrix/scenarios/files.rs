//! `leases.db` put back from a backup, by renaming the backup or by writing over what is there.
//!
//! Another inode is another file, and a file without the namespace has lost it: nobody gets a
//! grant from those before somebody vouches for them. A file that was written over is noticed by
//! the note of its last write, and raises its floor by itself. Where the rows of both tables are
//! put back by hand, all that the file shows agrees. What the workers were told is all the
//! evidence then, as it is with rows in a server.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{Floor, History, Init, Namespace, OpenOptions, open};
use ringflake::{Clock as _, SystemClock};
use tempfile::TempDir;

use super::Scenario;
use super::rows::{self, other_blocks};
use crate::matrix::case::Case;
use crate::matrix::target::sqlite::{between_operations, keep_rows};
use crate::matrix::worker_pool::{LOST, Member, TWICE_AS_MANY, Terms, WORKERS, WorkerPool};
use crate::matrix::{Outcome, in_time, space, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Renamed,
    /// As `cp` does it: the file stays the same one.
    Overwritten,
}

impl How {
    pub(super) fn put_back(self, backup: &Path, file: &Path) -> Outcome<()> {
        match self {
            Self::Renamed => fs::rename(backup, file).map_err(text),
            Self::Overwritten => copy(backup, file),
        }
    }
}

pub(super) fn of() -> Vec<Scenario> {
    use How::{Overwritten, Renamed};

    let mut scenarios = Vec::new();
    for (name, how, is_known, under_way) in [
        ("file renamed back", Renamed, true, false),
        ("file written over", Overwritten, true, false),
        ("file renamed back under workers", Renamed, true, true),
        ("file written over under workers", Overwritten, true, true),
        ("first file renamed back", Renamed, false, false),
        ("first file written over", Overwritten, false, false),
        (
            "first file renamed back under workers",
            Renamed,
            false,
            true,
        ),
        (
            "first file written over under workers",
            Overwritten,
            false,
            true,
        ),
    ] {
        let put_back = move |case: &mut Case<'_>| put_back(case, how, is_known, under_way);
        let scenario = Scenario::new(name, put_back);
        let is_usual = [(Overwritten, true, true), (Renamed, false, false)];
        scenarios.push(match is_usual.contains(&(how, is_known, under_way)) {
            true => scenario,
            false => scenario.long(),
        });
    }
    scenarios.push(Scenario::new(
        "record and rows put back",
        put_back_row_by_row,
    ));
    scenarios
}

/// On a disk.
pub(super) fn directory() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Where the backup does not know the namespace, the programs that use it take it for new,
/// as they do at each start.
fn put_back(case: &mut Case<'_>, how: How, is_known: bool, under_way: bool) -> Outcome<()> {
    let directory = directory();
    let [file, backup] = ["leases.db", "backup"].map(|name| directory.path().join(name));
    let url = format!("sqlite:{}", file.display());
    begin(&url)?;
    let terms = Terms {
        takes_it_for_new: !is_known,
        ..Terms::of(TWICE_AS_MANY)
    };
    if !is_known {
        copy(&file, &backup)?;
    }
    let mut pool = case.pool_at(&url, &url, terms)?;
    if is_known {
        between_operations(&file, || copy(&file, &backup))?;
    }
    other_blocks(&mut pool)?;
    if !under_way {
        for number in 0..WORKERS {
            pool.end(number)?;
        }
    }
    let floor = pool.floor();
    between_operations(&file, || how.put_back(&backup, &file))?;
    pool.faults += 1;
    let newcomers = match under_way {
        true => WORKERS..WORKERS + 2,
        false => 0..WORKERS,
    };
    let recovers = how == How::Overwritten && is_known;
    if under_way && !recovers {
        all_refused(&pool)?;
    }
    for number in newcomers {
        pool.spawn(number, None);
    }
    let raised = match recovers {
        true => rises_above(&pool, floor?)?,
        false => {
            all_refused(&pool)?;
            vouch(&pool, is_known)?
        }
    };
    pool.all_have_grants_from(raised, "above the floor")?;
    pool.all_serve("above the floor")?;
    pool.await_what_was_ahead();
    pool.finish()
}

/// Waits until the floor lies above this one, and returns it.
fn rises_above(pool: &WorkerPool, floor: u64) -> Outcome<u64> {
    const PATIENCE: Duration = Duration::from_secs(60);

    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match pool.floor()? {
            raised if raised > floor => return Ok(raised),
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
    Err(format!("the floor stays at {floor}"))
}

/// The record of the namespace and its blocks, as they were when every worker held
/// another block.
fn put_back_row_by_row(case: &mut Case<'_>) -> Outcome<()> {
    let directory = directory();
    let file = directory.path().join("leases.db");
    let url = format!("sqlite:{}", file.display());
    let mut pool = case.pool_at(&url, &url, Terms::of(TWICE_AS_MANY))?;
    let put_back = keep_rows(&file, pool.space.name(), true);
    other_blocks(&mut pool)?;
    rows::recover(&mut pool, |_| put_back())?;
    pool.finish()
}

/// A file with the record of another namespace.
fn begin(url: &str) -> Outcome<()> {
    let mut store = open(url, &OpenOptions::new()).map_err(text)?;
    let made = in_time(|| {
        let init = Init::new(History::New, SystemClock.unix_ms());
        store.init_if_new(&others(), &init)
    });
    made.map(drop).map_err(text)
}

fn others() -> Namespace {
    space::namespace("others", TWICE_AS_MANY)
}

/// In a process of its own: to close the file in this one would drop its locks.
pub(super) fn copy(from: &Path, to: &Path) -> Outcome<()> {
    let status = Command::new("cp")
        .arg(from)
        .arg(to)
        .status()
        .map_err(text)?;
    let done = status.success().then_some(());
    done.ok_or_else(|| format!("cp: {status}"))
}

/// The store's message for a replaced or truncated file.
const PUT_BACK: &str = "is a copy, or was restored to an earlier state";

/// Every worker is refused with a reason, and none gets a grant.
fn all_refused(pool: &WorkerPool) -> Outcome<()> {
    let (others, none) = ("and may have lost it", "the store has no namespace");
    pool.wait("every worker is refused, and told why", |reports| {
        let is_told = |member: &Member| {
            let said = reports.runs[member.run].last_failure.as_deref();
            let said = said.unwrap_or_default();
            [PUT_BACK, others, none, LOST]
                .iter()
                .any(|reason| said.contains(reason))
        };
        pool.members.iter().all(is_told)
    })?;
    let confirmed = pool.reports().confirmed;
    thread::sleep(space::LEASE_DURATION / 3);
    match pool.reports().confirmed - confirmed {
        0 => Ok(()),
        some => Err(format!("a file that was put back granted {some} requests")),
    }
}

/// What the refusals name as the way out. Answers the floor from then on.
fn vouch(pool: &WorkerPool, is_known: bool) -> Outcome<u64> {
    let mut store = pool.store()?;
    let now = || SystemClock.unix_ms();
    let adopted = if is_known { &pool.space } else { &others() };
    let mut floor = in_time(|| store.raise_floor(adopted, Floor::OverLostGrants, now()));
    if !is_known && floor.is_ok() {
        let made = in_time(|| {
            let init = Init::new(History::Unknown, now()).with_limits(space::limits());
            store.init(&pool.space, &init)
        });
        floor = made.map(|record| record.floor);
    }
    floor.map_err(|error| format!("the way out is closed: {error}"))
}

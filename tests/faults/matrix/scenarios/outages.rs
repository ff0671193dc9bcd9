//! Stores that are away, killed, or out of room.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::{Clock as _, SystemClock};

use crate::matrix::case::Case;
use crate::matrix::grant_log::Run;
use crate::matrix::worker_pool::{Member, Terms, WORKERS};
use crate::matrix::{Outcome, space};

/// How much earlier than its lease's end the first worker may be refused: it may have taken
/// the IDs of a tick or two in advance.
const SHORT_OF: Duration = Duration::from_millis(500);

/// The store is shut down until long after every lease has ended.
pub(super) fn away(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    // Paced workers take no more than their leases yield.
    let paced = (0..WORKERS).step_by(2);
    let paced: Vec<_> = paced.map(|number| pool.member(number).run).collect();
    // One that is refused already would seem to have served for no time.
    pool.wait("nobody is refused before", |reports| {
        let mut entries = paced.iter().map(|&run| &reports.runs[run]);
        entries.all(|entry| entry.refused.is_none())
    })?;
    case.target.stop();
    pool.faults += 1;
    let (gone, now_ms) = (Instant::now(), SystemClock.unix_ms());
    let promised = |run: Run| {
        let ends = pool
            .reports()
            .grants_of(run)
            .iter()
            .map(|it| it.ticks.end)
            .max();
        let end_ms = pool.space.layout().tick_start_unix_ms(ends.unwrap());
        (run, Duration::from_millis(end_ms.saturating_sub(now_ms)))
    };
    let promised: Vec<_> = paced.into_iter().map(promised).collect();
    pool.wait("everybody knows since when and why", |reports| {
        reports.runs.iter().all(|entry| {
            let why = entry.refused.as_ref().map_or("", |(_, why)| why);
            why.contains("; since 20") && why.contains("Z the store ")
        })
    })?;
    let mut shortest = None;
    for (run, predicted) in promised {
        let (since, why) = pool.reports().runs[run].refused.clone().unwrap();
        let measured = since.duration_since(gone);
        if measured + SHORT_OF < predicted {
            return Err(format!(
                "run {run} had {predicted:?}, served {measured:?}: {why}"
            ));
        }
        if shortest.is_none_or(|(least, _)| measured < least) {
            shortest = Some((measured, predicted));
        }
    }
    let minute = case.scale.pick(Duration::ZERO, Duration::from_secs(60));
    thread::sleep(minute.saturating_sub(gone.elapsed()));
    case.target.start();
    pool.all_serve("once the store is back")?;
    if let Some((measured, predicted)) = shortest {
        case.findings().remark =
            format!("{measured:.1?} without a store, of {predicted:.1?} that the lease had");
    }
    pool.finish()
}

pub(super) fn killed(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    for _ in 0..case.scale.pick(2, 5) {
        case.target.kill();
        pool.faults += 1;
        case.target.start();
        pool.all_serve("on the server that was killed")?;
    }
    pool.finish()
}

/// The store's disk is full for longer than a lease lasts.
pub(super) fn disk_full(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    for _ in 0..case.scale.pick(1, 3) {
        let workers = pool.each(Member::process);
        // Twice, since a parent may have had a child that was not on the list.
        let mut writers = Vec::new();
        for _ in 0..2 {
            writers = case.target.writers(&workers);
            for &writer in &writers {
                forbid_writing(writer, true)?;
            }
        }
        pool.faults += 1;
        // Writes in flight when the disk became full may still be confirmed.
        let last = Cell::new((pool.reports().confirmed, Instant::now()));
        pool.wait("writes end on a full disk", |reports| {
            let (confirmed, since) = last.get();
            if reports.confirmed != confirmed {
                last.set((reports.confirmed, Instant::now()));
            }
            reports.confirmed == confirmed && since.elapsed() > space::LEASE_DURATION
        })?;
        let (confirmed, _) = last.get();
        thread::sleep(space::LEASE_DURATION);
        let more = pool.reports().confirmed - confirmed;
        if more > 0 {
            return Err(format!(
                "{more} replies were positive while the disk was full"
            ));
        }
        // It may have ended over that, and its number be gone.
        for &writer in &writers {
            forbid_writing(writer, false)?;
        }
        case.target.revive();
        pool.all_serve("once there is room")?;
    }
    pool.finish()
}

/// Lets a process write to no file, or to all again, unless it has ended.
///
/// The limit is asked for as the user whose process it is: where root has lost a
/// capability, that is whom the kernel still allows it.
fn forbid_writing(process: i32, forbidden: bool) -> Outcome<()> {
    let Ok(owner) = fs::metadata(format!("/proc/{process}")) else {
        return Ok(());
    };
    let most = if forbidden { "0" } else { "unlimited" };
    let output = Command::new("prlimit")
        .args(["--pid", &process.to_string()])
        .arg(format!("--fsize={most}:unlimited"))
        .uid(owner.uid())
        .gid(owner.gid())
        .output()
        .map_err(|error| format!("prlimit: {error}"))?;
    let is_gone = || fs::metadata(format!("/proc/{process}")).is_err();
    if output.status.success() || is_gone() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("prlimit of process {process}: {errors}"))
}

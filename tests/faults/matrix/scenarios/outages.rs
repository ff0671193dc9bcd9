//! Stores that are away, killed, or out of room.

use std::thread;
use std::time::{Duration, Instant};

use ringflake::{Clock as _, SystemClock};

use crate::matrix::case::Case;
use crate::matrix::limits::forbid_writing;
use crate::matrix::report::RideThrough;
use crate::matrix::worker_pool::{Terms, WORKERS};
use crate::matrix::{Outcome, space};

/// What the first to be refused may lack of what its lease promised: it may have
/// taken ahead what a tick or two hold.
const SHORT_OF: Duration = Duration::from_millis(500);

/// The store is shut down until long after every lease has ended.
pub(super) fn away(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    // Those that take no more than they have.
    let paced: Vec<_> = (0..WORKERS)
        .step_by(2)
        .map(|number| pool.process(number).1)
        .collect();
    case.target.stop();
    pool.faults += 1;
    let gone = Instant::now();
    let (now_ms, mut promised) = (SystemClock.unix_ms(), Vec::new());
    for &run in &paced {
        let reports = pool.reports();
        let end = reports.grant_log.end_of(run).unwrap();
        let end_ms = reports
            .grant_log
            .namespace()
            .layout()
            .tick_start_unix_ms(end);
        promised.push(Duration::from_millis(end_ms.saturating_sub(now_ms)));
    }
    pool.wait(
        "everybody is refused, and told since when and why",
        |reports| {
            reports.runs.iter().all(|entry| {
                entry.refused.as_ref().is_some_and(|(_, why)| {
                    why.contains("; since Unix time ") && why.contains(" ms its store ")
                })
            })
        },
    )?;
    let mut shortest: Option<RideThrough> = None;
    for (&run, &predicted) in paced.iter().zip(&promised) {
        let reports = pool.reports();
        let (since, why) = reports.runs[run].refused.as_ref().unwrap();
        let measured = since.duration_since(gone);
        if measured + SHORT_OF < predicted {
            return Err(format!(
                "run {run} had {predicted:?}, served {measured:?}: {why}"
            ));
        }
        if shortest.is_none_or(|ride| measured < ride.measured) {
            shortest = Some(RideThrough {
                predicted,
                measured,
            });
        }
    }
    let minute = case.scale.pick(Duration::ZERO, Duration::from_secs(60));
    thread::sleep(minute.saturating_sub(gone.elapsed()));
    case.target.start();
    pool.all_serve("once the store is back")?;
    case.ride_through(shortest);
    pool.finish()
}

/// The server is killed and started again.
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

/// Whoever writes what the store keeps can't any more, for longer than a lease
/// lasts.
pub(super) fn disk_full(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    for _ in 0..case.scale.pick(1, 3) {
        let workers: Vec<_> = pool.processes().iter().map(|(_, id)| *id).collect();
        // Twice, since a parent may have had a child that was not on the list.
        let mut writers = Vec::new();
        for _ in 0..2 {
            writers = case.target.writers(&workers);
            for &writer in &writers {
                forbid_writing(writer, true)?;
            }
        }
        pool.faults += 1;
        // What was being written when the disk became full may be confirmed still.
        thread::sleep(space::LEASE_DURATION);
        let confirmed = pool.reports().confirmed;
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

//! Stores that are away, killed, or out of room.

use std::thread;
use std::time::{Duration, Instant};

use ringflake::{Clock as _, SystemClock};

use crate::matrix::case::Case;
use crate::matrix::crew::{Terms, WORKERS};
use crate::matrix::limits::forbid_writing;
use crate::matrix::report::RideThrough;
use crate::matrix::{Outcome, space};

/// What the first to be refused may lack of what its lease promised: it may have
/// taken ahead what a tick or two hold.
const SHORT_OF: Duration = Duration::from_millis(500);

/// The store is shut down until long after every lease has ended.
pub(super) fn away(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.crew(Terms::default())?;
    // Those that take no more than they have.
    let paced: Vec<_> = (0..WORKERS)
        .step_by(2)
        .map(|number| crew.process(number).1)
        .collect();
    case.ground.stop();
    crew.faults += 1;
    let gone = Instant::now();
    let (now_ms, mut promised) = (SystemClock.unix_ms(), Vec::new());
    for &run in &paced {
        let told = crew.told();
        let end = told.ledger.end_of(run).unwrap();
        let end_ms = told.ledger.namespace().layout().tick_start_unix_ms(end);
        promised.push(Duration::from_millis(end_ms.saturating_sub(now_ms)));
    }
    crew.wait(
        "everybody is refused, and told since when and why",
        |told| {
            told.runs.iter().all(|life| {
                life.refused.as_ref().is_some_and(|(_, why)| {
                    why.contains("; since Unix time ") && why.contains(" ms its store ")
                })
            })
        },
    )?;
    let mut shortest: Option<RideThrough> = None;
    for (&run, &predicted) in paced.iter().zip(&promised) {
        let told = crew.told();
        let (since, why) = told.runs[run].refused.as_ref().unwrap();
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
    case.ground.start();
    crew.all_serve("once the store is back")?;
    case.ride_through(shortest);
    crew.finish()
}

/// The server is killed and started again.
pub(super) fn killed(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.crew(Terms::default())?;
    for _ in 0..case.scale.pick(2, 5) {
        case.ground.kill();
        crew.faults += 1;
        case.ground.start();
        crew.all_serve("on the server that was killed")?;
    }
    crew.finish()
}

/// Whoever writes what the store keeps can't any more, for longer than a lease
/// lasts.
pub(super) fn disk_full(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.crew(Terms::default())?;
    for _ in 0..case.scale.pick(1, 3) {
        let workers: Vec<_> = crew.processes().iter().map(|(_, id)| *id).collect();
        // Twice, since a parent may have had a child that was not on the list.
        let mut writers = Vec::new();
        for _ in 0..2 {
            writers = case.ground.writers(&workers);
            for &writer in &writers {
                forbid_writing(writer, true)?;
            }
        }
        crew.faults += 1;
        // What was being written when the disk became full may be confirmed still.
        thread::sleep(space::LEASE_DURATION);
        let confirmed = crew.told().confirmed;
        thread::sleep(space::LEASE_DURATION);
        let more = crew.told().confirmed - confirmed;
        if more > 0 {
            return Err(format!(
                "{more} replies were positive while the disk was full"
            ));
        }
        // It may have ended over that, and its number be gone.
        for &writer in &writers {
            forbid_writing(writer, false)?;
        }
        case.ground.revive();
        crew.all_serve("once there is room")?;
    }
    crew.finish()
}

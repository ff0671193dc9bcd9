//! Clocks that are wrong, of workers, of the server, and of both.

use std::thread;

use super::Cell;
use crate::matrix::case::Case;
use crate::matrix::crew::{Crew, Shown, Terms};
use crate::matrix::ground::Kind;
use crate::matrix::{Outcome, space};
use ringflake_kit::server::Clock;

const HOUR: i64 = 3600;
const TEN_YEARS: i64 = 3652 * 24 * HOUR;

/// Whose clock is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// Of every second worker.
    Workers,
    Server,
    /// Of all workers and the server, alike.
    Everybody,
}

pub(super) fn of(kind: Kind) -> Vec<Cell> {
    [
        ("workers an hour back", Whose::Workers, -HOUR),
        ("workers an hour on", Whose::Workers, HOUR),
        ("workers ten years on", Whose::Workers, TEN_YEARS),
        ("server an hour back", Whose::Server, -HOUR),
        ("server an hour on", Whose::Server, HOUR),
        ("server ten years on", Whose::Server, TEN_YEARS),
        ("everybody an hour back", Whose::Everybody, -HOUR),
        ("everybody an hour on", Whose::Everybody, HOUR),
        ("everybody ten years on", Whose::Everybody, TEN_YEARS),
    ]
    .into_iter()
    // A file has no clock but those of who opens it.
    .filter(|(_, whose, _)| kind != Kind::Sqlite || *whose != Whose::Server)
    .map(|(name, whose, ahead)| Cell::new(name, move |case| set(case, whose, ahead)))
    .collect()
}

/// The clocks are wrong for longer than a lease lasts, and right again.
fn set(case: &mut Case<'_>, whose: Whose, ahead: i64) -> Outcome<()> {
    let shown = match whose {
        Whose::Workers => Shown::Half,
        Whose::Server | Whose::Everybody => Shown::All,
    };
    let terms = Terms {
        clock: Some((Clock::new(), shown)),
        ..Terms::default()
    };
    let mut crew = case.crew(terms)?;
    let turn = |crew: &Crew, ahead: i64| {
        if whose != Whose::Server {
            crew.clock().run_ahead(ahead * 1000);
        }
        if whose != Whose::Workers && case.ground.kind() != Kind::Sqlite {
            case.ground.set_clock(ahead);
        }
    };
    turn(&crew, ahead);
    crew.faults += 1;
    thread::sleep(space::LEASE_DURATION + space::LEASE_DURATION / 2);
    turn(&crew, 0);
    crew.all_serve("once the clocks are right")?;
    // The first, one for what is out of reach, and some that a slow machine costs.
    let told = crew.told();
    for run in 0..told.runs.len() {
        let grants = told.ledger.grants_of(run);
        if grants.len() > 6 {
            return Err(format!("run {run} has taken block after block: {grants:?}"));
        }
    }
    drop(told);
    crew.finish()
}

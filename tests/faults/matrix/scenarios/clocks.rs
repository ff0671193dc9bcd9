//! Clocks that are wrong, of workers, of the server, and of both.

use std::thread;
use std::time::Instant;

use super::Scenario;
use crate::matrix::case::Case;
use crate::matrix::target::Kind;
use crate::matrix::worker_pool::{Shown, Terms, WorkerPool};
use crate::matrix::{Outcome, space};
use ringflake_kit::server::Clock;

const HOUR: i64 = 3600;
const TEN_YEARS: i64 = 3652 * 24 * HOUR;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// Every second worker.
    Workers,
    Server,
    /// All workers and the server.
    Everybody,
}

pub(super) fn of(kind: Kind) -> Vec<Scenario> {
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
    .map(|(name, whose, ahead)| {
        let scenario = Scenario::new(name, move |case| set(case, whose, ahead));
        let is_usual = ahead != TEN_YEARS && (whose, ahead) != (Whose::Everybody, HOUR);
        if is_usual { scenario } else { scenario.long() }
    })
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
    let began = Instant::now();
    let mut pool = case.pool(terms)?;
    let turn = |pool: &WorkerPool, ahead: i64| {
        if whose != Whose::Server {
            pool.clock().run_ahead(ahead * 1000);
        }
        if whose != Whose::Workers {
            case.target.set_clock(ahead);
        }
    };
    turn(&pool, ahead);
    pool.faults += 1;
    thread::sleep(space::LEASE_DURATION + space::LEASE_DURATION / 2);
    turn(&pool, 0);
    pool.all_serve("once the clocks are right")?;
    // The first, one for what is out of reach, and what a slow machine costs: a block that was
    // just leased is not given up before its lease has ended.
    let leases = began.elapsed().div_duration_f32(space::LEASE_DURATION) as usize;
    for member in &pool.members {
        let (run, grants) = (member.run, pool.reports().grants_of(member.run).to_vec());
        if grants.len() > 5 + leases {
            return Err(format!("run {run} has taken block after block: {grants:?}"));
        }
    }
    pool.finish()
}

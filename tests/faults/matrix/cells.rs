//! The faults, one after the other.

mod clocks;
pub(crate) mod deaths;
mod failovers;
mod outages;
mod replies;

use super::ground::{Ground, Kind};
use super::report::Row;
use super::{Outcome, Scale};

/// Does it, and lets the workers go on until all serve again.
type Run = dyn Fn(&mut dyn Ground, Scale) -> Outcome<Row>;

/// One fault, which can be done to a store.
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) run: Box<Run>,
}

impl Cell {
    fn new(
        name: &'static str,
        run: impl Fn(&mut dyn Ground, &str, Scale) -> Outcome<Row> + 'static,
    ) -> Self {
        let run = Box::new(move |ground: &mut dyn Ground, scale: Scale| run(ground, name, scale));
        Self { name, run }
    }
}

/// The faults that this kind of store can have.
pub(crate) fn of(kind: Kind) -> Vec<Cell> {
    let mut cells = vec![
        Cell::new("workers killed", deaths::killed),
        Cell::new("workers ended and started", deaths::ended),
        Cell::new("workers stopped past the end", deaths::stopped),
        Cell::new("forks in mid-batch", deaths::forked),
        Cell::new("workers invalidated", deaths::invalidated),
    ];
    cells.extend(clocks::of(kind));
    cells.push(Cell::new("store away", outages::away));
    cells.push(Cell::new("disk full", outages::disk_full));
    if kind != Kind::Sqlite {
        cells.push(Cell::new("server killed", outages::killed));
        cells.push(Cell::new("replies lost", replies::lost));
    }
    match kind {
        Kind::Redis => cells.push(Cell::new("replica without the writes", failovers::replica)),
        Kind::Etcd => cells.push(Cell::new("leader killed", failovers::leader)),
        Kind::Sqlite | Kind::Postgres | Kind::MariaDb => {}
    }
    cells
}

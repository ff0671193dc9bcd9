//! The faults, one after the other.

mod clocks;
mod command_line;
mod damage;
pub(crate) mod deaths;
mod failovers;
mod files;
mod outages;
mod replies;
mod rows;
mod tiers;

use super::case::Case;
use super::ground::Kind;
use super::{Outcome, Scale};

/// Does it, and lets the workers go on until all serve again.
type Run = dyn Fn(&mut Case<'_>) -> Outcome<()>;

/// One fault, which can be done to a store.
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    /// What it is judged by, where that is more or less than of all others.
    pub(crate) promise: &'static str,
    pub(crate) run: Box<Run>,
    /// Only where there is time.
    is_long: bool,
}

impl Cell {
    fn new(name: &'static str, run: impl Fn(&mut Case<'_>) -> Outcome<()> + 'static) -> Self {
        Self {
            name,
            promise: "",
            run: Box::new(run),
            is_long: false,
        }
    }

    fn promising(self, promise: &'static str) -> Self {
        Self { promise, ..self }
    }

    fn long(self) -> Self {
        Self {
            is_long: true,
            ..self
        }
    }

    /// Whether it belongs to the matrix of this scale.
    pub(crate) fn is_of(&self, scale: Scale) -> bool {
        scale.long || !self.is_long
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
        cells.push(Cell::new("idle flows forgotten", replies::forgotten).long());
    }
    cells.extend([
        Cell::new("rows put back", rows::put_back).promising(rows::ALL_KNOW),
        Cell::new("rows put back to the first", rows::put_back_to_the_first)
            .promising(rows::ALL_KNOW)
            .long(),
        Cell::new("rows put back for newcomers", rows::put_back_for_newcomers)
            .promising(rows::ONE_DOES_NOT)
            .long(),
    ]);
    cells.extend(tiers::of());
    cells.push(Cell::new("one block damaged", damage::of_a_block).promising(damage::ONE_BLOCK));
    if kind == Kind::Sqlite {
        cells.extend(files::of());
        cells.extend(command_line::of());
    }
    match kind {
        Kind::Redis => cells.push(Cell::new("replica without the writes", failovers::replica)),
        Kind::Etcd => cells.push(Cell::new("leader killed", failovers::leader)),
        Kind::Postgres => cells.extend(failovers::of::<failovers::PostgresPair>()),
        Kind::MariaDb => cells.extend(failovers::of::<failovers::MariaDbPair>()),
        Kind::Sqlite => {}
    }
    cells
}

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
use super::target::Kind;
use super::{Outcome, Scale};

/// Does it, and lets the workers go on until all serve again.
type Run = dyn Fn(&mut Case<'_>) -> Outcome<()>;

/// One fault, which can be done to a store.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What it is judged by, where that is more or less than of all others.
    pub(crate) promise: &'static str,
    pub(crate) run: Box<Run>,
    /// Only where there is time.
    is_long: bool,
}

impl Scenario {
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
pub(crate) fn of(kind: Kind) -> Vec<Scenario> {
    let mut scenarios = vec![
        Scenario::new("workers killed", deaths::killed),
        Scenario::new("workers ended and started", deaths::ended),
        Scenario::new("workers stopped past the end", deaths::stopped),
        Scenario::new("forks in mid-batch", deaths::forked),
        Scenario::new("workers invalidated", deaths::invalidated),
    ];
    scenarios.extend(clocks::of(kind));
    scenarios.push(Scenario::new("store away", outages::away));
    scenarios.push(Scenario::new("disk full", outages::disk_full));
    if kind != Kind::Sqlite {
        scenarios.push(Scenario::new("server killed", outages::killed));
        scenarios.push(Scenario::new("replies lost", replies::lost));
        scenarios.push(Scenario::new("idle flows forgotten", replies::forgotten).long());
    }
    scenarios.extend([
        Scenario::new("rows put back", rows::put_back).promising(rows::ALL_KNOW),
        Scenario::new("rows put back to the first", rows::put_back_to_the_first)
            .promising(rows::ALL_KNOW)
            .long(),
        Scenario::new("rows put back for newcomers", rows::put_back_for_newcomers)
            .promising(rows::ONE_DOES_NOT)
            .long(),
    ]);
    scenarios.extend(tiers::of());
    scenarios
        .push(Scenario::new("one block damaged", damage::of_a_block).promising(damage::ONE_BLOCK));
    if kind == Kind::Sqlite {
        scenarios.extend(files::of());
        scenarios.extend(command_line::of());
    }
    match kind {
        Kind::Redis => scenarios.push(Scenario::new(
            "replica without the writes",
            failovers::replica,
        )),
        Kind::Etcd => scenarios.push(Scenario::new("leader killed", failovers::leader)),
        Kind::Postgres => scenarios.extend(failovers::of::<failovers::PostgresPair>()),
        Kind::MariaDb => scenarios.extend(failovers::of::<failovers::MariaDbPair>()),
        Kind::Sqlite => {}
    }
    scenarios
}

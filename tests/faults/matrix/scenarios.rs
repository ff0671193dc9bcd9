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
use ringflake_kit::server::{MariaDb, Postgres};

/// Does it, and lets the workers go on until all serve again.
type Run = dyn Fn(&mut Case<'_>) -> Outcome<()>;

pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) run: Box<Run>,
    is_long: bool,
}

impl Scenario {
    pub(crate) fn new(
        name: &'static str,
        run: impl Fn(&mut Case<'_>) -> Outcome<()> + 'static,
    ) -> Self {
        Self {
            name,
            run: Box::new(run),
            is_long: false,
        }
    }

    fn long(self) -> Self {
        Self {
            is_long: true,
            ..self
        }
    }

    /// Whether it belongs to the matrix of this scale on such a store.
    pub(crate) fn is_of(&self, kind: Kind, scale: Scale) -> bool {
        match scale {
            Scale::Quick => QUICK.contains(&(self.name, kind)),
            Scale::Whole => !self.is_long,
            Scale::Long => true,
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        let part = std::env::var("RINGFLAKE_FAULT_SCENARIOS");
        part.map_or(true, |part| self.name.contains(&part))
    }
}

/// Those of this scale that the environment asks for.
pub(crate) fn to_run(kind: Kind, scale: Scale) -> impl Iterator<Item = Scenario> {
    let all = of(kind).into_iter();
    all.filter(move |it| it.is_of(kind, scale) && it.is_wanted())
}

/// Which store a fault is done to in a plain run, the longest first: each that the whole
/// matrix has, but two more clocks.
pub(crate) const QUICK: &[(&str, Kind)] = &[
    ("replica without the writes", Kind::Redis),
    ("rows put back", Kind::Redis),
    ("one block damaged", Kind::Etcd),
    ("follower without the writes", Kind::Postgres),
    ("file of a tier put back and lost", Kind::Redis),
    ("file written over under workers", Kind::Sqlite),
    ("first file renamed back", Kind::Sqlite),
    ("record and rows put back", Kind::Sqlite),
    ("restarts while the store is away", Kind::Etcd),
    ("leader killed", Kind::Etcd),
    ("workers killed", Kind::Sqlite),
    ("workers killed", Kind::MariaDb),
    ("disk full", Kind::MariaDb),
    ("command line, file renamed back", Kind::Sqlite),
    (
        "command line, one secret given in two directories",
        Kind::Sqlite,
    ),
    ("workers ended and started", Kind::Redis),
    ("workers stopped past the end", Kind::Etcd),
    ("workers an hour on", Kind::MariaDb),
    ("server an hour back", Kind::Postgres),
    ("everybody an hour back", Kind::Sqlite),
    ("store away", Kind::Postgres),
    ("replies lost", Kind::MariaDb),
    ("server killed", Kind::Postgres),
    ("workers invalidated", Kind::Redis),
    ("forks in mid-batch", Kind::Postgres),
];

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
        Scenario::new("rows put back", rows::put_back),
        Scenario::new("rows put back to the first", rows::put_back_to_the_first).long(),
        Scenario::new("rows put back for newcomers", rows::put_back_for_newcomers).long(),
    ]);
    scenarios.extend(tiers::of());
    scenarios.push(Scenario::new("one block damaged", damage::of_a_block));
    match kind {
        Kind::Sqlite => {
            scenarios.extend(files::of());
            scenarios.extend(command_line::of());
        }
        Kind::Postgres => scenarios.extend(failovers::of::<Postgres>()),
        Kind::MariaDb => scenarios.extend(failovers::of::<MariaDb>()),
        Kind::Redis => {
            let name = "replica without the writes";
            scenarios.push(Scenario::new(name, failovers::replica));
        }
        Kind::Etcd => scenarios.push(Scenario::new("leader killed", failovers::leader)),
    }
    scenarios
}

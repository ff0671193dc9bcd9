//! `ringflake store check`: whether a store grants leases.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use ringflake::lease::{Durability, Obstacle, StoreReport};
use serde::Serialize;

use super::open_store::{CommonArgs, OpenStore};
use super::parts::{self, Damage, Moment};
use crate::data_dir::DataDir;
use crate::output;
use crate::report::one_line;
use crate::units;

const DETAILS: &str = "Examples:
  ringflake store check                      # leases.db in the data directory
  ringflake store check --store URL --namespace orders --format json

A test write shows a full disk or a missing permission; no lease, block or floor is
changed. The exit status is 1 if the store grants no lease, or there is an alarm.

JSON: store, namespace, layout, block_nodes, blocks, granted_blocks (at least once),
held_blocks, horizon_ms, failover_ms, skew_limit_ms, durability (\"durable\",
\"best_effort\" or \"volatile\"), durability_reason (or null), incarnation,
recorded_incarnation, history_lost, skew_ms (null where the store has no clock), floor
with tick, unix_ms and time (RFC 3339), floor_ahead_ms, quarantined (block, null if
there is none, and reason), writes (\"accepted\", \"failed\" with the reason in refusals,
or \"not_tested\"), grants, refusals, alarms";

/// Show the state of a store, and whether it grants leases
#[derive(Debug, Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Object<'a> {
    store: &'a str,
    namespace: &'a str,
    layout: String,
    block_nodes: u64,
    blocks: u64,
    granted_blocks: u64,
    held_blocks: u64,
    horizon_ms: u128,
    failover_ms: u128,
    skew_limit_ms: u128,
    durability: &'a str,
    durability_reason: Option<&'a str>,
    incarnation: &'a str,
    recorded_incarnation: &'a str,
    history_lost: bool,
    skew_ms: Option<u64>,
    floor: Moment,
    floor_ahead_ms: u128,
    quarantined: Vec<Damage>,
    writes: &'a str,
    grants: bool,
    refusals: Vec<String>,
    alarms: Vec<String>,
}

pub(super) fn run(args: &CheckArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let report = open.store.check(&open.target.namespace, open.now_unix_ms);
    let report = open.explained(report)?;
    let tested = can_grant(&report).then(|| {
        let written = open
            .store
            .write_test(&report.record.namespace, open.now_unix_ms);
        open.explained(written)
    });
    let obstacles = report.obstacles().into_iter();
    let obstacles = obstacles.map(|obstacle| open.target.explain_obstacle(&obstacle));
    let object = Object::new(&report, obstacles.collect(), tested);
    output::answer(|out| {
        output::print(
            out,
            args.common.output.format,
            &object,
            object.rows(&report),
        )
    })?;
    if !object.grants {
        bail!("the store grants no lease: {}", object.refusals.join("; "));
    }
    if !object.alarms.is_empty() {
        bail!("alarm: {}", object.alarms.join("; "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a test write says anything: unless an obstacle stays.
fn can_grant(report: &StoreReport) -> bool {
    let is_final = |obstacle| matches!(obstacle, Obstacle::Copied | Obstacle::LayoutEnded);
    !report.obstacles().into_iter().any(is_final)
}

/// Alarms, which are raised even while leases are granted.
fn alarms(report: &StoreReport) -> Vec<String> {
    let ahead = report.floor_ahead();
    // Clocks that are apart may account for so much.
    if ahead <= report.record.limits.skew() {
        return Vec::new();
    }
    vec![format!(
        "the floor is {} ahead of the store's time: the store lost grants, or the floor was \
         raised by hand; until that time, leases start in the future and older ones are not renewed",
        humantime::format_duration(Duration::from_secs(in_seconds(ahead)))
    )]
}

/// Rounded up.
fn in_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl<'a> Object<'a> {
    /// `refusals` are the obstacles of the report in words, and `tested` is the outcome of the
    /// test write, if there was one.
    fn new(report: &'a StoreReport, mut refusals: Vec<String>, tested: Option<Result<()>>) -> Self {
        let record = &report.record;
        let namespace = &record.namespace;
        let writes = match tested {
            Some(Ok(())) => "accepted",
            Some(Err(error)) => {
                refusals.push(format!(
                    "a test write failed: {}; no lease is granted or renewed until writes succeed: \
                     check the store's free space, and this user's permission to write",
                    one_line(&error)
                ));
                "failed"
            }
            None => "not_tested",
        };
        let (durability, durability_reason) = match &report.durability {
            Durability::Durable => ("durable", None),
            Durability::BestEffort { reason } => ("best_effort", Some(reason.as_str())),
            _ => ("volatile", None),
        };
        Self {
            store: &report.store,
            namespace: namespace.name(),
            layout: namespace.layout().to_string(),
            block_nodes: namespace.block_nodes(),
            blocks: namespace.blocks(),
            granted_blocks: report.granted_blocks,
            held_blocks: report.held_blocks,
            horizon_ms: record.limits.horizon().as_millis(),
            failover_ms: record.limits.failover().as_millis(),
            skew_limit_ms: record.limits.skew().as_millis(),
            durability,
            durability_reason,
            incarnation: report.incarnation.as_str(),
            recorded_incarnation: record.incarnation.as_str(),
            history_lost: report.history_lost(),
            skew_ms: report.skew_ms(),
            floor: Moment::new(namespace.layout(), record.floor),
            floor_ahead_ms: report.floor_ahead().as_millis(),
            quarantined: report.quarantined.iter().map(Damage::new).collect(),
            writes,
            grants: refusals.is_empty(),
            refusals,
            alarms: alarms(report),
        }
    }

    /// For a table.
    fn rows(&self, report: &StoreReport) -> Vec<(&'static str, String)> {
        let owned = str::to_owned;
        let mut rows = vec![
            ("store", owned(self.store)),
            ("namespace", owned(self.namespace)),
            ("layout", self.layout.clone()),
            (
                "blocks",
                format!(
                    "{} of {} nodes, {} granted so far, {} held",
                    self.blocks, self.block_nodes, self.granted_blocks, self.held_blocks
                ),
            ),
            ("limits", parts::limits(&report.record.limits)),
            ("durability", report.durability.to_string()),
            ("incarnation", owned(self.incarnation)),
        ];
        if self.history_lost {
            rows.push(("on record", owned(self.recorded_incarnation)));
        }
        rows.extend([
            (
                "clocks",
                self.skew_ms.map_or_else(
                    || owned("the store has none"),
                    |skew_ms| format!("{} apart", units::time(skew_ms as f64 / 1e3)),
                ),
            ),
            ("floor", self.floor.in_words()),
        ]);
        let quarantined = report.quarantined.iter();
        rows.extend(quarantined.map(|found| ("quarantined", found.to_string())));
        let leases = if self.grants { "granted" } else { "refused" };
        rows.extend([
            ("writes", self.writes.replace('_', " ")),
            ("leases", owned(leases)),
        ]);
        rows.extend(
            self.refusals
                .iter()
                .map(|refusal| ("because", refusal.clone())),
        );
        rows.extend(self.alarms.iter().map(|alarm| ("alarm", alarm.clone())));
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use ringflake::Layout;
    use ringflake::lease::{Fingerprint, Incarnation, Namespace, StoreLimits, StoreRecord};

    use super::*;

    const LAYOUT: Layout = Layout::RANDFLAKE;
    const NOW_MS: u64 = 1_760_000_000_000;

    /// The object of a check whose test write had this outcome.
    fn object_of(report: &StoreReport, tested: Option<Result<()>>) -> Object<'_> {
        let obstacles = report.obstacles().iter().map(Obstacle::to_string).collect();
        Object::new(report, obstacles, tested)
    }

    fn report(floor: u64) -> StoreReport {
        let space = Namespace::new("a", &LAYOUT, Fingerprint::PLAIN).unwrap();
        let one = || Incarnation::new("one");
        let record = StoreRecord::new(space, StoreLimits::default(), floor, one());
        StoreReport::new("a store", record, one(), Durability::Durable, NOW_MS)
    }

    #[test]
    fn a_floor_further_ahead_than_clocks_may_be_is_an_alarm() {
        let now = LAYOUT.tick_at(NOW_MS).unwrap();
        // The default skew is 5 s.
        for (ahead, is_alarm) in [(0, false), (5, false), (6, true), (659, true), (900, true)] {
            let report = report(now + ahead);
            let object = object_of(&report, Some(Ok(())));
            assert_eq!(object.floor_ahead_ms, u128::from(ahead) * 1000);
            assert_eq!(object.alarms.len(), usize::from(is_alarm), "{ahead}");
            let ahead = humantime::format_duration(Duration::from_secs(ahead));
            let said = format!("the floor is {ahead} ahead");
            assert!(object.alarms.iter().all(|alarm| alarm.contains(&said)));
        }
        let mut by_its_clock = report(now + 900);
        by_its_clock.store_unix_ms = Some(NOW_MS + 900_000);
        assert_eq!(alarms(&by_its_clock), [""; 0]);
    }

    #[test]
    fn what_is_in_the_way_of_a_lease_is_among_the_refusals() {
        let now = LAYOUT.tick_at(NOW_MS).unwrap();
        assert!(object_of(&report(now), Some(Ok(()))).grants);
        let report = report(now + 667);
        let object = object_of(&report, Some(Ok(())));
        assert!(!object.grants);
        assert!(
            object.refusals[0].contains("in 8s"),
            "{:?}",
            object.refusals
        );
    }

    #[test]
    fn a_failed_write_is_a_refusal() {
        let report = report(LAYOUT.tick_at(NOW_MS).unwrap());
        let row = |object: &Object<'_>, name| {
            let rows = object.rows(&report);
            rows.into_iter().find(|row| row.0 == name).unwrap().1
        };
        let object = object_of(&report, Some(Ok(())));
        assert_eq!((object.writes, object.grants), ("accepted", true));
        assert_eq!(row(&object, "writes"), "accepted");

        let full = io::Error::from(io::ErrorKind::StorageFull);
        let object = object_of(&report, Some(Err(full.into())));
        assert_eq!((object.writes, object.grants), ("failed", false));
        assert_eq!(row(&object, "writes"), "failed");
        assert_eq!(row(&object, "leases"), "refused");
        let because = row(&object, "because");
        assert_eq!(object.refusals, [because.as_str()]);
        let cause = io::Error::from(io::ErrorKind::StorageFull).to_string();
        for part in ["a test write failed", &cause, "permission to write"] {
            assert!(because.contains(part), "{because}");
        }
    }

    #[test]
    fn no_write_is_tried_where_nothing_could_be_granted() {
        let now = LAYOUT.tick_at(NOW_MS).unwrap();
        let mut copied = report(now);
        copied.is_copy = true;
        for report in [copied, report(LAYOUT.ticks())] {
            assert!(!can_grant(&report));
            let object = object_of(&report, None);
            assert_eq!((object.writes, object.grants), ("not_tested", false));
            assert_eq!(object.refusals.len(), 1);
        }
        // Held leases are still renewed, which is a write.
        let mut full = report(now);
        full.held_blocks = full.record.namespace.blocks();
        assert!(can_grant(&full));
    }
}

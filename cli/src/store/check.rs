//! `ringflake store check`: whether a store grants leases.

use anyhow::{Result, bail};
use clap::Args;
use ringflake::lease::{Block, Durability, Obstacle, StoreReport};
use serde_json::json;

use super::open_store::{CommonArgs, OpenStore};
use super::parts::{self, Moment};
use crate::data_dir::DataDir;
use crate::output::Answer;
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
#[derive(Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    common: CommonArgs,
}

pub(super) fn run(args: &CheckArgs, data_dir: &DataDir) -> Result<()> {
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let report = open.ask(|store, namespace, now| store.check(namespace, now))?;
    let on_record = &report.record.namespace;
    let tested =
        can_grant(&report).then(|| open.ask(|store, _, now| store.write_test(on_record, now)));
    let obstacles = report.obstacles().into_iter();
    let obstacles = obstacles.map(|obstacle| open.target.explain_obstacle(&obstacle));
    let verdict = Verdict::new(&report, obstacles.collect(), tested);
    verdict.answer(&report).show(args.common.output.format)?;
    if !verdict.refusals.is_empty() {
        bail!("the store grants no lease: {}", verdict.refusals.join("; "));
    }
    if !verdict.alarms.is_empty() {
        bail!("alarm: {}", verdict.alarms.join("; "));
    }
    Ok(())
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
        "the floor is {} ahead of the store's time: the store lost grants, the floor was \
         raised by hand, or the clock is behind; until that time, leases start in the future and older ones are not renewed",
        units::time(ahead.as_secs_f64())
    )]
}

/// Whether a store grants leases, and what stands against it.
struct Verdict {
    /// The outcome of the test write.
    writes: &'static str,
    /// Why no lease is granted.
    refusals: Vec<String>,
    alarms: Vec<String>,
}

impl Verdict {
    /// `refusals` are the obstacles of the report in words, and `tested` is the outcome of the
    /// test write, if there was one.
    fn new(report: &StoreReport, mut refusals: Vec<String>, tested: Option<Result<()>>) -> Self {
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
        Self {
            writes,
            refusals,
            alarms: alarms(report),
        }
    }

    fn answer(&self, report: &StoreReport) -> Answer {
        let record = &report.record;
        let (durability, durability_reason) = match &report.durability {
            Durability::Durable => ("durable", None),
            Durability::BestEffort { reason } => ("best_effort", Some(reason.as_str())),
            _ => ("volatile", None),
        };
        let (granted, held) = (report.granted_blocks, report.held_blocks);
        let mut answer = Answer::default();
        answer.text("store", &report.store);
        let use_of_blocks = format!(", {granted} granted so far, {held} held");
        parts::add_record(&mut answer, record, &use_of_blocks);
        answer.field("granted_blocks", granted);
        answer.field("held_blocks", held);
        answer.row("durability", &report.durability);
        answer.field("durability", durability);
        answer.field("durability_reason", durability_reason);
        answer.text("incarnation", report.incarnation.as_str());
        answer.field("recorded_incarnation", record.incarnation.as_str());
        answer.field("history_lost", report.history_lost());
        if report.history_lost() {
            answer.row("on record", record.incarnation.as_str());
        }
        let skew_ms = report.skew_ms();
        match skew_ms {
            Some(ms) => answer.row("clocks", format!("{} apart", units::time(ms as f64 / 1e3))),
            None => answer.row("clocks", "the store has none"),
        }
        answer.field("skew_ms", skew_ms);
        Moment::new(record.namespace.layout(), record.floor).add_to(&mut answer, "floor", "floor");
        answer.field("floor_ahead_ms", units::millis(report.floor_ahead()));
        let quarantined = report.quarantined.iter().map(|found| {
            answer.row("quarantined", found);
            json!({ "block": found.block.map(Block::index), "reason": found.reason })
        });
        let quarantined: Vec<_> = quarantined.collect();
        answer.field("quarantined", quarantined);
        let grants = self.refusals.is_empty();
        answer.row("writes", self.writes.replace('_', " "));
        answer.field("writes", self.writes);
        answer.row("leases", if grants { "granted" } else { "refused" });
        answer.field("grants", grants);
        for (title, name, lines) in [
            ("because", "refusals", &self.refusals),
            ("alarm", "alarms", &self.alarms),
        ] {
            lines.iter().for_each(|line| answer.row(title, line));
            answer.field(name, lines.clone());
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringflake::Layout;
    use ringflake::lease::{Fingerprint, Incarnation, Namespace, StoreLimits, StoreRecord};

    use super::*;

    const LAYOUT: Layout = Layout::RANDFLAKE;
    const NOW_MS: u64 = 1_760_000_000_000;

    /// The verdict of a check whose test write had this outcome.
    fn verdict(report: &StoreReport, tested: Option<Result<()>>) -> Verdict {
        let obstacles = report.obstacles().iter().map(Obstacle::to_string).collect();
        Verdict::new(report, obstacles, tested)
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
            let alarms = verdict(&report, Some(Ok(()))).alarms;
            assert_eq!(report.floor_ahead(), Duration::from_secs(ahead));
            assert_eq!(alarms.len(), usize::from(is_alarm), "{ahead}");
            let said = format!("the floor is {} ahead", units::time(ahead as f64));
            assert!(alarms.iter().all(|alarm| alarm.contains(&said)));
        }
        let mut by_its_clock = report(now + 900);
        by_its_clock.store_unix_ms = Some(NOW_MS + 900_000);
        assert_eq!(alarms(&by_its_clock), [""; 0]);
    }

    #[test]
    fn no_write_is_tried_where_nothing_could_be_granted() {
        let now = LAYOUT.tick_at(NOW_MS).unwrap();
        let mut copied = report(now);
        copied.is_copy = true;
        for report in [copied, report(LAYOUT.ticks())] {
            assert!(!can_grant(&report));
            let verdict = verdict(&report, None);
            assert_eq!((verdict.writes, verdict.refusals.len()), ("not_tested", 1));
        }
        // Held leases are still renewed, which is a write.
        let mut full = report(now);
        full.held_blocks = full.record.namespace.blocks();
        assert!(can_grant(&full));
    }
}

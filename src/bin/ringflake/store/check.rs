//! `ringflake store check`: whether a store grants leases.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use ringflake::lease::{Durability, StoreReport};
use serde::Serialize;

use super::output::{self, Damage, Moment};
use super::{CommonArgs, Desk, answer};
use crate::data_dir::DataDir;

/// Tell how a store stands, and whether it grants leases
///
/// The exit status is 1 if something is in the way of a lease: the reason is
/// told on stderr, too. Changes nothing.
///
/// JSON: store, namespace, layout, block_nodes, blocks, granted_blocks (at least
/// once), held_blocks, horizon_ms, failover_ms, skew_limit_ms, durability
/// ("durable", "best_effort" or "volatile"), durability_reason (or null),
/// incarnation, recorded_incarnation, history_lost, skew_ms (null where the store
/// has no clock), floor with tick, unix_ms and time (RFC 3339), quarantined (blocks that
/// are not leased until 'repair': block, null if there is none, and reason), grants,
/// refusals
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
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
    quarantined: Vec<Damage>,
    grants: bool,
    refusals: Vec<String>,
}

pub(super) fn run(args: &CheckArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let mut desk = Desk::open(&args.common, data_dir)?;
    let report = desk.store.check(&desk.place.namespace, desk.now_unix_ms);
    let report = desk.explained(report)?;
    let object = Object::new(&report);
    answer(|out| output::print(out, args.common.format, &object, object.rows(&report)))?;
    if !object.grants {
        bail!(
            "no lease can be had at present: {}",
            object.refusals.join("; ")
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// A file that was copied grants nothing, since the other one may still do so. Every
/// other store raises the floor by itself.
fn lost(report: &StoreReport) -> String {
    if report.store.starts_with("sqlite:") {
        return "the file was replaced, restored or copied since its last lease: once the earlier \
                one is out of use for good, 'ringflake store bump-floor --over-lost-grants' lets \
                leases begin above all that it granted"
            .to_owned();
    }
    format!(
        "the store was restarted, replaced or restored since its last lease: the next request \
         raises the floor above all that it can have granted, and leases are given {} later",
        humantime::format_duration(report.record.limits.failover())
    )
}

/// What is in the way of a lease.
fn refusals(report: &StoreReport) -> Vec<String> {
    let record = &report.record;
    let layout = record.namespace.layout();
    let mut refusals = Vec::new();
    // A tier gives up its blocks then, and takes others.
    if report.history_lost() && !report.store.starts_with("tier:") {
        refusals.push(lost(report));
    }
    let limit_ms = record.limits.skew().as_millis();
    if let Some(skew_ms) = report.skew_ms()
        && u128::from(skew_ms) > limit_ms
    {
        refusals.push(format!(
            "the clocks of store and client are {skew_ms} ms apart where {limit_ms} ms are \
             allowed: synchronise the one that is wrong"
        ));
    }
    let now_unix_ms = report.store_unix_ms.unwrap_or(report.client_unix_ms);
    let now = layout.tick_at(now_unix_ms).unwrap_or(0);
    let start = now.max(record.floor);
    if start >= layout.ticks() {
        refusals
            .push("the layout has run out of ticks: move to one with more time bits".to_owned());
    } else if start >= record.horizon_end(now) {
        let begins = layout.tick_start_unix_ms(record.floor.saturating_add(1));
        let horizon_ms = u64::try_from(record.limits.horizon().as_millis()).unwrap_or(u64::MAX);
        let wait_ms = begins
            .saturating_sub(horizon_ms)
            .saturating_sub(now_unix_ms);
        refusals.push(format!(
            "the floor lies beyond the horizon, above what may have been granted before: leases \
             begin in {} s",
            wait_ms.div_ceil(1000)
        ));
    }
    let of_blocks = report.quarantined.iter().filter(|it| it.block.is_some());
    let quarantined = of_blocks.count() as u64;
    if report.held_blocks.saturating_add(quarantined) >= record.namespace.blocks() {
        refusals.push(match quarantined {
            0 => "every block is held: hold fewer a process, or release those whose holder is gone"
                .to_owned(),
            some => format!(
                "every block is held, but for {some} that are quarantined: 'ringflake store \
                 repair' brings them back"
            ),
        });
    }
    refusals
}

impl<'a> Object<'a> {
    fn new(report: &'a StoreReport) -> Self {
        let record = &report.record;
        let namespace = &record.namespace;
        let refusals = refusals(report);
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
            quarantined: report.quarantined.iter().map(Damage::new).collect(),
            grants: refusals.is_empty(),
            refusals,
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
            ("limits", output::limits(&report.record.limits)),
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
                    |skew_ms| format!("{skew_ms} ms apart"),
                ),
            ),
            ("floor", self.floor.in_words()),
        ]);
        let quarantined = report.quarantined.iter();
        rows.extend(quarantined.map(|found| ("quarantined", found.to_string())));
        rows.extend([(
            "leases",
            owned(if self.grants { "granted" } else { "refused" }),
        )]);
        rows.extend(
            self.refusals
                .iter()
                .map(|refusal| ("because", refusal.clone())),
        );
        rows
    }
}

#[cfg(test)]
mod tests {
    use ringflake::Layout;
    use ringflake::lease::{
        Block, Fingerprint, Incarnation, Namespace, Quarantined, StoreLimits, StoreRecord,
    };

    use super::*;

    const LAYOUT: Layout = Layout::RANDFLAKE;
    const NOW_MS: u64 = 1_760_000_000_000;

    fn report(floor: u64) -> StoreReport {
        let space = Namespace::new("a", &LAYOUT, Fingerprint::PLAIN).unwrap();
        let one = || Incarnation::new("one");
        let record = StoreRecord::new(space, StoreLimits::default(), floor, one());
        StoreReport::new("a store", record, one(), Durability::Durable, NOW_MS)
    }

    #[test]
    fn each_thing_in_the_way_is_told() {
        let now = LAYOUT.tick_at(NOW_MS).unwrap();
        assert_eq!(refusals(&report(now)), [""; 0]);
        // The default horizon is 660 ticks.
        assert_eq!(refusals(&report(now + 659)), [""; 0]);

        let ahead = report(now + 667);
        let mut skewed = report(now);
        skewed.store_unix_ms = Some(NOW_MS - 5001);
        let mut full = report(now);
        full.held_blocks = 4096;
        let mut damaged = report(now);
        damaged.held_blocks = 4095;
        damaged.quarantined = vec![Quarantined::new(Block::new(7), "its mark is -1")];
        let mut lost = report(now);
        lost.incarnation = Incarnation::new("two");
        let mut copied = lost.clone();
        copied.store = "sqlite:/a".to_owned();
        let mut tier = lost.clone();
        tier.store = "tier:/a".to_owned();
        assert_eq!(refusals(&tier), [""; 0]);
        for (report, said) in [
            (ahead, "in 8 s"),
            (skewed, "5001 ms"),
            (full, "every block"),
            (damaged, "'ringflake store repair'"),
            (lost, "raises the floor"),
            (copied, "bump-floor"),
            (report(LAYOUT.ticks()), "run out"),
        ] {
            let refusals = refusals(&report);
            assert_eq!(refusals.len(), 1, "{refusals:?}");
            assert!(refusals[0].contains(said), "{refusals:?}");
            assert!(!Object::new(&report).grants);
        }
    }
}

//! A layout that is good for what the options ask.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use ringflake::{
    AdviceError, AdvisedLayout, Clock, Layout, LayoutField, LayoutNeeds, LayoutShortage,
    SystemClock,
};
use serde_json::{Value, json};

use crate::args::time;
use crate::count::count;
use crate::format::Format;
use crate::output;
use crate::timestamp::{in_words, rfc3339};
use crate::units::{grouped, short};
use crate::usage::Misuse;

const DAY_MS: u64 = 86_400_000;

#[derive(Debug, Args)]
pub(super) struct NeedsArgs {
    /// How many years it lives, 1 to 1000
    #[arg(long, value_name = "N", value_parser = count::<u32>(1..=LayoutNeeds::MAX_YEARS.into()))]
    years: u32,
    /// Nodes alive at once; with leases all those of the blocks that are held
    #[arg(long, value_name = "N", value_parser = count::<u64>(1..=LayoutNeeds::MAX_NODES))]
    nodes: u64,
    /// IDs a second that all nodes together give for ever, such as 200k
    #[arg(long, value_name = "RATE", value_parser = count::<u64>(1..=LayoutNeeds::MAX_RATE))]
    rate: u64,
    /// How often each node starts again, times a day on average, such as 20 or 0.1
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    restarts_per_day: f64,
    /// IDs that all nodes together give at once after a quiet time, such as 5M
    #[arg(
        long, value_name = "N", default_value = "0",
        value_parser = count::<u64>(0..=LayoutNeeds::MAX_BURST),
    )]
    burst: u64,
    /// When the first tick begins, such as 2026-01-01 or 2026-01-01T00:00:00Z
    /// [default: today]
    #[arg(long, value_name = "TIME", value_parser = epoch)]
    epoch: Option<u64>,
    /// The length of a tick, such as 10ms [default: 1s, or where that does not fit 100ms,
    /// 10ms or 1ms]
    #[arg(long, value_name = "TIME", value_parser = time)]
    tick: Option<Duration>,
    /// Slots of each node's ring
    #[arg(
        long, value_name = "C", default_value = "65536",
        value_parser = count::<u64>(0..=LayoutNeeds::MAX_BURST),
    )]
    capacity: u64,
    /// How far ahead of the clock IDs may lie
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    borrow_limit: Duration,
    /// How long the lease of a killed holder keeps its node from others
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    lease_duration: Duration,
}

/// A day, or a moment, in milliseconds since 1970.
fn epoch(text: &str) -> Result<u64> {
    let is_day = text.len() == "2026-01-01".len();
    let whole = if is_day {
        format!("{text}T00:00:00Z")
    } else {
        text.to_owned()
    };
    let moment = humantime::parse_rfc3339(&whole).ok();
    let age = moment.and_then(|moment| moment.duration_since(UNIX_EPOCH).ok());
    match age.map(|age| {
        (
            age.as_millis(),
            age.subsec_nanos().is_multiple_of(1_000_000),
        )
    }) {
        Some((ms, true)) => Ok(u64::try_from(ms)?),
        _ => bail!(
            "give a day from 1970 on such as 2026-01-01, or a moment in UTC with at most \
             milliseconds such as 2026-01-01T00:00:00Z"
        ),
    }
}

impl NeedsArgs {
    fn needs(&self, epoch_unix_ms: u64) -> LayoutNeeds {
        let needs = LayoutNeeds::new(epoch_unix_ms)
            .years(self.years)
            .nodes(self.nodes)
            .restarts_per_day(self.restarts_per_day)
            .rate(self.rate)
            .burst(self.burst)
            .capacity(self.capacity)
            .borrow_limit(self.borrow_limit)
            .lease_duration(self.lease_duration);
        match self.tick {
            Some(tick) => needs.tick(tick),
            None => needs,
        }
    }
}

/// The advice for each width, from the widest on.
type Widths = Vec<Result<AdvisedLayout, LayoutShortage>>;

fn widths(needs: &LayoutNeeds) -> Result<Widths> {
    match Layout::advise(needs) {
        Ok(advice) => {
            let mut widths = vec![Ok(*advice.best())];
            widths.extend_from_slice(advice.alternatives());
            Ok(widths)
        }
        Err(AdviceError::TooNarrow(shortage)) => Ok(vec![Err(*shortage)]),
        Err(error) => Err(Misuse(error.to_string()).into()),
    }
}

pub(super) fn run(args: &NeedsArgs, format: Format) -> Result<ExitCode> {
    let now_unix_ms = SystemClock.unix_ms();
    let today = now_unix_ms - now_unix_ms % DAY_MS;
    let epoch_unix_ms = args.epoch.unwrap_or(today);
    let needs = args.needs(epoch_unix_ms);
    let leased = widths(&needs)?;
    let disposable = widths(&needs.disposable_nodes())?;
    if let (Err(shortage), Err(_)) = (&leased[0], &disposable[0]) {
        return Err(anyhow!(shortage.to_string()));
    }
    output::answer(|out| match format {
        Format::Json => {
            let object = json!({
                "asked": {
                    "epoch_unix_ms": epoch_unix_ms,
                    "years": args.years,
                    "nodes": args.nodes,
                    "restarts_per_day": args.restarts_per_day,
                    "rate": args.rate,
                    "burst": args.burst,
                    "capacity": args.capacity,
                    "borrow_limit_s": args.borrow_limit.as_secs_f64(),
                    "lease_duration_s": args.lease_duration.as_secs_f64(),
                },
                "leased": leased.iter().map(object).collect::<Vec<_>>(),
                "disposable": disposable.iter().map(object).collect::<Vec<_>>(),
            });
            output::json(out, &object)
        }
        Format::Text => {
            writeln!(out, "With leases, by which node numbers are reused:\n")?;
            table(out, &leased)?;
            writeln!(
                out,
                "\nWithout leases, where each start uses a node number up:\n"
            )?;
            table(out, &disposable)
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn table(out: &mut dyn Write, widths: &Widths) -> io::Result<()> {
    let titles = [
        "bits",
        "layout",
        "ends",
        "nodes",
        "needed",
        "IDs/s a node",
        "IDs/s",
        "burst",
        "binds",
    ];
    let found: Vec<_> = widths.iter().flatten().collect();
    let rows: Vec<_> = found.iter().map(|advised| row(advised)).collect();
    if !rows.is_empty() {
        output::columns(out, titles, &rows)?;
    }
    let refused: Vec<_> = widths
        .iter()
        .filter_map(|width| width.as_ref().err())
        .collect();
    if !rows.is_empty() && !refused.is_empty() {
        writeln!(out)?;
    }
    for shortage in refused {
        writeln!(out, "{shortage}")?;
    }
    Ok(())
}

fn row(advised: &AdvisedLayout) -> [String; 9] {
    let layout = advised.layout();
    let ends = in_words(layout.end_unix_ms());
    // The day is enough here.
    let ends = ends.split_once('T').map_or(&*ends, |(day, _)| day);
    let binds = advised.binds();
    [
        layout.total_bits().to_string(),
        layout.to_string(),
        ends.to_owned(),
        grouped(layout.nodes()),
        grouped(advised.nodes_needed()),
        short(advised.sustained_per_node()),
        short(advised.sustained()),
        short(advised.burst() as f64),
        format!("{binds}, {} x", short(advised.headroom(binds))),
    ]
}

fn object(width: &Result<AdvisedLayout, LayoutShortage>) -> Value {
    let advised = match width {
        Ok(advised) => advised,
        Err(shortage) => {
            return json!({
                "bits": shortage.bits,
                "layout": null,
                "refused": shortage.to_string(),
            });
        }
    };
    let layout = advised.layout();
    let headroom = |field| advised.headroom(field);
    json!({
        "bits": layout.total_bits(),
        "layout": layout.to_string(),
        "ends_unix_ms": layout.end_unix_ms(),
        "ends": rfc3339(layout.end_unix_ms(), false),
        "nodes": layout.nodes(),
        "nodes_needed": advised.nodes_needed(),
        "sustained_per_node": advised.sustained_per_node(),
        "sustained": advised.sustained(),
        "burst_per_node": advised.burst_per_node(),
        "burst": advised.burst(),
        "binds": advised.binds().to_string(),
        "headroom": {
            "time": headroom(LayoutField::Time),
            "node": headroom(LayoutField::Node),
            "sequence": headroom(LayoutField::Sequence),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_a_day_or_a_moment() {
        let new_year = 1_767_225_600_000;
        assert_eq!(epoch("2026-01-01").unwrap(), new_year);
        assert_eq!(epoch("2026-01-01T00:00:00.007Z").unwrap(), new_year + 7);
        for wrong in [
            "",
            "2026",
            "1969-12-31",
            "2026-13-01",
            "2026-01-01T00:00:00.0001Z",
            "tomorrow--",
        ] {
            assert!(epoch(wrong).is_err(), "{wrong}");
        }
    }
}

//! `ringflake layout sql`: SQL that reads the plain IDs of a layout.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use ringflake::Layout;

use crate::output;
use crate::timestamp::{END_OF_9999_UNIX_MS, exact};
use crate::usage::Misuse;

const EXAMPLES: &str = "Examples:
  ringflake layout sql positive --for postgres | psql orders
  ringflake layout sql positive --for mysql > ringflake.sql

Only for plain IDs of at most 63 bits. PostgreSQL gets functions; MySQL, MariaDB and
SQLite get a view and a query. No extension and no special privilege is needed.";

/// Print SQL that reads plain IDs in a database
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SqlArgs {
    /// A name such as positive, or time/node/sequence@epoch/tick such as
    /// 41/10/12@2026-01-01T00:00:00Z/1ms
    #[arg(value_name = "NAME|SPEC")]
    layout: Layout,
    /// The database that runs the SQL
    #[arg(long = "for", value_name = "DATABASE")]
    database: Database,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Database {
    /// PostgreSQL 14 or later
    Postgres,
    /// MySQL 8 or later, and MariaDB
    #[value(alias = "mariadb")]
    Mysql,
    /// SQLite 3.8.3 or later
    Sqlite,
}

/// Bits that a BIGINT has beside its sign.
const SIGNED_BITS: u32 = 63;
const DAY_MS: u64 = 86_400_000;

pub(super) fn run(args: &SqlArgs) -> Result<ExitCode> {
    let SqlArgs { layout, database } = *args;
    if let Some(problem) = problem(&layout) {
        let way_out = match nearest_fit(&layout) {
            Some(layout) => format!("for new IDs, run '{}'", command(&layout, database)),
            None => "choose a shorter tick or an earlier epoch".to_owned(),
        };
        return Err(Misuse(format!("layout {layout} {problem}\nhelp: {way_out}")).into());
    }
    let text = text(&layout, database);
    output::answer(|out| out.write_all(text.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

fn command(layout: &Layout, database: Database) -> String {
    let value = database.to_possible_value();
    let database = value.as_ref().map_or("", |value| value.get_name());
    let layout = layout
        .name()
        .map_or_else(|| layout.to_string(), str::to_owned);
    format!("ringflake layout sql {layout} --for {database}")
}

/// Why no SQL can read the IDs of this layout.
fn problem(layout: &Layout) -> Option<&'static str> {
    if layout.total_bits() > SIGNED_BITS {
        Some(
            "has 64 bits: its IDs are negative in a BIGINT in the second half of its life, and \
             do not sort by time there",
        )
    } else if layout.end_unix_ms() >= END_OF_9999_UNIX_MS {
        Some("ends after the year 9999, which is the last one of dates in SQL")
    } else {
        None
    }
}

/// The widest layout with this epoch and tick that SQL can read, with fewer nodes if it can be.
fn nearest_fit(layout: &Layout) -> Option<Layout> {
    let (node, sequence) = (layout.node_bits(), layout.sequence_bits());
    let narrower = (1..=layout.time_bits()).rev().flat_map(|time| {
        [(node, sequence), (node - 1, sequence), (node, sequence - 1)]
            .map(|(node, sequence)| (time, node, sequence))
    });
    let build = |(time, node, sequence)| {
        let tick = Duration::from_millis(layout.tick_ms());
        let builder = Layout::builder().bits(time, node, sequence).tick(tick);
        builder.epoch_unix_ms(layout.epoch_unix_ms()).build().ok()
    };
    let mut fits = narrower.filter_map(build);
    fits.find(|fit| problem(fit).is_none())
}

/// The SQL, from a template.
fn text(layout: &Layout, database: Database) -> String {
    const HEADER: &str = include_str!("sql/header.sql");
    let body = match database {
        Database::Postgres => include_str!("sql/postgres.sql"),
        Database::Mysql => include_str!("sql/mysql.sql"),
        Database::Sqlite => include_str!("sql/sqlite.sql"),
    };
    let (epoch_ms, tick_ms) = (layout.epoch_unix_ms(), layout.tick_ms());
    let last_tick_ms = layout.tick_start_unix_ms(layout.ticks() - 1);
    let tick_ids = layout.nodes() * layout.sequences();
    let last_id = (layout.ticks() - 1) * tick_ids + (tick_ids - 1);
    let above_all = last_id + u64::from(layout.total_bits() < SIGNED_BITS);
    let first_id = |unix_ms: u64| {
        let tick = (unix_ms - epoch_ms).div_ceil(tick_ms);
        let id = match tick < layout.ticks() {
            true => tick * tick_ids,
            false => above_all,
        };
        id.to_string()
    };
    // The first month after the epoch is the example.
    let since_ms = month_after(epoch_ms);
    let until_ms = month_after(since_ms);
    let day = |unix_ms| utc(unix_ms)[..10].to_owned();
    let values = [
        ("{command}", command(layout, database)),
        ("{layout}", layout.to_string()),
        ("{total_bits}", layout.total_bits().to_string()),
        ("{time_bits}", layout.time_bits().to_string()),
        ("{node_bits}", layout.node_bits().to_string()),
        ("{sequence_bits}", layout.sequence_bits().to_string()),
        ("{nodes}", layout.nodes().to_string()),
        ("{sequences}", layout.sequences().to_string()),
        ("{tick_ms}", tick_ms.to_string()),
        ("{tick_us}", (tick_ms * 1_000).to_string()),
        ("{epoch}", utc(epoch_ms)),
        ("{epoch_ms}", epoch_ms.to_string()),
        ("{epoch_us}", (epoch_ms * 1_000).to_string()),
        ("{last_tick}", utc(last_tick_ms)),
        ("{last_tick_ms}", last_tick_ms.to_string()),
        ("{end}", utc(layout.end_unix_ms())),
        ("{tick_ids}", tick_ids.to_string()),
        ("{last_id}", last_id.to_string()),
        ("{above_all}", above_all.to_string()),
        ("{month}", day(since_ms)[..7].replace('-', "_")),
        ("{since}", day(since_ms)),
        ("{since_id}", first_id(since_ms)),
        ("{until}", day(until_ms)),
        ("{until_id}", first_id(until_ms)),
    ];
    let template = HEADER.to_owned() + body;
    let fill = |text: String, (name, value): &(&str, String)| text.replace(name, value);
    values.iter().fold(template, fill)
}

/// A moment in UTC, with milliseconds where there are any.
fn utc(unix_ms: u64) -> String {
    let text = exact(unix_ms).unwrap_or_default();
    text.trim_end_matches('Z').replace('T', " ")
}

/// When the next month begins.
fn month_after(unix_ms: u64) -> u64 {
    let midnight = unix_ms - unix_ms % DAY_MS;
    let mut days = (1..=31).map(|day| midnight + day * DAY_MS);
    let first = days.find(|&day| utc(day).get(8..10) == Some("01"));
    first.unwrap_or(unix_ms)
}

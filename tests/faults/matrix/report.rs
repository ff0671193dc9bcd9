//! What came out, as figures.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::crew::Told;
use super::{Outcome, Scale, space};

/// The command that makes the report that is kept.
const COMMAND: &str = "RINGFLAKE_FAULTS=long cargo test --release --all-features --test faults";

/// Numbers to take percentiles of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<u64>);

impl Sample {
    pub(crate) fn add(&mut self, value: u64) {
        self.0.push(value);
    }

    /// The least value that `percent` of all values do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Option<u64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }
}

/// A cell of the matrix.
#[derive(Debug)]
pub(crate) struct Row {
    store: &'static str,
    fault: String,
    ids: u64,
    pub(crate) twice: u64,
    pub(crate) outside: u64,
    pub(crate) overlaps: Vec<String>,
    examples: Vec<String>,
    pub(crate) faults: u64,
    starts: usize,
    longest_refusal: Duration,
    borrowed_ms: Sample,
    renewal_us: Sample,
    first_id_ms: Sample,
    /// How long the workers could serve without the store, and did.
    pub(crate) ride_through: Option<RideThrough>,
}

/// How long the first of the workers to be refused served without its store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RideThrough {
    pub(crate) predicted: Duration,
    pub(crate) measured: Duration,
}

impl Row {
    pub(crate) fn new(store: &'static str, fault: &str, told: &Told) -> Self {
        let mut first_id_ms = Sample::default();
        let first = |life: &super::crew::Life| life.first_id;
        for time in told.runs.iter().filter_map(first) {
            first_id_ms.add(time.as_millis() as u64);
        }
        let refusals = told.runs.iter().map(|life| life.longest_refusal);
        Self {
            store,
            fault: fault.to_owned(),
            ids: told.ledger.issued,
            twice: told.ledger.twice,
            outside: told.ledger.outside,
            overlaps: told.ledger.overlaps(),
            examples: told.ledger.examples.clone(),
            faults: 0,
            starts: told.runs.len(),
            longest_refusal: refusals.max().unwrap_or_default(),
            borrowed_ms: told.borrowed_ms.clone(),
            renewal_us: told.renewal_us.clone(),
            first_id_ms,
            ride_through: None,
        }
    }

    /// Whether nothing was issued twice or without a grant, and no two grants
    /// share anything.
    pub(crate) fn verdict(&self) -> Outcome<()> {
        let wrong = self.twice + self.outside + self.overlaps.len() as u64;
        if wrong == 0 && self.ids > 0 {
            return Ok(());
        }
        Err(format!(
            "{}, {}: of {} IDs {} were issued twice and {} without a grant; {:?}; grants that \
             overlap: {:?}",
            self.store,
            self.fault,
            self.ids,
            self.twice,
            self.outside,
            self.examples,
            self.overlaps.iter().take(5).collect::<Vec<_>>()
        ))
    }

    fn line(&self) -> String {
        let seconds = |ms: Option<u64>| match ms {
            Some(ms) => format!("{:.1}", ms as f64 / 1e3),
            None => "–".to_owned(),
        };
        let borrowed = |percent| seconds(self.borrowed_ms.percentile(percent));
        let milliseconds = |us: Option<u64>| match us {
            Some(us) => format!("{:.1}", us as f64 / 1e3),
            None => "–".to_owned(),
        };
        let whole = |ms: Option<u64>| ms.map_or("–".to_owned(), |ms| ms.to_string());
        let ride = self.ride_through.map_or("–".to_owned(), |ride| {
            format!(
                "{:.1} / {:.1}",
                ride.measured.as_secs_f64(),
                ride.predicted.as_secs_f64()
            )
        });
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} / {} / {} | {} | {} / {} | {ride} |",
            self.store,
            self.fault,
            self.ids,
            self.twice,
            self.outside,
            self.overlaps.len(),
            self.faults,
            seconds(Some(self.longest_refusal.as_millis() as u64)),
            borrowed(50),
            borrowed(99),
            borrowed(100),
            milliseconds(self.renewal_us.percentile(99)),
            whole(self.first_id_ms.percentile(50)),
            whole(self.first_id_ms.percentile(100)),
        )
    }
}

/// Writes what a long run found to where it is kept, and what a short one found to
/// where the build lies.
pub(crate) fn write(rows: &[Row], scale: Scale) {
    if rows.is_empty() {
        return;
    }
    let path = if scale.long {
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/REPORT.md").into()
    } else {
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("faults.md")
    };
    match fs::write(&path, text(rows, scale)) {
        Ok(()) => eprintln!("faults: the report is {}", path.display()),
        Err(error) => eprintln!("faults: no report in {}: {error}", path.display()),
    }
}

fn text(rows: &[Row], scale: Scale) -> String {
    let mut text = String::new();
    let total = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    let command = match scale.long {
        true => COMMAND,
        false => COMMAND.split_once(' ').unwrap().1,
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let _ = write!(
        text,
        "# What faults did\n\
         \n\
         Written by `{command}`, on a machine with {cores} processors that also ran the servers. \
         {} cells, {} processes, {} IDs: {} issued twice, {} without a grant, {} grants that \
         overlap.\n\
         \n\
         Eight workers each, with one block of {} IDs a second: half of them take 2,000 a second, \
         and half take whatever there is, up to {} s ahead of the clock. Cover {} s, horizon {} s, \
         failover {} s, skew {} s, ticks of {} ms. `main.rs` says how each ID is judged.\n\
         \n\
         * **refusal**: the longest time for which a worker had no IDs, in seconds; where a worker \
         was stopped, that counts.\n\
         * **borrowed**: how far IDs were ahead of their worker's clock, in seconds: median, 99 of \
         100, most. Where clocks were set back, that is by how much: what the ring held is still \
         given out.\n\
         * **renewal**: the time that 99 of 100 renewals took at the most, in milliseconds, from \
         call to reply.\n\
         * **first ID**: from the start of a process to its first ID, in milliseconds: median, \
         most.\n\
         * **ride-through**: from the moment when the store was gone until a worker was refused \
         for it, the shortest of those that take no more than their block has; and what its \
         lease's end had promised then, in seconds.\n\
         \n\
         | store | fault | IDs | twice | outside | overlaps | faults | refusal | borrowed | \
         renewal | first ID | ride-through |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        rows.len(),
        rows.iter().map(|row| row.starts).sum::<usize>(),
        total(|row| row.ids),
        total(|row| row.twice),
        total(|row| row.outside),
        total(|row| row.overlaps.len() as u64),
        4 * 64 * 10,
        space::BORROW.as_secs(),
        space::COVER.as_secs(),
        space::HORIZON.as_secs(),
        space::FAILOVER.as_secs(),
        space::SKEW.as_secs(),
        space::TICK.as_millis(),
    );
    for row in rows {
        text += &row.line();
        text.push('\n');
    }
    text
}

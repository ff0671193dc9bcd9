//! The results as figures, and a page of Markdown with a row for each scenario that was run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use super::target;
use super::{Outcome, space};

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) store: &'static str,
    pub(crate) fault: &'static str,
    /// The error if it panicked, or something did not come out as it must.
    pub(crate) verdict: Outcome<()>,
    pub(crate) findings: Findings,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// None where no process was started.
    pub(crate) figures: Option<Figures>,
    pub(crate) remark: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) ids: u64,
    /// How many were issued a second time, where the promise holds.
    pub(crate) twice: u64,
    /// How many were issued twice where none is made.
    pub(crate) excused: u64,
    pub(crate) outside: u64,
    pub(crate) overlaps: Vec<String>,
    pub(crate) examples: Vec<String>,
    pub(crate) faults: u64,
    pub(crate) starts: usize,
    /// How often a store or a take was refused, as far as that was told.
    pub(crate) refusals: u64,
    pub(crate) longest_refusal: Duration,
}

impl Figures {
    /// Whether nothing was issued twice or without a grant, and no two grants
    /// share anything.
    pub(crate) fn verdict(&self) -> Outcome<()> {
        let wrong = self.twice + self.outside + self.overlaps.len() as u64;
        if wrong == 0 && self.ids > 0 {
            return Ok(());
        }
        Err(format!(
            "of {} IDs {} were issued twice and {} without a grant; {:?}; grants that \
             overlap: {:?}",
            self.ids,
            self.twice,
            self.outside,
            self.examples,
            self.overlaps.iter().take(5).collect::<Vec<_>>()
        ))
    }
}

impl Row {
    fn line(&self) -> String {
        let verdict = match self.verdict {
            Ok(()) => "passed",
            Err(_) => "**failed**",
        };
        let it = self.findings.figures.clone().unwrap_or_default();
        let excused = match it.excused {
            0 => String::new(),
            some => format!(" +{some}"),
        };
        format!(
            "| {} | {} | {verdict} | {} | {}{excused} | {} | {} | {} | {} | {:.1} |\n",
            self.store,
            self.fault,
            it.ids,
            it.twice,
            it.outside,
            it.overlaps.len(),
            it.faults,
            it.refusals,
            it.longest_refusal.as_secs_f64(),
        )
    }
}

static ROWS: Mutex<Vec<Row>> = Mutex::new(Vec::new());

pub(crate) fn enter(row: Row) {
    ROWS.lock().unwrap().push(row);
}

/// Writes the page of what was run to where the build lies.
pub(crate) fn write() {
    let rows = ROWS.lock().unwrap();
    if rows.is_empty() {
        return;
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults.md");
    match fs::write(&path, page(&rows)) {
        Ok(()) => eprintln!("faults: the report is {}", path.display()),
        Err(error) => eprintln!("faults: no report in {}: {error}", path.display()),
    }
}

fn head() -> String {
    let commit = Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR")])
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .output();
    let commit = commit.map_or_else(|_| Vec::new(), |output| output.stdout);
    let now = httpdate::fmt_http_date(SystemTime::now());
    format!(
        "* **date**: {}\n* **commit**: {}\n* **stores**: {}\n",
        now.replace("GMT", "UTC"),
        String::from_utf8_lossy(&commit).trim(),
        target::versions().join("; ")
    )
}

fn page(rows: &[Row]) -> String {
    let seconds = |time: Duration| time.as_secs_f64();
    let failed = rows.iter().filter(|row| row.verdict.is_err()).count();
    let mut text = format!(
        "# What faults did\n\n{}\n{} scenarios, {failed} failed.\n\n\
         Eight workers each, with one block of {} IDs a second: half of them take 2,000 a second, \
         and half take whatever there is, up to {} s ahead of the clock. Lease duration {} s, \
         horizon {} s, failover {} s, skew {} s, ticks of {} s. `faults.rs` says how each ID is \
         judged.\n\n\
         * **twice**: IDs issued twice although that was promised not to happen; after +, IDs \
         issued twice where nothing is promised, and the remark below says when.\n\
         * **outside**, **overlaps**: IDs without a grant of the very process, and pairs of \
         grants that share a tick.\n\
         * **refused**: how often a store or a take was refused, as far as that was told.\n\
         * **refusal**: the longest time for which a worker had no IDs, in seconds; where a \
         worker was stopped, that counts.\n\n\
         | store | fault | verdict | IDs | twice | outside | overlaps | faults | refused | refusal |\n\
         |---|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
        head(),
        rows.len(),
        4 * 64 * 10,
        seconds(space::BORROW),
        seconds(space::LEASE_DURATION),
        seconds(space::HORIZON),
        seconds(space::FAILOVER),
        seconds(space::SKEW),
        seconds(space::TICK),
    );
    text.extend(rows.iter().map(Row::line));
    let remarks = remarks(rows);
    if !remarks.is_empty() {
        text += &format!("\n## Remarks\n\n{}\n", remarks.join("\n"));
    }
    text
}

/// Failures, and what scenarios have noted.
fn remarks(rows: &[Row]) -> Vec<String> {
    let line = |row: &Row| {
        let noted = match &row.verdict {
            Ok(()) => row.findings.remark.clone(),
            Err(why) => format!("failed: {}", why.trim().replace('\n', " ")),
        };
        let (store, fault) = (row.store, row.fault);
        (!noted.is_empty()).then(|| format!("* {store}, *{fault}*: {noted}."))
    };
    rows.iter().filter_map(line).collect()
}

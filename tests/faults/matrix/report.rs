//! The results as figures. Each scenario has a row, whether it passed, failed or was not
//! run.

mod page;
mod tests;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use super::scenarios::Scenario;
use super::target::Kind;
use super::wire::Flaw;
use super::{Outcome, Scale};

pub(crate) use self::page::head;
pub(crate) use self::tests::trials;

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

/// A scenario of the matrix.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    store: &'static str,
    fault: &'static str,
    /// The promise that it checks.
    promise: &'static str,
    verdict: Verdict,
    pub(crate) findings: Findings,
}

/// How a scenario has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    /// It panicked, or something did not come out as it must.
    Failed(String),
    /// For this reason.
    NotRun(&'static str),
}

/// Further findings of a scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// None where no process was started.
    pub(crate) figures: Option<Figures>,
    /// How long the workers could serve without the store, and did.
    pub(crate) ride_through: Option<RideThrough>,
    pub(crate) remark: String,
}

/// What the processes of a scenario did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) ids: u64,
    /// How many were issued a second time, where the promise holds.
    pub(crate) twice: u64,
    /// How many were issued twice where none is made.
    pub(crate) excused: u64,
    /// None where grants are not told.
    pub(crate) outside: Option<u64>,
    pub(crate) overlaps: Option<Vec<String>>,
    pub(crate) examples: Vec<String>,
    pub(crate) faults: u64,
    pub(crate) starts: usize,
    /// How often a store or a take was refused, as far as that was told.
    pub(crate) refusals: u64,
    pub(crate) longest_refusal: Duration,
    pub(crate) borrowed_ms: Sample,
    pub(crate) renewal_us: Sample,
    pub(crate) first_id_ms: Sample,
}

/// How long the first of the workers to be refused served without its store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RideThrough {
    pub(crate) predicted: Duration,
    pub(crate) measured: Duration,
}

impl Figures {
    pub(crate) fn overlapping(&self) -> &[String] {
        self.overlaps.as_deref().unwrap_or_default()
    }

    /// Whether nothing was issued twice or without a grant, and no two grants
    /// share anything.
    pub(crate) fn verdict(&self) -> Outcome<()> {
        let outside = self.outside.unwrap_or(0);
        let wrong = self.twice + outside + self.overlapping().len() as u64;
        if wrong == 0 && self.ids > 0 {
            return Ok(());
        }
        Err(format!(
            "of {} IDs {} were issued twice and {outside} without a grant; {:?}; grants that \
             overlap: {:?}",
            self.ids,
            self.twice,
            self.examples,
            self.overlapping().iter().take(5).collect::<Vec<_>>()
        ))
    }
}

impl Row {
    pub(crate) fn new(kind: Kind, scenario: &Scenario, verdict: Verdict) -> Self {
        Self {
            store: kind.name(),
            fault: scenario.name,
            promise: scenario.promise,
            verdict,
            findings: Findings::default(),
        }
    }

    /// Why it did not pass, if it was run.
    pub(crate) fn failure(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Failed(why) => Some(why),
            Verdict::Passed | Verdict::NotRun(_) => None,
        }
    }

    fn was_run(&self) -> bool {
        !matches!(self.verdict, Verdict::NotRun(_))
    }
}

/// All scenarios that there are, and what became of each.
#[derive(Debug)]
pub(crate) struct Book {
    scale: Scale,
    rows: Mutex<Vec<Row>>,
    /// The flaws that were found out, and by what.
    controls: Mutex<Vec<(Flaw, Figures)>>,
}

impl Book {
    /// With these scenarios, none of which has been run.
    pub(crate) fn new(scale: Scale, planned: Vec<Row>) -> Self {
        Self {
            scale,
            rows: Mutex::new(planned),
            controls: Mutex::default(),
        }
    }

    /// In place of what was known of the same scenario.
    pub(crate) fn enter(&self, row: Row) {
        let mut rows = self.rows.lock().unwrap();
        let is_it = |known: &&mut Row| (known.store, known.fault) == (row.store, row.fault);
        *rows.iter_mut().find(is_it).expect("it was planned") = row;
    }

    pub(crate) fn caught(&self, flaw: Flaw, figures: Figures) {
        self.controls.lock().unwrap().push((flaw, figures));
    }

    /// Writes the full report to `kept`, failures included, and a part of it to `scratch`.
    /// Returns its path, or none if nothing was run.
    ///
    /// # Errors
    /// Those of the file.
    fn write_to<'a>(
        &self,
        head: &str,
        kept: &'a Path,
        scratch: &'a Path,
    ) -> Outcome<Option<&'a Path>> {
        let rows = self.rows.lock().unwrap();
        if !rows.iter().any(Row::was_run) {
            return Ok(None);
        }
        let whole = self.scale == Scale::Long && rows.iter().all(Row::was_run);
        let path = if whole { kept } else { scratch };
        let page = page::text(&rows, &self.controls.lock().unwrap(), head, whole);
        let written = fs::write(path, page);
        written.map_err(|error| format!("no report in {}: {error}", path.display()))?;
        Ok(Some(path))
    }

    /// Writes the whole to where it is kept, and a part of it to where the build lies.
    pub(crate) fn write(&self, head: &str) {
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/faults/REPORT.md");
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults.md");
        match self.write_to(head, Path::new(kept), &scratch) {
            Ok(Some(path)) => eprintln!("faults: the report is {}", path.display()),
            Ok(None) => {}
            Err(error) => eprintln!("faults: {error}"),
        }
    }
}

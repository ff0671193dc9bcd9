//! What came out, as figures. Each scenario has its row, whether it passed or not; what
//! was not run has one, too.

mod page;
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::scenarios::Scenario;
use super::target::Kind;
use super::wire::Flaw;
use super::worker_pool::Reports;
use super::{Outcome, Scale, is_for_the_record};

pub(crate) use self::page::Run;
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
    pub(crate) store: &'static str,
    pub(crate) fault: &'static str,
    /// What it is judged by.
    pub(crate) promise: &'static str,
    pub(crate) verdict: Verdict,
    /// None where no process was started.
    pub(crate) figures: Option<Figures>,
    /// How long the workers could serve without the store, and did.
    pub(crate) ride_through: Option<RideThrough>,
    pub(crate) remark: String,
}

/// How a scenario has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    /// Something did not come out as it must.
    Failed(String),
    Panicked(String),
    /// For this reason.
    NotRun(String),
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
    /// What was told. Of what lies before the tick `promised_from`, nothing was promised.
    pub(crate) fn of(reports: &Reports, faults: u64, promised_from: u64) -> Self {
        let mut first_id_ms = Sample::default();
        let first = |entry: &super::worker_pool::WorkerRecord| entry.first_id;
        for time in reports.runs.iter().filter_map(first) {
            first_id_ms.add(time.as_millis() as u64);
        }
        let refusals = reports.runs.iter().map(|entry| entry.longest_refusal);
        let grant_log = &reports.grant_log;
        let twice = grant_log.twice_from(promised_from);
        Self {
            ids: grant_log.issued,
            twice,
            excused: grant_log.twice_from(0) - twice,
            outside: Some(grant_log.outside),
            overlaps: Some(grant_log.overlaps(promised_from)),
            examples: grant_log.examples.clone(),
            faults,
            starts: reports.runs.len(),
            refusals: reports.refusals,
            longest_refusal: refusals.max().unwrap_or_default(),
            borrowed_ms: reports.borrowed_ms.clone(),
            renewal_us: reports.renewal_us.clone(),
            first_id_ms,
        }
    }

    /// Adds those of other processes.
    pub(crate) fn add(&mut self, more: Self) {
        self.ids += more.ids;
        self.twice += more.twice;
        self.excused += more.excused;
        self.outside = self.outside.zip(more.outside).map(|(a, b)| a + b);
        let both = self.overlaps.take().zip(more.overlaps);
        self.overlaps = both.map(|(a, b)| [a, b].concat());
        self.examples.extend(more.examples);
        self.faults += more.faults;
        self.starts += more.starts;
        self.refusals += more.refusals;
        self.longest_refusal = self.longest_refusal.max(more.longest_refusal);
        self.borrowed_ms.0.extend(more.borrowed_ms.0);
        self.renewal_us.0.extend(more.renewal_us.0);
        self.first_id_ms.0.extend(more.first_id_ms.0);
    }

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
    pub(crate) fn not_run(kind: Kind, scenario: &Scenario, why: &str) -> Self {
        Self {
            store: kind.name(),
            fault: scenario.name,
            promise: scenario.promise,
            verdict: Verdict::NotRun(why.to_owned()),
            figures: None,
            ride_through: None,
            remark: String::new(),
        }
    }

    /// Why it did not pass, if it was run.
    pub(crate) fn failure(&self) -> Option<String> {
        match &self.verdict {
            Verdict::Passed | Verdict::NotRun(_) => None,
            Verdict::Failed(why) => Some(why.clone()),
            Verdict::Panicked(why) => Some(format!("panicked: {why}")),
        }
    }
}

/// All scenarios that there are, and what became of each.
#[derive(Debug)]
pub(crate) struct Book {
    scale: Scale,
    rows: Mutex<Vec<Row>>,
    controls: Mutex<Vec<Control>>,
}

/// A flaw that was found out, and by what.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) flaw: Flaw,
    pub(crate) figures: Figures,
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

    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn controls(&self) -> MutexGuard<'_, Vec<Control>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In place of what was known of the same scenario.
    pub(crate) fn enter(&self, row: Row) {
        let mut rows = self.rows();
        let place = rows
            .iter_mut()
            .find(|known| (known.store, known.fault) == (row.store, row.fault));
        *place.expect("it was planned") = row;
    }

    pub(crate) fn caught(&self, flaw: Flaw, figures: Figures) {
        self.controls().push(Control { flaw, figures });
    }

    fn was_run(&self) -> bool {
        let is_run = |row: &Row| !matches!(row.verdict, Verdict::NotRun(_));
        self.rows().iter().any(is_run)
    }

    /// Whether it is the report of all that there is, at length. Who failed is in it.
    fn is_whole(&self) -> bool {
        let is_run = |row: &Row| !matches!(row.verdict, Verdict::NotRun(_));
        self.scale == Scale::Long && self.rows().iter().all(is_run)
    }

    /// Writes the whole to `kept`, and a part of it to `scratch`. Answers where it is;
    /// none where nothing was run.
    ///
    /// # Errors
    /// Those of the file.
    fn write_to(&self, run: &Run, kept: &Path, scratch: &Path) -> Outcome<Option<PathBuf>> {
        if !self.was_run() {
            return Ok(None);
        }
        let whole = self.is_whole();
        let path = if whole { kept } else { scratch };
        let text = page::text(&self.rows(), &self.controls(), run, whole);
        match fs::write(path, text) {
            Ok(()) => Ok(Some(path.to_owned())),
            Err(error) => Err(format!("no report in {}: {error}", path.display())),
        }
    }

    /// Writes the whole to where it is kept, and a part of it to where the build lies.
    pub(crate) fn write(&self, run: &Run) {
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/faults/REPORT.md");
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults.md");
        let kept = match is_for_the_record() {
            true => Path::new(kept),
            false => &scratch,
        };
        match self.write_to(run, kept, &scratch) {
            Ok(Some(path)) => eprintln!("faults: the report is {}", path.display()),
            Ok(None) => {}
            Err(error) => eprintln!("faults: {error}"),
        }
    }
}

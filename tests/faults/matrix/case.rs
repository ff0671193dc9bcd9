//! A scenario while it is run, and what is left of it however it ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::report::{Figures, RideThrough, Row, Verdict};
use super::target::Target;
use super::worker_pool::{Terms, WorkerPool};
use super::{Outcome, Scale};

/// What a scenario has to work with.
pub(crate) struct Case<'a> {
    pub(crate) target: &'a mut dyn Target,
    pub(crate) name: &'static str,
    pub(crate) scale: Scale,
    record: Record,
}

/// What is known of a scenario. It outlives the scenario, so that one that fails is shown
/// with its figures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    figures: Option<Figures>,
    ride_through: Option<RideThrough>,
    remarks: Vec<String>,
}

impl Record {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what some processes did.
    pub(crate) fn add(&self, more: Figures) {
        let mut known = self.known();
        match &mut known.figures {
            Some(figures) => figures.add(more),
            none => *none = Some(more),
        }
    }

    pub(crate) fn figures(&self) -> Option<Figures> {
        self.known().figures.clone()
    }
}

impl<'a> Case<'a> {
    pub(crate) fn new(target: &'a mut dyn Target, name: &'static str, scale: Scale) -> Self {
        Self {
            target,
            name,
            scale,
            record: Record::default(),
        }
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Eight workers on this store, in a namespace that is named after the scenario, each
    /// of which has issued IDs.
    pub(crate) fn pool(&self, terms: Terms) -> Outcome<WorkerPool> {
        self.pool_at(&self.target.direct_url(), &self.target.url(), terms)
    }

    /// The same on the store at `direct`, which they reach at `url`.
    pub(crate) fn pool_at(&self, direct: &str, url: &str, terms: Terms) -> Outcome<WorkerPool> {
        WorkerPool::new(direct, url, self.name, terms, &self.record)?.serving()
    }

    /// A pool on this store without a worker yet.
    pub(crate) fn idle_pool(&self, terms: Terms) -> Outcome<WorkerPool> {
        let (direct, url) = (self.target.direct_url(), self.target.url());
        WorkerPool::new(&direct, &url, self.name, terms, &self.record)
    }

    /// Says something beside the figures.
    pub(crate) fn remark(&self, text: impl Into<String>) {
        self.record.known().remarks.push(text.into());
    }

    pub(crate) fn ride_through(&self, ride: Option<RideThrough>) {
        self.record.known().ride_through = ride;
    }
}

/// Runs a scenario to whatever end, then judges what is left of it.
pub(crate) fn try_out(
    mut case: Case<'_>,
    promise: &'static str,
    run: impl FnOnce(&mut Case<'_>) -> Outcome<()>,
) -> Row {
    let record = case.record.clone();
    let (store, fault) = (case.target.kind().name(), case.name);
    // What it has used is thrown away where it did not pass.
    let ended = catch_unwind(AssertUnwindSafe(|| run(&mut case)));
    drop(case);
    let known = record.known();
    let figures = known.figures.clone();
    let wrong = match &figures {
        Some(figures) => figures.verdict(),
        None => Err("it has no figures".to_owned()),
    };
    let verdict = match (ended, wrong) {
        (Err(panic), _) => Verdict::Panicked(message(&*panic)),
        (Ok(Ok(())), Ok(())) => Verdict::Passed,
        (Ok(Err(why)), Ok(())) | (Ok(Ok(())), Err(why)) => Verdict::Failed(why),
        (Ok(Err(why)), Err(more)) => Verdict::Failed(format!("{why}; {more}")),
    };
    Row {
        store,
        fault,
        promise,
        verdict,
        figures,
        ride_through: known.ride_through,
        remark: known.remarks.join("; "),
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}

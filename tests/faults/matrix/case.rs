//! A scenario while it is run, and what is left of it however it ends.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use super::report::{Findings, Row};
use super::scenarios::Scenario;
use super::target::{Kind, Target};
use super::worker_pool::{Terms, WorkerPool};
use super::{Outcome, Scale};

/// The findings of a scenario. They outlive it, so a failed scenario is reported with its
/// figures.
pub(crate) type Record = Arc<Mutex<Findings>>;

pub(crate) struct Case<'a> {
    pub(crate) target: &'a mut dyn Target,
    pub(crate) name: &'a str,
    pub(crate) scale: Scale,
    pub(crate) record: Record,
}

impl<'a> Case<'a> {
    pub(crate) fn new(target: &'a mut dyn Target, name: &'a str, scale: Scale) -> Self {
        Self {
            target,
            name,
            scale,
            record: Record::default(),
        }
    }

    /// Eight workers on this store, in a namespace that is named after the scenario, each
    /// of which has issued IDs.
    pub(crate) fn pool(&self, terms: Terms) -> Outcome<WorkerPool> {
        self.idle_pool(terms)?.serving()
    }

    /// The same on the store at `direct`, which they reach at `url`.
    pub(crate) fn pool_at(&self, direct: &str, url: &str, terms: Terms) -> Outcome<WorkerPool> {
        WorkerPool::new(self, direct, url, terms)?.serving()
    }

    pub(crate) fn idle_pool(&self, terms: Terms) -> Outcome<WorkerPool> {
        WorkerPool::new(self, &self.target.direct_url(), &self.target.url(), terms)
    }

    pub(crate) fn findings(&self) -> MutexGuard<'_, Findings> {
        self.record.lock().unwrap()
    }
}

pub(crate) fn try_out(
    kind: Kind,
    target: &mut dyn Target,
    scenario: &Scenario,
    scale: Scale,
) -> Row {
    let mut case = Case::new(target, scenario.name, scale);
    // A failed scenario's server is discarded.
    let ended = catch_unwind(AssertUnwindSafe(|| (scenario.run)(&mut case)));
    let ended = ended.unwrap_or_else(|panic| Err(format!("panicked: {}", message(&*panic))));
    let findings = mem::take(&mut *case.findings());
    let judged = match &findings.figures {
        Some(figures) => figures.verdict(),
        None => Err("it has no figures".to_owned()),
    };
    let verdict = match (ended, judged) {
        (Err(why), Err(more)) => Err(format!("{why}; {more}")),
        (ended, judged) => ended.and(judged),
    };
    Row {
        store: kind.name(),
        fault: scenario.name,
        verdict,
        findings,
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}

//! How far a load came that was not served as due, and what limits it.

use super::outcome::Outcome;
use super::trial::{Progress, Trial};
use crate::units::{grouped, short, time};

/// A load that this machine did not take when it was due.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shortfall {
    /// The run that is spoken of: of the best ring, the one that came the least far.
    pub(super) progress: Progress,
    /// The IDs that were taken are those due in so many seconds of it.
    pub(super) reached: f64,
    /// By how many seconds 1 ID in 100 was late, or more.
    pub(super) late_by: f64,
    /// What holds it back, the lowest ceiling first.
    pub(super) limits: Vec<Limit>,
}

/// One thing that holds a load back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limit {
    pub(super) kind: LimitKind,
    /// The rate that it allows, where that is known.
    pub(super) ids_per_second: Option<f64>,
    /// With what to do about it.
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitKind {
    /// The lease has too few nodes.
    Nodes,
    /// Producers make fewer IDs than are asked for on average.
    Producers,
    /// Threads take no faster.
    Takes,
    /// `tune` asks no faster.
    Driver,
    /// There are more threads than cores.
    Cores,
    /// Other work had the processor.
    Processor,
    /// A burst takes more than the largest ring holds.
    Capacity,
}

impl LimitKind {
    /// As it stands in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Producers => "producers",
            Self::Takes => "takes",
            Self::Driver => "driver",
            Self::Cores => "cores",
            Self::Processor => "processor",
            Self::Capacity => "capacity",
        }
    }
}

impl Shortfall {
    /// Of the ring that ran for the longest without empties, or with which the load came the
    /// farthest; `None` if none ran.
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        let share = |trial: &Trial| trial.least.map_or(0.0, Progress::share);
        let trials = outcome.findings.trials.values();
        let farthest = trials.max_by(|one, other| share(one).total_cmp(&share(other)));
        let best = outcome.findings.longest_clean().or(farthest)?;
        let progress = best.least?;
        let reached = outcome.part.due_at(progress.taken as f64);
        let span = progress.span.as_secs_f64();
        Some(Self {
            progress,
            reached: reached.unwrap_or(span).min(span),
            late_by: best.late_by(),
            limits: limits(outcome, best, progress),
        })
    }

    pub(super) fn in_words(&self) -> String {
        let Progress { due, taken, span } = self.progress;
        let limits = match self.limits_in_words() {
            none if none.is_empty() => String::new(),
            limits => format!(". {limits}"),
        };
        format!(
            "of {} IDs that were due in {} {} were taken by then, {:.3} %; they are those due in its \
             first {}. 1 ID in 100 was late by {} or more{limits}",
            grouped(due),
            time(span.as_secs_f64()),
            grouped(taken),
            // Never rounded up to all of them.
            (self.progress.share() * 1e5).floor() / 1e3,
            time(self.reached),
            time(self.late_by),
        )
    }

    /// What limits it, and what to do; empty if nothing is known.
    pub(super) fn limits_in_words(&self) -> String {
        let texts: Vec<_> = self.limits.iter().map(|it| it.text.as_str()).collect();
        match texts.is_empty() {
            true => String::new(),
            false => format!("What limits it: {}", texts.join(". And: ")),
        }
    }
}

fn limits(outcome: &Outcome, trial: &Trial, progress: Progress) -> Vec<Limit> {
    let all = [
        nodes(outcome, trial),
        producers(outcome, progress),
        capacity(outcome),
    ];
    let mut limits: Vec<_> = all.into_iter().flatten().collect();
    if !outcome.is_served(trial) {
        let of_threads = [
            takes(outcome),
            driver(outcome),
            cores(outcome),
            processor(outcome, trial),
        ];
        limits.extend(of_threads.into_iter().flatten());
    }
    let ceiling = |limit: &Limit| limit.ids_per_second.unwrap_or(f64::INFINITY);
    limits.sort_by(|one, other| ceiling(one).total_cmp(&ceiling(other)));
    if limits.is_empty() && !outcome.is_served(trial) {
        limits.push(match trial.is_clean() {
            true => together(outcome, progress),
            false => dry(trial),
        });
    }
    limits
}

fn nodes(outcome: &Outcome, trial: &Trial) -> Option<Limit> {
    (trial.total.refused > 0).then(|| Limit {
        kind: LimitKind::Nodes,
        ids_per_second: Some(outcome.budget.sustained),
        text: format!(
            "the lease: {}, and the generator refused {} IDs; give more with --nodes",
            outcome.budget.in_words(),
            short(trial.total.refused as f64)
        ),
    })
}

/// What producers make, against the mean of the run: no ring makes up for that.
fn producers(outcome: &Outcome, progress: Progress) -> Option<Limit> {
    let made = outcome.machine.fill_rate * outcome.producers as f64;
    let mean = progress.due as f64 / progress.span.as_secs_f64().max(1e-9);
    let count = count(outcome.producers, "producer");
    (made < mean).then(|| Limit {
        kind: LimitKind::Producers,
        ids_per_second: Some(made),
        text: format!(
            "{count} of this machine ({} backend) can make {} IDs/s, where {} are asked for; only \
             more --producers on more cores, or more machines, make up for that",
            outcome.backend,
            short(made),
            short(mean)
        ),
    })
}

fn takes(outcome: &Outcome) -> Option<Limit> {
    let of_one = 1.0 / outcome.machine.take_cost.max(1e-12);
    let of_all = outcome.take_rate();
    (of_all < outcome.part.peak()).then(|| Limit {
        kind: LimitKind::Takes,
        ids_per_second: Some(of_all),
        text: format!(
            "a thread takes at most {} IDs/s one by one, and there {} of the {} IDs/s of the peak; \
             more --consumers on more cores, batches or handles take more",
            short(of_one),
            match outcome.consumers {
                1 => "is 1 thread for all".to_owned(),
                threads => format!("are {threads} threads for all"),
            },
            short(outcome.part.peak())
        ),
    })
}

fn driver(outcome: &Outcome) -> Option<Limit> {
    /// Where more than this share is taken by the end the threads were late, and no slower.
    const BEHIND: f64 = 0.95;
    let baseline = &outcome.baseline.as_ref()?.total;
    let rate = baseline.by_end as f64 / baseline.took.as_secs_f64().max(1e-9);
    let fell_behind = (baseline.by_end as f64) < BEHIND * baseline.demanded as f64;
    fell_behind.then(|| Limit {
        kind: LimitKind::Driver,
        ids_per_second: Some(rate),
        text: format!(
            "tune itself: with {} it asks for at most {} IDs/s, even of no ring at all; a higher \
             load can't be tried here",
            count(outcome.consumers, "thread"),
            short(rate)
        ),
    })
}

fn cores(outcome: &Outcome) -> Option<Limit> {
    let threads = outcome.consumers + outcome.producers;
    (threads > outcome.cores).then(|| Limit {
        kind: LimitKind::Cores,
        ids_per_second: None,
        text: format!(
            "{} and {} share {}; fewer threads or more cores",
            count(outcome.consumers, "consumer"),
            count(outcome.producers, "producer"),
            count(outcome.cores, "core")
        ),
    })
}

fn processor(outcome: &Outcome, trial: &Trial) -> Option<Limit> {
    /// Less than this is usual.
    const LEAST: f64 = 0.1;
    let share = trial.away_share(outcome.consumers);
    (share >= LEAST).then(|| Limit {
        kind: LimitKind::Processor,
        ids_per_second: None,
        text: format!(
            "processor time: the threads that take were kept from running for {:.0} % of the time; \
             other work has the cores",
            100.0 * share
        ),
    })
}

/// A burst that outruns the producers for longer than any ring lasts.
fn capacity(outcome: &Outcome) -> Option<Limit> {
    let made = outcome.machine.fill_rate * outcome.producers as f64;
    let is_known = outcome.findings.modelled.is_some();
    (!is_known && made >= outcome.load.mean()).then(|| Limit {
        kind: LimitKind::Capacity,
        ids_per_second: None,
        text:
            "the largest ring there can be holds less than a burst, or the longest wake-up of this \
               machine, takes; share the load among processes"
                .to_owned(),
    })
}

/// Takes that find the ring dry are slow.
fn dry(trial: &Trial) -> Limit {
    Limit {
        kind: LimitKind::Capacity,
        ids_per_second: None,
        text: format!(
            "the rings that ran were too small, even {} ran dry; allow larger ones with --capacity, or \
             give a longer --seconds",
            trial.setting
        ),
    }
}

/// Each could do it alone.
fn together(outcome: &Outcome, progress: Progress) -> Limit {
    let rate = progress.taken as f64 / progress.span.as_secs_f64().max(1e-9);
    Limit {
        kind: LimitKind::Takes,
        ids_per_second: Some(rate),
        text: format!(
            "takes and fills at the same time: {} took {} IDs/s on average from a ring that {} filled; \
             batches or handles take more",
            count(outcome.consumers, "thread"),
            short(rate),
            count(outcome.producers, "producer"),
        ),
    }
}

fn count(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

//! The figures of a running fleet.

use std::time::Duration;

use super::{STEADY, Shape, minutes};

/// Counts of one second.
#[derive(Clone, Copy, Default)]
pub(super) struct Second {
    /// Carried out by the store.
    pub(super) operations: u32,
    /// Sent to a store that is away.
    pub(super) refused: u32,
}

pub(super) struct Figures {
    pub(super) report: Report,
    seconds: Vec<Second>,
    /// By process: when it last had a positive reply.
    success: Vec<Duration>,
    /// By outage: when each process had its first positive reply after it.
    back: [Vec<Duration>; 2],
    /// When a process was without a lease, from and to.
    pub(super) refusals: Vec<(Duration, Duration)>,
}

/// What a fleet came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) shape: Shape,
    pub(super) processes: usize,
    /// When the last process got its first grant.
    pub(super) last_served: Duration,
    pub(super) longest_wait: Duration,
    /// How many requests had an unknown outcome.
    pub(super) unknown: u64,
    /// In the quiet time, as what follows: how many nodes were in force, for how many IDs
    /// a second, and the operations of a second.
    pub(super) nodes_in_force: u64,
    pub(super) ids_in_force: f64,
    pub(super) steady_mean: f64,
    pub(super) steady_peak: u32,
    pub(super) outages: [Outage; 2],
}

/// What one outage of the store came to.
#[derive(Clone, Debug, Default)]
#[expect(dead_code, reason = "some of it is for those who read it")]
pub(super) struct Outage {
    /// Requests of a second while the store was away.
    pub(super) attempts_mean: f64,
    pub(super) attempts_peak: u32,
    /// Processes that came to refuse, and when after the beginning.
    pub(super) refusing: usize,
    pub(super) first_refusal: Option<Duration>,
    pub(super) last_refusal: Option<Duration>,
    /// The most operations of a second after the end.
    pub(super) peak: u32,
    /// Processes that were answered again, and after how long half of them, 99 % and all.
    pub(super) back: usize,
    pub(super) half: Duration,
    pub(super) most: Duration,
    pub(super) all: Duration,
    pub(super) last_revival: Option<Duration>,
}

impl Figures {
    pub(super) fn new(shape: Shape, processes: usize) -> Self {
        Self {
            report: Report {
                shape,
                processes,
                ..Report::default()
            },
            seconds: vec![Second::default(); shape.end.as_secs() as usize + 60],
            success: vec![Duration::ZERO; processes],
            back: [Vec::new(), Vec::new()],
            refusals: Vec::new(),
        }
    }

    pub(super) fn second(&mut self, at: Duration) -> &mut Second {
        &mut self.seconds[at.as_secs() as usize]
    }

    pub(super) fn succeeded(&mut self, at: Duration, process: usize) {
        let before = std::mem::replace(&mut self.success[process], at);
        for ((_, end), back) in self.report.shape.outages.iter().zip(&mut self.back) {
            if (before..at).contains(end) {
                back.push(at - *end);
            }
        }
    }

    pub(super) fn report(self) -> Report {
        let window = |(from, to): (Duration, Duration)| {
            self.seconds[from.as_secs() as usize..to.as_secs() as usize].iter()
        };
        let outages = self.report.shape.outages;
        let outage = |index: usize| {
            let (from, to) = outages[index];
            let mut back = self.back[index].clone();
            back.sort_unstable();
            let rank = |percent: usize| back[(back.len() - 1) * percent / 100];
            let refused = window((from, to)).map(|second| second.refused);
            let after = window((to, to + minutes(1))).map(|second| second.operations);
            let during = from..to + minutes(1);
            let refusals = self.refusals.iter();
            let refusals = refusals.filter(|(since, _)| during.contains(since));
            let since = refusals.clone().map(|(since, _)| *since - from);
            Outage {
                attempts_mean: mean(refused.clone()),
                attempts_peak: refused.max().unwrap_or(0),
                refusing: since.clone().count(),
                first_refusal: since.clone().min(),
                last_refusal: since.max(),
                peak: after.max().unwrap_or(0),
                back: back.len(),
                half: rank(50),
                most: rank(99),
                all: rank(100),
                last_revival: refusals.map(|(_, at)| at.saturating_sub(to)).max(),
            }
        };
        let steady = window(STEADY).map(|second| second.operations);
        Report {
            steady_mean: mean(steady.clone()),
            steady_peak: steady.max().unwrap_or(0),
            outages: [outage(0), outage(1)],
            ..self.report
        }
    }
}

fn mean(counts: impl ExactSizeIterator<Item = u32>) -> f64 {
    let length = counts.len() as f64;
    counts.map(f64::from).sum::<f64>() / length
}

//! What is counted, and the table of it.

use ringflake::lease::protocol::Request;

use super::{MINUTE, SECOND, STEADY, Shape};

/// Counts by the second.
#[derive(Clone, Copy, Default)]
struct Second {
    /// Carried out by the store.
    operations: u32,
    /// Sent to a store that is away.
    refused: u32,
}

/// Everything that is measured while a fleet runs. Times are in microseconds.
pub(super) struct Figures {
    shape: Shape,
    seconds: Vec<Second>,
    /// When the last process got its first grant.
    last_served: u64,
    longest_wait: u64,
    pub(super) unknown: u64,
    /// By process: when it last had a positive reply.
    success: Vec<u64>,
    /// By outage: when each process had its first positive reply after it.
    back: [Vec<u64>; 2],
    /// When a process was without a lease, from and to.
    refusals: Vec<(u64, u64)>,
    /// Nodes in force in the quiet time.
    pub(super) nodes_in_force: u64,
}

impl Figures {
    pub(super) fn new(shape: Shape, processes: usize) -> Self {
        Self {
            shape,
            seconds: vec![Second::default(); (shape.end / SECOND) as usize + 60],
            last_served: 0,
            longest_wait: 0,
            unknown: 0,
            success: vec![0; processes],
            back: [Vec::new(), Vec::new()],
            refusals: Vec::new(),
            nodes_in_force: 0,
        }
    }

    fn second(&mut self, at: u64) -> &mut Second {
        &mut self.seconds[(at / SECOND) as usize]
    }

    pub(super) fn operation(&mut self, done: u64) {
        self.second(done).operations += 1;
    }

    pub(super) fn waited(&mut self, request: &Request, wait: u64) {
        if !matches!(request, Request::Check { .. }) {
            self.longest_wait = self.longest_wait.max(wait);
        }
    }

    pub(super) fn refused(&mut self, at: u64) {
        self.second(at).refused += 1;
    }

    pub(super) fn served_first(&mut self, at: u64) {
        self.last_served = self.last_served.max(at);
    }

    pub(super) fn succeeded(&mut self, at: u64, process: usize) {
        let before = std::mem::replace(&mut self.success[process], at);
        for ((_, end), back) in self.shape.outages.iter().zip(&mut self.back) {
            if (before..at).contains(end) {
                back.push(at - end);
            }
        }
    }

    pub(super) fn was_refusing(&mut self, from: u64, to: u64) {
        self.refusals.push((from, to));
    }

    pub(super) fn report(&self) -> Report {
        let shape = self.shape;
        let window = |(from, to): (u64, u64)| {
            let seconds = &self.seconds[(from / SECOND) as usize..(to / SECOND) as usize];
            seconds.iter()
        };
        let steady = window(STEADY).map(|second| second.operations);
        let outage = |index: usize| {
            let (from, to) = shape.outages[index];
            let attempts = || window((from, to)).map(|second| second.refused);
            let mut back = self.back[index].clone();
            back.sort_unstable();
            let rank = |percent: usize| back[(back.len() - 1) * percent / 100];
            let during = |&&(since, _): &&(u64, u64)| (from..to + MINUTE).contains(&since);
            let refusals = || self.refusals.iter().filter(during);
            Outage {
                attempts_mean: mean(attempts()),
                attempts_peak: attempts().max().unwrap_or(0),
                peak: window((to, to + MINUTE))
                    .map(|second| second.operations)
                    .max()
                    .unwrap_or(0),
                back: back.len(),
                half: rank(50),
                most: rank(99),
                all: rank(100),
                refusing: refusals().count(),
                first_refusal: refusals().map(|(since, _)| since - from).min(),
                last_refusal: refusals().map(|(since, _)| since - from).max(),
                last_revival: refusals().map(|(_, at)| at.saturating_sub(to)).max(),
            }
        };
        Report {
            shape,
            processes: self.success.len(),
            last_served: self.last_served,
            longest_wait: self.longest_wait,
            unknown: self.unknown,
            nodes_in_force: self.nodes_in_force,
            steady_mean: mean(steady.clone()),
            steady_peak: steady.max().unwrap_or(0),
            outages: [outage(0), outage(1)],
        }
    }
}

fn mean(counts: impl ExactSizeIterator<Item = u32>) -> f64 {
    let length = counts.len() as f64;
    counts.map(f64::from).sum::<f64>() / length
}

/// What one outage of the store came to. Times are in microseconds: refusals
/// count from its beginning, the rest from its end.
pub(super) struct Outage {
    pub(super) attempts_mean: f64,
    pub(super) attempts_peak: u32,
    pub(super) peak: u32,
    pub(super) back: usize,
    pub(super) half: u64,
    pub(super) most: u64,
    pub(super) all: u64,
    pub(super) refusing: usize,
    pub(super) first_refusal: Option<u64>,
    pub(super) last_refusal: Option<u64>,
    pub(super) last_revival: Option<u64>,
}

/// One column of the table.
pub(super) struct Report {
    pub(super) shape: Shape,
    pub(super) processes: usize,
    pub(super) last_served: u64,
    pub(super) longest_wait: u64,
    pub(super) unknown: u64,
    pub(super) nodes_in_force: u64,
    pub(super) steady_mean: f64,
    pub(super) steady_peak: u32,
    pub(super) outages: [Outage; 2],
}

impl Report {
    /// IDs a second in the nodes in force.
    pub(super) fn id_space(&self) -> f64 {
        self.nodes_in_force as f64 * crate::scenario::LAYOUT.sequences() as f64
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let seconds = |us: u64| format!("{:.2} s", us as f64 / SECOND as f64);
        let shape = self.shape;
        let mut rows = vec![
            ("processes", thousands(self.processes as u64)),
            ("blocks of each", thousands(shape.blocks.into())),
            ("nodes of a block", thousands(1 << shape.block_bits)),
            ("the store can do, a second", thousands(shape.capacity)),
            ("processes start within", seconds(shape.start)),
            ("the last is served after", seconds(self.last_served)),
            ("longest wait for a reply", seconds(self.longest_wait)),
            (
                "IDs a second in force",
                format!("{:.2} G", self.id_space() / 1e9),
            ),
            (
                "quiet: operations a second",
                format!("{:.1}", self.steady_mean),
            ),
            (
                "quiet: the most in a second",
                thousands(self.steady_peak.into()),
            ),
        ];
        for (outage, (from, to)) in self.outages.iter().zip(self.shape.outages) {
            let time = |us: Option<u64>| us.map_or("-".to_owned(), seconds);
            let title = format!("{} minutes", (to - from) / MINUTE);
            rows.extend([
                ("", String::new()),
                ("the store is away for", title),
                (
                    "  attempts a second",
                    thousands(outage.attempts_mean.round() as u64),
                ),
                (
                    "  the most in a second",
                    thousands(outage.attempts_peak.into()),
                ),
                (
                    "  processes that come to refuse",
                    thousands(outage.refusing as u64),
                ),
                ("  the first after", time(outage.first_refusal)),
                ("  the last after", time(outage.last_refusal)),
                (
                    "back: most operations in a second",
                    thousands(outage.peak.into()),
                ),
                ("  half have renewed after", seconds(outage.half)),
                ("  99 % after", seconds(outage.most)),
                ("  all after", seconds(outage.all)),
                ("  the last serves again after", time(outage.last_revival)),
            ]);
        }
        rows.push(("", String::new()));
        rows.push(("requests with unknown outcome", thousands(self.unknown)));
        rows
    }
}

pub(super) fn print(reports: &[Report]) {
    let columns: Vec<_> = reports.iter().map(Report::rows).collect();
    for row in 0..columns[0].len() {
        print!("{:<36}", columns[0][row].0);
        for column in &columns {
            print!("{:>14}", column[row].1);
        }
        println!();
    }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

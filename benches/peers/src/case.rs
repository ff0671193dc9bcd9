//! A generator's runs, and the table of them.

use crate::Effort;
use crate::peer::{Faults, Peer};

/// A generator with what came of its runs.
pub(crate) struct Case {
    pub(crate) peer: Peer,
    /// On one thread, and on several. None where it has no nodes for so many.
    pub(crate) runs: [Option<Runs>; 2],
}

/// What came of a generator on a number of threads.
pub(crate) struct Runs {
    pub(crate) threads: usize,
    /// Millions of IDs a second, in each round.
    burst: Vec<f64>,
    /// Millions of IDs a second, in each round.
    pub(crate) sustained: Vec<f64>,
    faults: Faults,
}

impl Case {
    pub(crate) fn new(peer: Peer, threads: usize) -> Self {
        let runs = [1, threads].map(|threads| {
            (threads <= peer.most_threads).then(|| Runs {
                threads,
                burst: Vec::new(),
                sustained: Vec::new(),
                faults: Faults::default(),
            })
        });
        Self { peer, runs }
    }

    /// Looks for what is wrong with the IDs.
    pub(crate) fn check(&mut self, effort: Effort) {
        for runs in self.runs.iter_mut().flatten() {
            runs.faults = self.peer.check(runs.threads, effort);
        }
    }

    /// Measures once more.
    pub(crate) fn run(&mut self, effort: Effort) {
        for runs in self.runs.iter_mut().flatten() {
            runs.burst.push(self.peer.burst(runs.threads, effort));
            runs.sustained
                .push(self.peer.sustained(runs.threads, effort));
        }
    }

    /// Whether each ID was what it should be, and none came twice.
    pub(crate) fn is_sound(&self) -> bool {
        let faults = self.faults();
        faults.duplicates + faults.strange == 0
    }

    fn faults(&self) -> Faults {
        let all = self.runs.iter().flatten().map(|runs| runs.faults);
        all.fold(Faults::default(), Faults::and)
    }

    fn print_row(&self) {
        let Faults {
            duplicates,
            strange,
        } = self.faults();
        let mut unique = match duplicates {
            0 => "yes".to_owned(),
            duplicates => format!("**{duplicates} twice**"),
        };
        if strange > 0 {
            unique += &format!(", **{strange} strange**");
        }
        let rates = |rates: fn(&Runs) -> &[f64]| {
            let cells = self.runs.iter().map(|runs| {
                let cell = runs.as_ref().map(|runs| rounded(median(rates(runs))));
                cell.unwrap_or_else(|| "-".to_owned())
            });
            cells.collect::<Vec<_>>().join(" | ")
        };
        println!(
            "| {} | {} | {} | {} | {unique} | {} |",
            self.peer.name,
            self.peer.bits,
            rates(|runs| &runs.burst),
            rates(|runs| &runs.sustained),
            self.peer.cannot,
        );
    }
}

pub(crate) fn print_table(cases: &[Case], threads: usize) {
    println!(
        "| generator | bits | burst, 1 thread | {threads} threads | sustained, 1 thread \
         | {threads} threads | unique | what it can't do |"
    );
    println!("|---|---:|---:|---:|---:|---:|---|---|");
    for case in cases {
        case.print_row();
    }
    println!();
}

/// The middle one of the figures, which must not be none.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Three significant digits or the whole number, whichever is more.
pub(crate) fn rounded(figure: f64) -> String {
    let decimals = match figure {
        0.0..1.0 => 3,
        1.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{figure:.decimals$}")
}

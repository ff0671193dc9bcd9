//! What was measured, as a table or as JSON.

use std::io::{self, Write};

use serde::Serialize;

/// The figures of one workload at one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) name: &'static str,
    /// All that work, producers included.
    pub(super) threads: usize,
    pub(super) median_ids_per_s: u64,
    pub(super) min_ids_per_s: u64,
    pub(super) max_ids_per_s: u64,
    pub(super) rounds: usize,
    /// `None` where no ID is made.
    pub(super) unique: Option<bool>,
}

impl Figures {
    /// The figures of `rates`, one of each round in IDs a second; at least one.
    pub(super) fn new(
        name: &'static str,
        threads: usize,
        mut rates: Vec<f64>,
        unique: Option<bool>,
    ) -> Self {
        rates.sort_unstable_by(f64::total_cmp);
        let last = rates.len().saturating_sub(1);
        let at = |index: usize| rates.get(index).copied().unwrap_or_default();
        let median = (at(last / 2) + at(last.div_ceil(2))) / 2.0;
        Self {
            name,
            threads,
            median_ids_per_s: median.round() as u64,
            min_ids_per_s: at(0).round() as u64,
            max_ids_per_s: at(last).round() as u64,
            rounds: rates.len(),
            unique,
        }
    }
}

/// One object a line.
pub(super) fn print_json(all: &[Figures], out: &mut impl Write) -> io::Result<()> {
    for figures in all {
        serde_json::to_writer(&mut *out, figures)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Columns, with the ratio to `fetch_add` at the same number of threads.
pub(super) fn print_table(all: &[Figures], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<18}  {:>7}  {:>10}  {:>10}  {:>10}  {:>11}  {:<6}",
        "million IDs/s", "threads", "median", "min", "max", "x fetch_add", "unique"
    )?;
    for figures in all {
        let yardstick = all
            .iter()
            .find(|other| other.name == "fetch_add" && other.threads == figures.threads);
        let ratio = yardstick.map_or("-".to_owned(), |yardstick| {
            let ratio = figures.median_ids_per_s as f64 / yardstick.median_ids_per_s as f64;
            format!("{ratio:.2}")
        });
        let unique = match figures.unique {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        };
        let millions = |rate: u64| rate as f64 / 1e6;
        writeln!(
            out,
            "{:<18}  {:>7}  {:>10.1}  {:>10.1}  {:>10.1}  {:>11}  {:<6}",
            figures.name,
            figures.threads,
            millions(figures.median_ids_per_s),
            millions(figures.min_ids_per_s),
            millions(figures.max_ids_per_s),
            ratio,
            unique
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(rates: &[f64]) -> (u64, u64, u64) {
        let figures = Figures::new("x", 1, rates.to_vec(), None);
        assert_eq!(figures.rounds, rates.len());
        (
            figures.min_ids_per_s,
            figures.median_ids_per_s,
            figures.max_ids_per_s,
        )
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(rates(&[7.0]), (7, 7, 7));
        assert_eq!(rates(&[9.0, 1.0, 5.0]), (1, 5, 9));
        assert_eq!(rates(&[9.0, 1.0, 5.0, 4.0]), (1, 5, 9));
        assert_eq!(rates(&[9.0, 1.0]), (1, 5, 9));
    }

    #[test]
    fn the_ratio_is_to_fetch_add_at_the_same_number_of_threads() {
        let all = [
            Figures::new("fetch_add", 1, vec![100e6], Some(true)),
            Figures::new("ring_take", 1, vec![50e6], Some(true)),
            Figures::new("live_take", 2, vec![50e6], Some(false)),
        ];
        let mut out = Vec::new();
        print_table(&all, &mut out).unwrap();
        let lines: Vec<_> = str::from_utf8(&out).unwrap().lines().collect();
        assert!(lines[2].ends_with(" 0.50  yes   "), "{:?}", lines[2]);
        assert!(lines[3].ends_with(" -  NO    "), "{:?}", lines[3]);
    }
}

//! The measurements, as a table or as JSON.

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
    pub(super) backend: String,
}

impl Figures {
    /// The figures of `rates`, one of each round in IDs a second; at least one.
    pub(super) fn new(name: &'static str, threads: usize, mut rates: Vec<f64>) -> Self {
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
            unique: None,
            backend: String::new(),
        }
    }
}

/// Columns, with the ratios to the fewest threads, and to `fetch_add` at the same number.
pub(super) fn print_table(all: &[Figures], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<18}  {:>7}  {:>10}  {:>10}  {:>10}  {:>8}  {:>11}  {:<6}",
        "million IDs/s", "threads", "median", "min", "max", "x fewest", "x fetch_add", "unique"
    )?;
    for figures in all {
        let ratio_to = |other: Option<&Figures>| {
            other.map_or("-".to_owned(), |other| {
                let ratio = figures.median_ids_per_s as f64 / other.median_ids_per_s as f64;
                format!("{ratio:.2}")
            })
        };
        let fewest = all
            .iter()
            .filter(|other| other.name == figures.name)
            .min_by_key(|other| other.threads);
        let yardstick = all
            .iter()
            .find(|other| other.name == "fetch_add" && other.threads == figures.threads);
        let unique = match figures.unique {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        };
        let millions = |rate: u64| rate as f64 / 1e6;
        writeln!(
            out,
            "{:<18}  {:>7}  {:>10.1}  {:>10.1}  {:>10.1}  {:>8}  {:>11}  {:<6}",
            figures.name,
            figures.threads,
            millions(figures.median_ids_per_s),
            millions(figures.min_ids_per_s),
            millions(figures.max_ids_per_s),
            ratio_to(fewest),
            ratio_to(yardstick),
            unique
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(rates: &[f64]) -> [u64; 3] {
        let it = Figures::new("x", 1, rates.to_vec());
        assert_eq!(it.rounds, rates.len());
        [it.min_ids_per_s, it.median_ids_per_s, it.max_ids_per_s]
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(rates(&[7.0]), [7, 7, 7]);
        assert_eq!(rates(&[9.0, 1.0, 5.0]), [1, 5, 9]);
        assert_eq!(rates(&[9.0, 1.0, 5.0, 4.0]), [1, 5, 9]);
        assert_eq!(rates(&[9.0, 1.0]), [1, 5, 9]);
    }

    fn figures(name: &'static str, threads: usize, rate: f64, unique: bool) -> Figures {
        Figures {
            unique: Some(unique),
            ..Figures::new(name, threads, vec![rate])
        }
    }

    #[test]
    fn the_ratios_are_to_the_fewest_threads_and_to_fetch_add_at_as_many() {
        let all = [
            figures("fetch_add", 1, 100e6, true),
            figures("ring_take", 1, 50e6, true),
            figures("ring_take", 4, 75e6, true),
            figures("live_take", 2, 50e6, false),
        ];
        let mut out = Vec::new();
        print_table(&all, &mut out).unwrap();
        let lines: Vec<_> = str::from_utf8(&out).unwrap().lines().collect();
        let ends = |line: usize| {
            let columns: Vec<_> = lines[line].split_whitespace().collect();
            columns[5..].join(" ")
        };
        assert_eq!(ends(2), "1.00 0.50 yes");
        assert_eq!(ends(3), "1.50 - yes");
        assert_eq!(ends(4), "1.00 - NO");
    }
}

//! The figures of a run, as text or as JSON.

use ringflake::Stats;

use super::tally::Tally;
use crate::output::Answer;
use crate::units::{grouped, short};

/// The figures that every run has: what was checked, and how fast.
pub(super) fn begun(tally: &Tally, seconds: f64, is_interrupted: bool) -> Answer {
    let mut answer = Answer::default();
    answer.count("IDs", "ids", tally.ids);
    answer.count("duplicates", "duplicates", tally.duplicates);
    answer.count("outside the leases", "outside_the_leases", tally.outside);
    let rate = tally.ids as f64 / seconds.max(1e-9);
    answer.row("IDs/s", short(rate));
    answer.field("ids_per_s", rate.round());
    answer.time("time", "took_s", seconds);
    // In text a line of its own on stderr says it.
    answer.field("interrupted", is_interrupted);
    answer
}

/// Adds a level of the cache, and its shape.
pub(super) fn add_level(answer: &mut Answer, title: &str, name: &str, level: usize, stats: &Stats) {
    let (slots, of) = (grouped(level as u64), grouped(stats.capacity as u64));
    answer.row(title, format!("{slots} of {of}"));
    answer.field(name, level);
    answer.field("capacity", stats.capacity);
    answer.count("stripes", "stripes", stats.stripes as u64);
}

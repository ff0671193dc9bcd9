//! The cost of a ring: bytes, and the time until it is full.

use std::fs;
use std::time::Instant;

use super::{Effort, built, median};
use crate::common::stock;

/// Prints bytes a slot and time to full for three capacities.
pub(crate) fn print_table(effort: Effort) {
    println!("| slots | bytes a slot | `build` to full, ms |");
    println!("|---:|---:|---:|");
    // Kept, so that no ring gets memory that another has touched before. The
    // first of them pays for what a process needs only once.
    let mut rings = vec![built(stock::filled_once(1))];
    for exponent in [16, 20, 24] {
        if exponent > effort.largest_capacity {
            break;
        }
        let slots = 1_usize << exponent;
        let before = resident_bytes();
        rings.push(built(stock::filled_once(slots)));
        let bytes = resident_bytes().zip(before).map_or_else(
            || "not known here".to_owned(),
            |(after, before)| format!("{:.2}", (after as f64 - before as f64) / slots as f64),
        );
        let millis = median((0..effort.runs).map(|_| {
            let builder = stock::filled_once(slots);
            let start = Instant::now();
            let ids = built(builder);
            let time = start.elapsed();
            assert_eq!(ids.stats().level, slots);
            time.as_secs_f64() * 1e3
        }));
        println!("| {slots} | {bytes} | {millis:.2} |");
    }
    println!();
}

/// Memory of this process that is really there. Linux says; others don't.
fn resident_bytes() -> Option<u64> {
    let report = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = report.lines().find(|line| line.starts_with("Rss:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

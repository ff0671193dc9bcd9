//! Takes at fixed moments, and how long each lasts.
//!
//! Two figures come of each take: its *service* time, from the call to its return, and
//! its *response* time, from the moment it was due to its return.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ringflake::plan::{Load, Rate};
use ringflake::{Id, TakeError};

use super::flags;
use super::open_loop::{Consumed, Histogram, OpenLoop, TakeObserver, histogram};
use super::stock;
use super::unique::Marks;

/// When takes are due.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    /// Threads that take.
    pub(crate) consumers: usize,
    /// Takes a second, by all consumers together.
    pub(crate) load: u32,
    pub(crate) seconds: f64,
}

/// A contestant under a load.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) load: u32,
    pub(crate) service: Histogram,
    pub(crate) response: Histogram,
    ids: Vec<Id>,
}

/// Keeps all IDs.
struct Keeping(Vec<Id>);

impl TakeObserver for Keeping {
    fn taken(&mut self, ids: &[Id]) {
        self.0.extend_from_slice(ids);
    }
}

impl Schedule {
    /// Runs a contestant: `source` makes a consumer's way of taking an ID.
    ///
    /// # Panics
    ///
    /// If a take was refused, or not done in time.
    pub(crate) fn run<T>(self, name: &'static str, source: impl Fn() -> T + Sync) -> Row
    where
        T: FnMut() -> Result<Id, TakeError>,
    {
        let open_loop = OpenLoop {
            load: &Load::steady(Rate::new(self.load.into()).expect("a rate")),
            consumers: self.consumers,
            time: Duration::from_secs_f64(self.seconds),
            stop: &AtomicBool::new(false),
            // One take at a time, however fast they are due.
            groups_per_second: f64::INFINITY,
        };
        let takes = (self.seconds * f64::from(self.load)) as usize / self.consumers + 1;
        // Written to beforehand, so that no page fault falls between takes.
        let observer = || {
            let mut ids = vec![Id::from_u64(u64::MAX); takes];
            ids.clear();
            Keeping(ids)
        };
        let consumed = loop {
            let consumed = open_loop.run(OpenLoop::origin(), &source, observer);
            let consumed = consumed.expect("threads can be started");
            // On a slow machine the threads may start after the end of a short run.
            let is_empty = |it: &Consumed<Keeping>| it.refused == 0 && it.observer.0.is_empty();
            if flags::is_bench() || !consumed.iter().all(is_empty) {
                break consumed;
            }
        };
        let mut row = Row {
            name,
            load: self.load,
            service: histogram(),
            response: histogram(),
            ids: Vec::new(),
        };
        for consumer in consumed {
            assert_eq!(consumer.refused, 0, "{name}: {:?}", consumer.refusal);
            row.service += consumer.service;
            row.response += consumer.latency;
            row.ids.extend(consumer.observer.0);
        }
        row
    }
}

impl Row {
    /// The row, if no ID came twice.
    ///
    /// # Panics
    ///
    /// If one did, or there are none.
    pub(crate) fn checked(mut self) -> Self {
        let cipher = stock::cipher();
        let mut marks = Marks::default();
        assert!(!self.ids.is_empty(), "{}: no IDs", self.name);
        for id in std::mem::take(&mut self.ids) {
            let raw = cipher.decrypt(id.to_u64());
            assert!(marks.mark(raw), "{}: {raw:#x} came twice", self.name);
        }
        self
    }
}

/// Prints the quantiles of both figures of each row.
pub(crate) fn print_tables(rows: &[Row]) {
    println!("The row \"timer alone\" is what the clock costs; it is part of each figure.\n");
    print_table(
        "Service time, ns: from the call to its return",
        rows,
        |row| &row.service,
    );
    print_table(
        "Response time, ns: from the moment the take was due to its return",
        rows,
        |row| &row.response,
    );
}

fn print_table(title: &str, rows: &[Row], figures: fn(&Row) -> &Histogram) {
    println!("{title}\n");
    println!("| takes/s | contestant | p50 | p99 | p99.9 | p99.99 | max |");
    println!("|---:|---|---:|---:|---:|---:|---:|");
    for row in rows {
        let load = row.load / 1_000_000;
        let quantiles = [0.5, 0.99, 0.999, 0.9999, 1.0];
        let cells = quantiles.map(|quantile| figures(row).value_at_quantile(quantile).to_string());
        println!("| {load} M | {} | {} |", row.name, cells.join(" | "));
    }
    println!();
}

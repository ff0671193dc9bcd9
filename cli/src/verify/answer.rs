//! The figures of a run, as text or as JSON.

use std::io::{self, Write};

use ringflake::Stats;
use serde_json::{Map, Value, json};

use super::tally::Tally;
use crate::drive::open_loop::Histogram;
use crate::format::Format;
use crate::load::PERCENTILES;
use crate::units::{grouped, short, time};

/// Named figures, in the order in which they are shown.
#[derive(Debug, Default)]
pub(super) struct Answer {
    rows: Vec<(String, String)>,
    object: Map<String, Value>,
}

impl Answer {
    /// The figures that every run has: what was checked, and how fast.
    pub(super) fn new(tally: &Tally, seconds: f64, is_interrupted: bool) -> Self {
        let mut answer = Self::default();
        answer.count("IDs", "ids", tally.ids);
        answer.count("duplicates", "duplicates", tally.duplicates);
        answer.count("outside the leases", "outside_the_leases", tally.outside);
        let rate = tally.ids as f64 / seconds.max(1e-9);
        answer.add("IDs/s", "ids_per_s", short(rate), json!(rate.round()));
        answer.time("time", "took_s", seconds);
        // In text a line of its own on stderr says it.
        answer
            .object
            .insert("interrupted".to_owned(), is_interrupted.into());
        answer
    }

    fn add(&mut self, title: &str, name: &str, text: String, value: Value) {
        self.rows.push((title.to_owned(), text));
        self.object.insert(name.to_owned(), value);
    }

    pub(super) fn count(&mut self, title: &str, name: &str, count: u64) {
        self.add(title, name, grouped(count), count.into());
    }

    /// A time in seconds.
    pub(super) fn time(&mut self, title: &str, name: &str, seconds: f64) {
        self.add(title, name, time(seconds), seconds.into());
    }

    /// A level of the cache, and its shape.
    pub(super) fn level(&mut self, title: &str, name: &str, level: usize, stats: &Stats) {
        let (slots, of) = (grouped(level as u64), grouped(stats.capacity as u64));
        self.add(title, name, format!("{slots} of {of}"), level.into());
        self.object
            .insert("capacity".to_owned(), stats.capacity.into());
        self.count("stripes", "stripes", stats.stripes as u64);
    }

    pub(super) fn latencies(&mut self, latency: &Histogram) {
        let mut object = Map::new();
        for (name, share) in PERCENTILES {
            let nanos = latency.value_at_quantile(share);
            let text = time(nanos as f64 / 1e9);
            self.rows.push((format!("latency {name}"), text));
            object.insert(name.to_owned(), nanos.into());
        }
        self.object.insert("latency_ns".to_owned(), object.into());
    }

    pub(super) fn print(&self, format: Format) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match format {
            Format::Json => {
                serde_json::to_writer(&mut out, &self.object)?;
                writeln!(out)
            }
            Format::Text => {
                for (title, value) in &self.rows {
                    writeln!(out, "{title:<25}  {value:>18}")?;
                }
                Ok(())
            }
        }
    }
}

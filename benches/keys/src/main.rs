//! What does a primary key cost a B-tree: sorted, encrypted, and as a UUID?
//!
//! Each kind of key fills a table of its own, in SQLite and in PostgreSQL, in transactions
//! of 10,000 rows with 40 characters beside the key. The keys are made before the clock
//! starts, and at the end the table has to hold as many rows as there are keys, which its
//! primary key keeps apart. Rounds go through all kinds, each time from another one on, and
//! medians are given.
//!
//! Usage: `cargo run --release -- [ROWS] [ROUNDS] [POINTS.csv]`, by default 1000000 rows and
//! 4 rounds. The file gets the cost of each transaction, to be plotted.

mod key;
mod postgres;
mod sqlite;

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::time::Duration;

use self::key::{Key, Kind};

/// Rows in a transaction.
const STEP: usize = 10_000;

/// What a table cost.
#[derive(Clone, Debug)]
pub struct Cost {
    /// How long each transaction took.
    pub steps: Vec<Duration>,
    /// Bytes of the tree that the primary key is in.
    pub tree: u64,
    /// Bytes of everything that the table takes.
    pub all: u64,
    /// Bytes that went through the write-ahead log, if the database counts them.
    pub log: Option<u64>,
}

impl Cost {
    fn seconds(&self) -> f64 {
        self.steps.iter().sum::<Duration>().as_secs_f64()
    }
}

/// A table of one kind of key in one database, to be filled.
pub trait Table {
    /// Inserts these rows in one transaction.
    fn insert(&mut self, keys: &[Key]) -> Result<(), Box<dyn Error>>;
    /// Rows, and what they cost apart from time.
    fn measure(&mut self) -> Result<(usize, Cost), Box<dyn Error>>;
}

/// The costs of every kind in one database.
pub struct Costs {
    pub database: &'static str,
    /// One for each round.
    pub kinds: Vec<(Kind, Vec<Cost>)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rows: usize = arguments
        .next()
        .map_or(Ok(1_000_000), |rows| rows.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(4), |rounds| rounds.parse())?;
    let points = arguments.next();

    let all_keys: Vec<(Kind, Vec<Key>)> = Kind::ALL
        .iter()
        .map(|&kind| Ok((kind, kind.make(rows)?)))
        .collect::<Result<_, Box<dyn Error>>>()?;

    let mut databases = vec![Costs::new("SQLite")];
    let server = ringflake_kit::server::postgres::Postgres::start();
    if server.is_some() {
        databases.push(Costs::new("PostgreSQL"));
    }
    for round in 0..rounds {
        // Each kind comes once in each place, since a table may pay for the one before it.
        for index in (0..all_keys.len()).map(|place| (place + round) % all_keys.len()) {
            let (kind, keys) = &all_keys[index];
            let cost = fill(&mut sqlite::Sqlite::create(*kind)?, keys)?;
            databases[0].kinds[index].1.push(cost);
            if let Some(server) = &server {
                let cost = fill(&mut postgres::Postgres::create(server, *kind)?, keys)?;
                databases[1].kinds[index].1.push(cost);
            }
        }
    }

    for costs in &databases {
        println!(
            "{}, {rows} rows, medians of {rounds} rounds",
            costs.database
        );
        println!("| key | insert, s | x sorted | key's tree, MiB | all, MiB | log, MiB |");
        println!("|---|---:|---:|---:|---:|---:|");
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let sorted = costs.median(0, Cost::seconds);
        for (index, (kind, _)) in costs.kinds.iter().enumerate() {
            let seconds = costs.median(index, Cost::seconds);
            let log = costs.median(index, |cost| cost.log.map_or(f64::NAN, mib));
            println!(
                "| {} | {seconds:.1} | {:.2} | {:.1} | {:.1} | {} |",
                kind.name(),
                seconds / sorted,
                costs.median(index, |cost| mib(cost.tree)),
                costs.median(index, |cost| mib(cost.all)),
                if log.is_nan() {
                    "-".into()
                } else {
                    format!("{log:.0}")
                },
            );
        }
        println!();
    }
    if let Some(file) = points {
        write_points(File::create(file)?, &databases)?;
    }
    Ok(())
}

/// How long an insert took against the rows that were there.
fn write_points(mut file: File, databases: &[Costs]) -> Result<(), Box<dyn Error>> {
    writeln!(file, "database,key,rows,us a row")?;
    for costs in databases {
        for (kind, rounds) in &costs.kinds {
            let (database, key) = (costs.database, kind.name());
            for step in 0..rounds.first().map_or(0, |cost| cost.steps.len()) {
                let rows = (step + 1) * STEP;
                let seconds = median(rounds.iter().map(|cost| cost.steps[step].as_secs_f64()));
                writeln!(
                    file,
                    "{database},\"{key}\",{rows},{}",
                    seconds * 1e6 / STEP as f64
                )?;
            }
        }
    }
    Ok(())
}

impl Costs {
    fn new(database: &'static str) -> Self {
        let kinds = Kind::ALL.iter().map(|&kind| (kind, Vec::new())).collect();
        Self { database, kinds }
    }

    fn median(&self, kind: usize, figure: impl Fn(&Cost) -> f64) -> f64 {
        median(self.kinds[kind].1.iter().map(figure))
    }
}

/// The mean of the two in the middle, or the one.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => f64::NAN,
        count => f64::midpoint(figures[(count - 1) / 2], figures[count / 2]),
    }
}

fn fill(table: &mut impl Table, keys: &[Key]) -> Result<Cost, Box<dyn Error>> {
    let mut steps = Vec::new();
    for step in keys.chunks(STEP) {
        let started = std::time::Instant::now();
        table.insert(step)?;
        steps.push(started.elapsed());
    }
    let (rows, cost) = table.measure()?;
    if rows != keys.len() {
        return Err(format!("{rows} rows of {}", keys.len()).into());
    }
    Ok(Cost { steps, ..cost })
}

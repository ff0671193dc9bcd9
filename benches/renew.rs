//! How many renewals a second does a PostgreSQL confirm: to one thread and to forty, and
//! to one that asks for several in a call?
//!
//! ```sh
//! cargo bench --features postgres --bench renew [-- --seconds S --rounds N]
//! ```
//!
//! The server is one of the benchmark's own, with its data under the directory for
//! temporary files, which should be a disk. Each thread has a connection and grants of its own,
//! whose ends it moves again and again by one tick. The cases take turns, and the tables are
//! vacuumed before each. A line shows medians, among them that of the ratios of the rounds.
//!
//! Each answer is compared with the end that was asked for, and after the last round
//! the server's marks and its ledger with the answers; no two grants share a block.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::Layout;
use ringflake::lease::{
    Acquire, Fingerprint, Grant, History, Init, LeaseStore, Namespace, OpenOptions, Renew, open,
};

use self::flags::value_of;
use ringflake_kit::server::{Postgres, Session, TestServer as _};
use ringflake_kit::unix_ms as now;

#[path = "common/flags.rs"]
mod flags;

/// Threads, and renewals of each in a call. The first is one by one, and the last has as many
/// as a commit has.
const CASES: [(usize, usize); 4] = [(1, 1), (40, 1), (1, 16), (1, 60)];

/// As many as the largest case renews.
const GRANTS: u32 = 60;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let (seconds, rounds) = if flags::is_bench() {
        (5.0, 5)
    } else {
        (0.05, 1)
    };
    let seconds = value_of("--seconds").map_or(Ok(seconds), |given| given.parse())?;
    let rounds = value_of("--rounds").map_or(Ok(rounds), |given| given.parse())?;
    let time = Duration::from_secs_f64(seconds);
    let Some(server) = Postgres::start() else {
        return Ok(());
    };
    let admin = server.admin();
    let space = space()?;
    let mut store = open(&server.url(), &OpenOptions::new())?;
    store.init(&space, &Init::new(History::New, now()))?;
    let mut grants = store.acquire(&space, &Acquire::new(GRANTS, 10, now()))?;
    let blocks: BTreeSet<_> = grants.iter().map(|grant| grant.block).collect();
    assert_eq!(blocks.len(), GRANTS as usize, "two grants of one block");

    // Calls a second.
    let mut rates = CASES.map(|_| Vec::new());
    for round in 0..rounds {
        for index in 0..CASES.len() {
            let which = (round + index) % CASES.len();
            admin.execute("VACUUM ANALYZE");
            admin.execute("CHECKPOINT");
            rates[which].push(run(&server, &space, &mut grants, CASES[which], time)?);
        }
    }
    println!("| threads | renewals a call | calls/s | renewals/s | x one by one |");
    println!("|---:|---:|---:|---:|---:|");
    for ((threads, size), calls) in CASES.into_iter().zip(&rates) {
        let ratios = calls.iter().zip(&rates[0]).map(|(calls, one)| calls / one);
        let (calls, ratio) = (median(calls.iter().copied()), median(ratios));
        let renewals = calls * size as f64;
        let ratio = ratio * size as f64;
        println!("| {threads} | {size} | {calls:.0} | {renewals:.0} | {ratio:.1} |");
    }
    verify(&mut *store, &admin, &space, &grants)?;
    println!("\nEvery renewal moved its end, and the server has each where it was moved to.");
    Ok(())
}

/// Many blocks, and ticks of which a horizon holds more than are used up here.
fn space() -> Outcome<Namespace> {
    let layout = Layout::builder()
        .bits(41, 10, 12)
        .tick(Duration::from_millis(1))
        .epoch_unix_ms(1_700_000_000_000)
        .build()?;
    Ok(Namespace::new("renewed", &layout, Fingerprint::PLAIN)?.with_block_bits(2)?)
}

/// Renews in so many threads, and gives the calls a second of all of them.
fn run(
    server: &Postgres,
    space: &Namespace,
    grants: &mut [Grant],
    (threads, size): (usize, usize),
    time: Duration,
) -> Outcome<f64> {
    let start = Barrier::new(threads);
    let work = |grants: &mut [Grant]| -> Outcome<f64> {
        let options = OpenOptions::new().timeout(Duration::from_secs(30));
        let connected = open(&server.url(), &options);
        // All wait here, also when one can't go on.
        start.wait();
        let mut store = connected?;
        let (began, mut calls) = (Instant::now(), 0_u32);
        while began.elapsed() < time {
            renew(&mut *store, space, grants)?;
            calls += 1;
        }
        Ok(f64::from(calls) / began.elapsed().as_secs_f64())
    };
    let rates: Vec<Outcome<f64>> = thread::scope(|scope| {
        let work = &work;
        let parts = grants.chunks_exact_mut(size).take(threads);
        let workers: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let workers = workers.into_iter();
        workers
            .map(|worker| worker.join().expect("a worker panicked"))
            .collect()
    });
    rates.into_iter().sum()
}

/// Moves each end by one tick, in one call.
fn renew(store: &mut dyn LeaseStore, space: &Namespace, grants: &mut [Grant]) -> Outcome<()> {
    let longer = |grant: &Grant| Renew::new(grant, grant.ticks.end + 1, now());
    let wanted: Vec<_> = grants.iter().map(longer).collect();
    let answers = match &*wanted {
        [alone] => vec![store.renew(space, alone)],
        several => store.renew_all(&several.iter().map(|it| (space, it)).collect::<Vec<_>>()),
    };
    assert_eq!(answers.len(), wanted.len());
    for ((grant, wanted), answer) in grants.iter_mut().zip(&wanted).zip(answers) {
        let end = answer?;
        assert_eq!(end, wanted.new_end, "{grant}: moved to another end");
        grant.ticks.end = end;
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Compares the server's marks and intervals with what was answered.
fn verify(
    store: &mut dyn LeaseStore,
    admin: &Session,
    space: &Namespace,
    grants: &[Grant],
) -> Outcome<()> {
    let known = store.list(space)?.blocks;
    assert_eq!(known.len(), grants.len());
    for grant in grants {
        let found = known.iter().find(|known| known.block == grant.block);
        assert_eq!(found.map(|known| known.hwm_end), Some(grant.ticks.end));
        let block = grant.block.index();
        let noted = admin.value(&format!(
            "SELECT ticks FROM ringflake_ledger WHERE block = {block}"
        ));
        assert_eq!(
            noted,
            format!("[{},{})", grant.ticks.start, grant.ticks.end)
        );
    }
    Ok(())
}

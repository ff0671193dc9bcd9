//! Renewals one by one against several in one call, on one connection.

use std::time::{Duration, Instant};

use ringflake::lease::{Grant, LeaseStore, Namespace, OpenOptions, Renew, open};

use crate::{Outcome, median, now};
use ringflake_kit::server::{Postgres, Reachable as _, Session};

/// How many in one call. One is a call of `renew`, and the last as many as a commit has.
pub(crate) const SIZES: [usize; 3] = [1, 16, 60];

/// What one size did in one round.
#[derive(Clone, Copy)]
struct Sample {
    per_second: f64,
    calls_per_second: f64,
}

/// Measures the sizes in turns, and prints a line for each.
pub(crate) fn compare(
    server: &Postgres,
    admin: &Session,
    space: &Namespace,
    grants: &mut [Grant],
    rounds: usize,
    time: Duration,
) -> Outcome<()> {
    let options = OpenOptions::new().timeout(Duration::from_secs(30));
    let mut store = open(&server.url(), &options)?;
    let mut samples = SIZES.map(|_| Vec::new());
    for round in 0..rounds {
        for index in 0..SIZES.len() {
            let which = (round + index) % SIZES.len();
            admin.execute("VACUUM ANALYZE");
            admin.execute("CHECKPOINT");
            samples[which].push(run(&mut *store, space, grants, SIZES[which], time)?);
        }
    }
    println!("\n| renewals a call | calls/s | renewals/s | x one by one |");
    println!("|---:|---:|---:|---:|");
    let alone = samples[0].clone();
    for (size, samples) in SIZES.iter().zip(samples) {
        let calls = median(samples.iter().map(|sample| sample.calls_per_second));
        let renewals = median(samples.iter().map(|sample| sample.per_second));
        let both = samples.iter().zip(&alone);
        let ratio = median(both.map(|(sample, alone)| sample.per_second / alone.per_second));
        println!("| {size} | {calls:.0} | {renewals:.0} | {ratio:.1} |");
    }
    Ok(())
}

/// Renews so many grants a call, one group after the other.
fn run(
    store: &mut dyn LeaseStore,
    space: &Namespace,
    grants: &mut [Grant],
    size: usize,
    time: Duration,
) -> Outcome<Sample> {
    let (began, mut calls, mut done) = (Instant::now(), 0_u64, 0_u64);
    'time: loop {
        for group in grants.chunks_exact_mut(size) {
            renew(store, space, group)?;
            calls += 1;
            done += size as u64;
            if began.elapsed() >= time {
                break 'time;
            }
        }
    }
    let took = began.elapsed().as_secs_f64();
    Ok(Sample {
        per_second: done as f64 / took,
        calls_per_second: calls as f64 / took,
    })
}

/// Moves each end by one tick.
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

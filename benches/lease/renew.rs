//! How many renewals a second does a PostgreSQL confirm: to one thread and to forty, and
//! to one that asks for several in a call?
//!
//! ```sh
//! cargo bench --features postgres --bench renew [-- --seconds S --rounds N]
//! ```
//!
//! The server is one of the benchmark's own, with its data under the directory for
//! temporary files, which should be a disk. Each thread has a connection and a grant,
//! whose end it moves again and again by one tick.
//!
//! In turns with the store runs `bare.rs`: a single update of the same row, without the record,
//! the clock, the incarnation or the settings. Both move the same grants
//! of one namespace, the order changes from round to round, and the tables are vacuumed
//! before each turn. A line shows medians, among them that of the ratios of the rounds.
//!
//! The second table is of one connection, which renews one grant after the other or
//! `batches::SIZES` of them a call, in turns, too.
//!
//! Each answer is compared with the end that was asked for, and after the last round
//! the server's marks and its ledger with the answers; no two grants share a block.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{
    Acquire, Fingerprint, Grant, History, Init, LeaseStore, Namespace, OpenOptions, Renew, open,
};
use ringflake::{Clock, Layout, SystemClock};

use self::bare::Bare;
use self::batches::SIZES;
use self::flags::value_of;
use ringflake_kit::server::{Postgres, Reachable as _, Session};

mod bare;
mod batches;
#[path = "../common/flags.rs"]
mod flags;

const THREADS: [usize; 2] = [1, 40];

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Something that renews.
trait Renewer {
    /// Moves the grant's end by one tick.
    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Outcome<u64>;
}

impl Renewer for Box<dyn LeaseStore> {
    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Outcome<u64> {
        Ok((**self).renew(space, renew)?)
    }
}

/// Opens a connection for a thread.
type Connect = fn(&Postgres) -> Outcome<Box<dyn Renewer>>;

const CONTESTANTS: [Connect; 2] = [
    |server| Ok(Box::new(Bare::connect(&server.url())?)),
    |server| {
        let options = OpenOptions::new().timeout(Duration::from_secs(30));
        Ok(Box::new(open(&server.url(), &options)?))
    },
];

/// What one contestant did in one round.
#[derive(Clone, Copy)]
struct Sample {
    per_second: f64,
    renewals: u64,
    multixacts: u64,
}

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
    let most = THREADS[THREADS.len() - 1].max(SIZES[SIZES.len() - 1]);
    let mut grants = store.acquire(&space, &Acquire::new(most as u32, 10, now()))?;
    let blocks: BTreeSet<_> = grants.iter().map(|grant| grant.block).collect();
    assert_eq!(blocks.len(), most, "two grants of one block");

    println!("| threads | bare, /s | now, /s | now / bare | multixacts, bare | now |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for threads in THREADS {
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            for which in [round % 2, 1 - round % 2] {
                let grants = &mut grants[..threads];
                let sample = run(&server, &admin, &space, grants, CONTESTANTS[which], time)?;
                samples[which].push(sample);
            }
        }
        print_line(threads, &samples);
    }
    batches::compare(&server, &admin, &space, &mut grants, rounds, time)?;
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

fn now() -> u64 {
    SystemClock.unix_ms()
}

/// One sample: each grant is renewed by a thread of its own.
fn run(
    server: &Postgres,
    admin: &Session,
    space: &Namespace,
    grants: &mut [Grant],
    connect: Connect,
    time: Duration,
) -> Outcome<Sample> {
    admin.execute("VACUUM ANALYZE");
    let before = next_multixact(admin);
    let start = Barrier::new(grants.len());
    let outcomes: Vec<Outcome<(u64, Duration)>> = thread::scope(|scope| {
        let start = &start;
        let work = |grant: &mut Grant| {
            let connected = connect(server);
            // All wait here, also when one can't go on.
            start.wait();
            renew_for(&mut *connected?, space, grant, time)
        };
        let workers: Vec<_> = grants
            .iter_mut()
            .map(|grant| scope.spawn(move || work(grant)))
            .collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.map(|ended| ended.expect("no panic")).collect()
    });
    let (mut renewals, mut longest) = (0, Duration::ZERO);
    for outcome in outcomes {
        let (done, took) = outcome?;
        renewals += done;
        longest = longest.max(took);
    }
    Ok(Sample {
        per_second: renewals as f64 / longest.as_secs_f64(),
        renewals,
        multixacts: next_multixact(admin) - before,
    })
}

fn renew_for(
    renewer: &mut dyn Renewer,
    space: &Namespace,
    grant: &mut Grant,
    time: Duration,
) -> Outcome<(u64, Duration)> {
    let (began, mut done) = (Instant::now(), 0);
    while began.elapsed() < time {
        let wanted = grant.ticks.end + 1;
        let end = renewer.renew(space, &Renew::new(grant, wanted, now()))?;
        assert_eq!(end, wanted, "{grant}: moved to another end than asked for");
        grant.ticks.end = end;
        done += 1;
    }
    Ok((done, began.elapsed()))
}

fn next_multixact(admin: &Session) -> u64 {
    admin.execute("CHECKPOINT");
    let next = admin.value("SELECT next_multixact_id FROM pg_control_checkpoint()");
    next.parse().expect("a number")
}

fn print_line(threads: usize, [bare, store]: &[Vec<Sample>; 2]) {
    let rates = |samples: &[Sample]| median(samples.iter().map(|sample| sample.per_second));
    let both = bare.iter().zip(store);
    let ratio = median(both.map(|(bare, store)| store.per_second / bare.per_second));
    let multixacts = |samples: &[Sample]| -> String {
        let made: u64 = samples.iter().map(|sample| sample.multixacts).sum();
        let of: u64 = samples.iter().map(|sample| sample.renewals).sum();
        format!("{made} of {of}")
    };
    println!(
        "| {threads} | {:.0} | {:.0} | {ratio:.2} | {} | {} |",
        rates(bare),
        rates(store),
        multixacts(bare),
        multixacts(store),
    );
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

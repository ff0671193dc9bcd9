//! The matrix, and where each of its processes begins.

mod cells;
#[path = "../common/child.rs"]
#[allow(dead_code, reason = "the checks of other tests are not needed here")]
mod child;
#[path = "../common/clock.rs"]
#[allow(dead_code, reason = "nothing here stands still")]
pub(crate) mod clock;
mod controls;
mod crew;
#[path = "../common/etcd.rs"]
#[allow(dead_code, reason = "a part of it is needed here")]
mod etcd;
#[path = "../common/eventually.rs"]
pub(crate) mod eventually;
mod ground;
mod ledger;
mod limits;
#[path = "../common/mariadb.rs"]
#[allow(dead_code, reason = "a part of it is needed here")]
mod mariadb;
#[path = "../common/postgres.rs"]
#[allow(dead_code, reason = "a part of it is needed here")]
mod postgres;
#[path = "../common/proxy.rs"]
#[allow(dead_code, reason = "a part of it is needed here")]
mod proxy;
#[path = "../common/redis.rs"]
#[allow(dead_code, reason = "a part of it is needed here")]
mod redis;
mod report;
#[path = "../common/server.rs"]
#[allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "as in the stores' tests"
)]
pub(crate) mod server;
mod ttl;
mod wire;
mod witness;
mod worker;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};

use self::cells::Cell;
use self::ground::Kind;
use self::report::Row;

pub(super) fn main() -> ExitCode {
    if let Some(task) = wire::task() {
        worker::run(&task);
    }
    let mut arguments = Arguments::from_args();
    let scale = Scale::of_environment();
    if scale.long {
        // Figures of one store are not to be another's noise.
        arguments.test_threads = Some(1);
    }
    let rows: &'static Mutex<Vec<Row>> = Box::leak(Box::default());
    let mut trials: Vec<_> = Kind::ALL
        .into_iter()
        .map(|kind| {
            Trial::test(kind.name(), move || {
                run(kind, scale, |row| lock(rows).push(row))
            })
        })
        .collect();
    trials.push(Trial::test("controls", controls::run));
    let conclusion = libtest_mimic::run(&arguments, trials);
    report::write(&lock(rows), scale);
    conclusion.exit_code()
}

/// Runs the matrix of one store, on servers of its own.
fn run(kind: Kind, scale: Scale, mut done: impl FnMut(Row)) -> Result<(), Failed> {
    let Some(mut ground) = kind.prepare() else {
        // The reason is printed.
        return Ok(());
    };
    for cell in cells::of(kind) {
        if wanted(&cell) {
            eprintln!("faults: {}, {}", kind.name(), cell.name);
            let row = (cell.run)(&mut *ground, scale)
                .map_err(|why| Failed::from(format!("{}, {}: {why}", kind.name(), cell.name)))?;
            row.verdict()?;
            done(row);
        }
    }
    Ok(())
}

fn wanted(cell: &Cell) -> bool {
    std::env::var("RINGFLAKE_FAULT_CELLS").map_or(true, |part| cell.name.contains(&part))
}

fn lock(rows: &Mutex<Vec<Row>>) -> std::sync::MutexGuard<'_, Vec<Row>> {
    rows.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How much of each fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) long: bool,
}

impl Scale {
    fn of_environment() -> Self {
        let long = std::env::var("RINGFLAKE_FAULTS").is_ok_and(|value| value == "long");
        Self { long }
    }

    /// The one in a run of minutes, the other in a long one.
    pub(crate) fn pick<T>(self, short: T, long: T) -> T {
        if self.long { long } else { short }
    }
}

/// Something that did not come out as it must.
pub(crate) type Outcome<T> = Result<T, String>;

/// What all cells are made for: ticks of 100 ms, blocks of 4 nodes, 64 IDs a node
/// and tick, and so 2,560 IDs a second and block.
pub(crate) mod space {
    use std::time::Duration;

    use ringflake::lease::{Fingerprint, Namespace, StoreLimits};
    use ringflake::{Layout, Secret};

    pub(crate) const TICK: Duration = Duration::from_millis(100);
    pub(crate) const BLOCK_BITS: u32 = 2;
    /// How long a worker serves without its store.
    pub(crate) const COVER: Duration = Duration::from_secs(3);
    pub(crate) const HORIZON: Duration = Duration::from_secs(8);
    pub(crate) const FAILOVER: Duration = Duration::from_secs(3);
    pub(crate) const SKEW: Duration = Duration::from_secs(1);
    /// A lost history lets grants begin so far ahead of the clock.
    pub(crate) const BORROW: Duration = Duration::from_secs(15);
    /// How long an operation of the store may take.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

    /// 2^node_bits / 4 blocks.
    pub(crate) fn layout(node_bits: u32) -> Layout {
        let layout = Layout::builder().bits(44, node_bits, 6);
        layout.tick(TICK).build().unwrap()
    }

    pub(crate) fn secret() -> Secret {
        Secret::from_bytes(*b"sixteen secrets!")
    }

    pub(crate) fn namespace(name: &str, node_bits: u32) -> Namespace {
        let fingerprint = Fingerprint::of(&secret());
        Namespace::new(name, &layout(node_bits), fingerprint)
            .and_then(|space| space.with_block_bits(BLOCK_BITS))
            .unwrap()
    }

    pub(crate) fn limits() -> StoreLimits {
        StoreLimits::default()
            .with_horizon(HORIZON)
            .with_failover(FAILOVER)
            .with_skew(SKEW)
    }
}

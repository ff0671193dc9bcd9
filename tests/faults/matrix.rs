//! The matrix, and where each of its processes begins.

mod case;
mod controls;
mod grant_log;
mod report;
mod scenarios;
mod target;
mod ttl;
mod wire;
mod witness;
mod worker;
mod worker_pool;

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use ringflake::lease::StoreError;

use self::scenarios::Scenario;
use self::target::Kind;

pub(super) fn main() -> ExitCode {
    if let Some(task) = wire::task() {
        worker::run(&task);
    }
    let mut arguments = Arguments::from_args();
    let scale = Scale::of_environment();
    let threads = match scale {
        // Scenarios mostly wait.
        Scale::Quick => 2 * Kind::ALL.len(),
        Scale::Whole => Kind::ALL.len() + 1,
        // Figures of one store are not to be another's noise.
        Scale::Long => 1,
    };
    arguments.test_threads.get_or_insert(threads);
    let trial = |name: String, kind: Kind, only: Option<&'static str>| {
        Trial::test(name, move || run(kind, only, scale))
    };
    let mut trials: Vec<Trial> = match scale {
        // Each on a server of its own, and so beside all others.
        Scale::Quick => scenarios::QUICK
            .iter()
            .map(|&(name, kind)| trial(format!("{}: {name}", kind.name()), kind, Some(name)))
            .collect(),
        Scale::Whole | Scale::Long => Kind::ALL
            .map(|kind| trial(kind.name().to_owned(), kind, None))
            .into(),
    };
    trials.extend(controls::trials());
    let conclusion = libtest_mimic::run(&arguments, trials);
    report::write();
    conclusion.exit_code()
}

/// Runs the scenarios of one store, or `only` one of them, on servers of their own. Each
/// is on record before it is judged, and those that fail hold up no other.
fn run(kind: Kind, only: Option<&str>, scale: Scale) -> Result<(), Failed> {
    let is_meant = |scenario: &Scenario| only.is_none_or(|name| scenario.name == name);
    let mut target = None;
    let mut failed = Vec::new();
    for scenario in scenarios::to_run(kind, scale).filter(is_meant) {
        if target.is_none() {
            target = kind.prepare();
        }
        let Some(at) = &mut target else {
            // The reason is printed.
            break;
        };
        let begun = Instant::now();
        let row = case::try_out(kind, &mut **at, &scenario, scale);
        let name = format!("{}, {}", kind.name(), scenario.name);
        eprintln!("faults: {name}: {:.1?}", begun.elapsed());
        if let Err(why) = &row.verdict {
            let failure = format!("{name}: {why}");
            eprintln!("faults: FAILED {failure}");
            failed.push(failure);
            // The next scenario must not inherit its leftovers.
            target = None;
        }
        report::enter(row);
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(failed.join("\n").into()),
    }
}

/// How much of the matrix, and of each fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Each fault on one store, and each store with some: a plain run, of seconds.
    Quick,
    /// All faults on all stores, each for seconds.
    Whole,
    /// The same for the report that is kept: each for a minute or more, and what is rare
    /// besides.
    Long,
}

impl Scale {
    fn of_environment() -> Self {
        match std::env::var("RINGFLAKE_FAULTS").as_deref() {
            Ok("long") => Self::Long,
            _ => ringflake_kit::short_or_long(Self::Quick, Self::Whole),
        }
    }

    /// The one in a run of minutes at most, the other in the long one.
    pub(crate) fn pick<T>(self, short: T, long: T) -> T {
        if self == Self::Long { long } else { short }
    }
}

/// Something that did not come out as it must.
pub(crate) type Outcome<T> = Result<T, String>;

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Asks again after a refusal for the clocks: on a busy machine more than [`space::SKEW`]
/// can pass between the client's look at its clock and the store's.
pub(crate) fn in_time<T>(mut ask: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match ask() {
            Err(StoreError::ClockSkew { .. }) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(10));
            }
            answer => return answer,
        }
    }
}

/// The space of all scenarios: ticks of 100 ms, blocks of 4 nodes, 64 IDs a node and tick,
/// and so 2,560 IDs a second and block.
pub(crate) mod space {
    use std::time::Duration;

    use ringflake::lease::{Fingerprint, Namespace, StoreLimits};
    use ringflake::{Layout, Secret};

    pub(crate) const TICK: Duration = Duration::from_millis(100);
    pub(crate) const BLOCK_BITS: u32 = 2;
    /// How long a worker serves without its store.
    pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(3);
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

    /// Each namespace has its own.
    pub(crate) fn secret(name: &str) -> Secret {
        let digest = hmac_sha256::Hash::hash(name.as_bytes());
        let (first, _) = digest.split_at(16);
        Secret::from_bytes(first.try_into().unwrap())
    }

    pub(crate) fn namespace(name: &str, node_bits: u32) -> Namespace {
        let fingerprint = Fingerprint::of(&secret(name));
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

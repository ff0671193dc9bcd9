//! What the tests of several stores begin with.

use std::error::Error;
use std::fmt;
use std::net::{TcpListener, TcpStream};
use std::ops::Deref;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ringflake::Layout;
use ringflake::lease::{
    Acquire, Block, Epoch, Fence, Fingerprint, Floor, Grant, History, Init, LeaseStore, Namespace,
    Renew, StoreError, StoreLimits,
};
pub(crate) use ringflake_kit::unix_ms as now;
use ringflake_kit::{eventually_within, short_or_long};

/// A test of each of these names, which are those of functions of these modules, on a
/// server that it has to itself.
macro_rules! tests_on {
    ($server:ty; $($module:ident: $($test:ident)*;)*) => {
        $($(
            #[test]
            fn $test() {
                let mut server = started!(ringflake_kit::server::Lent::<$server>::start());
                crate::$module::$test(&mut *server);
            }
        )*)*
    };
}
pub(crate) use tests_on;

pub(crate) const HORIZON: u64 = 900;
pub(crate) const FAILOVER: u64 = 120;
/// A busy machine can take so long between the client's look at its clock and the store's.
const SKEW: u64 = 30;

/// A namespace of 2^17 / 2^`block_bits` blocks, with ticks of a second.
pub(crate) fn sized(name: &str, block_bits: u32) -> Namespace {
    space(name).with_block_bits(block_bits).unwrap()
}

/// The same of 4,096 blocks.
pub(crate) fn space(name: &str) -> Namespace {
    Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
}

pub(crate) fn limits() -> StoreLimits {
    StoreLimits::default()
        .with_horizon(Duration::from_secs(HORIZON))
        .with_failover(Duration::from_secs(FAILOVER))
        .with_skew(Duration::from_secs(SKEW))
}

pub(crate) fn begin() -> Init {
    Init::new(History::New, now()).with_limits(limits())
}

pub(crate) fn init(store: &mut dyn LeaseStore, space: &Namespace) {
    store.init(space, &begin()).unwrap();
}

/// A namespace of [`sized`], on record.
pub(crate) fn made(store: &mut dyn LeaseStore, name: &str, block_bits: u32) -> Namespace {
    let space = sized(name, block_bits);
    init(store, &space);
    space
}

pub(crate) fn tick(space: &Namespace) -> u64 {
    space.layout().tick_at(now()).unwrap()
}

pub(crate) fn ask(blocks: u32, length: u64) -> Acquire {
    Acquire::new(blocks, length, now())
}

pub(crate) fn acquire(store: &mut dyn LeaseStore, space: &Namespace) -> Result<Grant, StoreError> {
    let mut grants = store.acquire(space, &ask(1, 60))?;
    assert_eq!(grants.len(), 1);
    Ok(grants.remove(0))
}

/// A process that starts gets one within its default wait; a machine that is busy with other
/// tests may take longer.
#[track_caller]
pub(crate) fn acquire_at_a_start(store: &mut dyn LeaseStore, space: &Namespace) {
    let patience = Duration::from_secs(short_or_long(60, 10));
    eventually_within(patience, "a lease", || match acquire(store, space) {
        Ok(_) => true,
        Err(StoreError::Unavailable { .. } | StoreError::Ambiguous { .. }) => false,
        Err(other) => panic!("{}", all_of(&other)),
    });
}

pub(crate) fn several(
    store: &mut dyn LeaseStore,
    space: &Namespace,
    blocks: u32,
    length: u64,
) -> Vec<Grant> {
    let grants = store.acquire(space, &ask(blocks, length)).unwrap();
    assert_eq!(grants.len(), blocks as usize);
    grants
}

pub(crate) fn take(store: &mut dyn LeaseStore, space: &Namespace, length: u64) -> Grant {
    several(store, space, 1, length).remove(0)
}

pub(crate) fn longer(grant: &Grant) -> Renew {
    Renew::new(grant, grant.ticks.end + 1, now())
}

pub(crate) fn renew(
    store: &mut dyn LeaseStore,
    space: &Namespace,
    grant: &Grant,
) -> Result<u64, StoreError> {
    store.renew(space, &longer(grant))
}

pub(crate) fn mark(store: &mut dyn LeaseStore, space: &Namespace, block: Block) -> Option<u64> {
    let blocks = store.list(space).unwrap().blocks;
    let found = blocks.iter().find(|known| known.block == block);
    found.map(|known| known.hwm_end)
}

/// What every method but `init` answers.
pub(crate) fn answers(
    store: &mut dyn LeaseStore,
    space: &Namespace,
) -> [Result<(), StoreError>; 8] {
    let grant = Grant::new(Block::new(0), Epoch::FIRST, 0..1);
    [
        acquire(store, space).map(drop),
        renew(store, space, &grant).map(drop),
        store.release(space, grant.block, grant.epoch),
        store.list(space).map(drop),
        store.raise_floor(space, Floor::Tick(1), now()).map(drop),
        store.check(space, now()).map(drop),
        store.write_test(space, now()),
        store.repair(space, grant.block, now()).map(drop),
    ]
}

/// An error with all its sources, in both ways to print them.
pub(crate) fn all_of(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        text += &format!("{error} {error:?} ");
        next = error.source();
    }
    text
}

/// Does `script` with everybody who connects, until the process ends; and the port for
/// that.
pub(crate) fn serve(script: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = Arc::new(script);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, script) = (stream.unwrap(), Arc::clone(&script));
            thread::spawn(move || script(stream));
        }
    });
    port
}

pub(crate) struct Shown(String);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for Shown {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Shown {
    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        ringflake_kit::assert_says(&self.0, &[part]);
        self
    }

    #[track_caller]
    pub(crate) fn hides(self, secret: &str) -> Self {
        assert!(!self.0.contains(secret), "{}", self.0);
        self
    }
}

/// Functions that answer all that an error of one kind shows, and fail the test at any
/// other outcome.
macro_rules! shown {
    ($($function:ident: $kind:ident,)*) => {$(
        #[track_caller]
        pub(crate) fn $function<T: fmt::Debug>(result: Result<T, StoreError>) -> Shown {
            match result {
                Err(error @ StoreError::$kind { .. }) => Shown(all_of(&error)),
                other => panic!("{other:?}, not {}", stringify!($kind)),
            }
        }
    )*};
}

shown! {
    already_initialised: AlreadyInitialised,
    ambiguous: Ambiguous,
    copied: Copied,
    corrupt: Corrupt,
    denied: Denied,
    exhausted: Exhausted,
    format: Format,
    history_unknown: HistoryUnknown,
    invalid: Invalid,
    not_durable: NotDurable,
    not_initialised: NotInitialised,
    secret_in_use: SecretInUse,
    table_missing: TableMissing,
    unavailable: Unavailable,
}

#[track_caller]
pub(crate) fn fenced<T: fmt::Debug>(result: Result<T, StoreError>) -> Fence {
    match result {
        Err(StoreError::Fenced { fence, .. }) => fence,
        other => panic!("{other:?} instead of a fence"),
    }
}

/// The floor after a history was lost at about now.
#[track_caller]
pub(crate) fn floor_ahead<T: fmt::Debug>(result: Result<T, StoreError>) -> u64 {
    match result {
        Err(StoreError::FloorAhead { floor, .. }) => {
            let now = Layout::RANDFLAKE.tick_at(now()).unwrap();
            let over = now + HORIZON + FAILOVER + 1;
            assert!(
                (over - FAILOVER / 2..=over + 2).contains(&floor),
                "{floor}, not about {over}"
            );
            floor
        }
        other => panic!("{other:?} instead of a floor ahead"),
    }
}

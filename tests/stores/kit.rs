//! What the tests of several stores begin with.

use std::error::Error;
use std::time::Duration;

use ringflake::lease::conformance::Given;
use ringflake::lease::{
    Acquire, Fence, Fingerprint, Grant, History, Init, LeaseStore, Namespace, StoreError,
    StoreLimits,
};
use ringflake::{Clock, Layout, SystemClock};

/// A test of each of these names, which are those of functions of these modules, on a
/// server that it has to itself.
#[allow(
    unused_macros,
    reason = "without a server there is nothing to test on one"
)]
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
#[allow(
    unused_imports,
    reason = "without a server there is nothing to test on one"
)]
pub(crate) use tests_on;

pub(crate) const HORIZON: u64 = 900;
pub(crate) const FAILOVER: u64 = 30;

/// This machine's time, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemClock.unix_ms()
}

/// A namespace of seconds.
pub(crate) fn space(name: &str) -> Namespace {
    Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
}

pub(crate) fn limits() -> StoreLimits {
    StoreLimits::default()
        .with_horizon(Duration::from_secs(HORIZON))
        .with_failover(Duration::from_secs(FAILOVER))
}

pub(crate) fn init(store: &mut dyn LeaseStore, space: &Namespace) {
    let init = Init::new(History::New, now()).with_limits(limits());
    store.init(space, &init).unwrap();
}

pub(crate) fn acquire(store: &mut dyn LeaseStore, space: &Namespace) -> Result<Grant, StoreError> {
    let mut grants = store.acquire(space, &Acquire::new(1, 60, now()))?;
    assert_eq!(grants.len(), 1);
    Ok(grants.remove(0))
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

/// Functions that answer all that an error of one kind shows, and fail the test at any
/// other outcome.
macro_rules! shown {
    ($($function:ident: $kind:ident,)*) => {$(
        #[track_caller]
        pub(crate) fn $function<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
            match result {
                Err(error @ StoreError::$kind { .. }) => all_of(&error),
                other => panic!("{other:?}, not {}", stringify!($kind)),
            }
        }
    )*};
}

shown! {
    already_initialised: AlreadyInitialised,
    ambiguous: Ambiguous,
    clock_skew: ClockSkew,
    clock_stepped: ClockStepped,
    copied: Copied,
    corrupt: Corrupt,
    denied: Denied,
    exhausted: Exhausted,
    fingerprint_mismatch: FingerprintMismatch,
    format_mismatch: Format,
    invalid: Invalid,
    not_durable: NotDurable,
    not_initialised: NotInitialised,
    not_quarantined: NotQuarantined,
    secret_in_use: SecretInUse,
    unavailable: Unavailable,
}

#[track_caller]
pub(crate) fn fenced<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Fence {
    match result {
        Err(StoreError::Fenced { fence, .. }) => fence,
        other => panic!("{other:?} instead of a fence"),
    }
}

/// The floor after a history was lost at about now.
#[track_caller]
pub(crate) fn floor_ahead<T: std::fmt::Debug>(result: Result<T, StoreError>) -> u64 {
    match result {
        Err(StoreError::FloorAhead { floor, .. }) => {
            let now = Layout::RANDFLAKE.tick_at(now()).unwrap();
            let over = now + HORIZON + FAILOVER + 1;
            assert!(
                (over - 60..=over + 2).contains(&floor),
                "{floor}, not about {over}"
            );
            floor
        }
        other => panic!("{other:?} instead of a floor ahead"),
    }
}

/// So many connections at once that each acquire and release, again and again;
/// answers what was given.
pub(crate) fn herd(
    space: &Namespace,
    threads: usize,
    rounds: usize,
    open: &(dyn Fn() -> Box<dyn LeaseStore> + Sync),
) -> Given {
    let grants: Vec<Grant> = std::thread::scope(|scope| {
        let work = || {
            let mut store = open();
            let mut grants = Vec::new();
            for round in 0..rounds {
                let ask = Acquire::new(1 + round as u32 % 3, 5, now());
                let given = store.acquire(space, &ask).unwrap();
                for grant in &given {
                    store.release(space, grant.block, grant.epoch).unwrap();
                }
                grants.extend(given);
            }
            grants
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| worker.join().unwrap());
        joined.flatten().collect()
    });
    let mut given = Given::default();
    grants.iter().for_each(|grant| given.add(grant));
    assert!(given.intervals() >= threads * rounds, "{given:?}");
    given
}

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::*;
use crate::clock::ManualClock;
use crate::layout::Layout;
use crate::lease::block::{Block, Epoch};
use crate::lease::confirmed::Confirmed;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::record::StoreRecord;
use crate::lease::report::{Listing, StoreReport};
use crate::lease::request::{Floor, Renew};
use crate::lease::stores::memory::MemoryStore;

const NOW: u64 = 1_760_000_000_000;
const MS: Duration = Duration::from_millis(1);
/// Longer than a busy machine takes for a test.
const PATIENCE: Duration = Duration::from_secs(600);

type Calls = Arc<Mutex<Vec<&'static str>>>;

/// A store that notes what it is asked, and first refuses some acquisitions.
#[derive(Debug)]
struct Scripted {
    inner: MemoryStore,
    refusals: VecDeque<StoreError>,
    /// What the next initialisation fails with.
    init_fails: Arc<Mutex<Option<StoreError>>>,
    calls: Calls,
}

impl Scripted {
    fn note(&self, call: &'static str) {
        self.calls.lock().unwrap().push(call);
    }
}

impl LeaseStore for Scripted {
    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        self.note("acquire");
        match self.refusals.pop_front() {
            Some(refusal) => Err(refusal),
            None => self.inner.acquire(namespace, acquire),
        }
    }

    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.note("init");
        self.inner.init(namespace, init)
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.note("init_if_new");
        match self.init_fails.lock().unwrap().take() {
            Some(failure) => Err(failure),
            None => self.inner.init(namespace, init),
        }
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        self.note("renew");
        self.inner.renew(namespace, renew)
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.note("release");
        self.inner.release(namespace, block, epoch)
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        self.note("list");
        self.inner.list(namespace)
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.note("raise_floor");
        self.inner.raise_floor(namespace, floor, now_unix_ms)
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        self.note("check");
        self.inner.check(namespace, now_unix_ms)
    }
}

struct Case {
    first: FirstLease,
    store: Scripted,
    space: Namespace,
    init_fails: Arc<Mutex<Option<StoreError>>>,
    calls: Calls,
}

/// A store in memory, with nothing in it, behind so many refusals.
fn case(refusals: impl IntoIterator<Item = StoreError>, history: Option<History>) -> Case {
    let clock = Arc::new(ManualClock::new(NOW));
    let (init_fails, calls) = (Arc::default(), Calls::default());
    let store = Scripted {
        inner: MemoryStore::new(clock),
        refusals: refusals.into_iter().collect(),
        init_fails: Arc::clone(&init_fails),
        calls: Arc::clone(&calls),
    };
    Case {
        first: FirstLease::new(history, PATIENCE),
        store,
        space: Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap(),
        init_fails,
        calls,
    }
}

impl Case {
    /// Its namespace was initialised by others.
    fn made(mut self) -> Self {
        let init = Init::new(History::New, NOW);
        self.store.init(&self.space, &init).unwrap();
        self.calls();
        self
    }

    /// As a worker does that has no other client.
    fn acquire(&mut self) -> Result<Vec<Grant>, StoreError> {
        let acquire = Acquire::new(1, 600, NOW);
        for _ in 0..100 {
            let Self { first, store, .. } = self;
            let error = match first.acquire(store, &self.space, &acquire, || NOW) {
                Err(error) => error,
                granted => return granted,
            };
            match first.again_after(&error) {
                // The worker sleeps; nothing here depends on that.
                Some(_) => {}
                None => return Err(error),
            }
        }
        panic!("asked 100 times");
    }

    /// What the store was asked since the last call.
    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

fn not_initialised() -> StoreError {
    let namespace = "orders".to_owned();
    StoreError::NotInitialised { namespace }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        source: "down".into(),
    }
}

fn ambiguous() -> StoreError {
    StoreError::Ambiguous {
        operation: "an operation",
        source: "cut".into(),
    }
}

fn exhausted() -> StoreError {
    StoreError::Exhausted {
        wanted: 1,
        blocks: 1,
        retry_after: PATIENCE * 100,
    }
}

fn floor_ahead(retry_after: Duration) -> StoreError {
    StoreError::FloorAhead {
        floor: 2,
        horizon_end: 1,
        retry_after,
    }
}

#[test]
fn a_namespace_is_initialised_once_and_before_the_first_lease() {
    let mut case = case([], Some(History::New));
    assert_eq!(case.acquire().unwrap().len(), 1);
    assert_eq!(case.calls(), ["acquire", "init_if_new", "acquire"]);
    // It is gone: that is no reason to begin anew.
    let refusals = [not_initialised(), not_initialised()];
    let mut again = self::case(refusals, Some(History::New));
    let init = Init::new(History::New, NOW);
    again.store.init(&again.space, &init).unwrap();
    assert_eq!(again.calls(), ["init"]);
    let gone = again.acquire().unwrap_err();
    assert!(matches!(gone, StoreError::NotInitialised { .. }), "{gone}");
    assert_eq!(again.calls(), ["acquire", "init_if_new", "acquire"]);
}

#[test]
fn a_namespace_that_disappears_later_is_not_initialised() {
    let mut case = case([], Some(History::New));
    case.first.granted = true;
    let gone = case.acquire().unwrap_err();
    assert!(matches!(gone, StoreError::NotInitialised { .. }), "{gone}");
    assert_eq!(case.calls(), ["acquire"]);
}

#[test]
fn without_a_history_nothing_is_initialised() {
    let mut case = case([], None);
    let missing = case.acquire().unwrap_err();
    assert!(
        matches!(missing, StoreError::NotInitialised { .. }),
        "{missing}"
    );
    assert_eq!(case.calls(), ["acquire"]);
}

#[test]
fn leases_that_begin_within_a_moment_are_waited_for() {
    let soon = floor_ahead(Duration::from_millis(1));
    let mut case = case([soon], None).made();
    assert_eq!(case.acquire().unwrap().len(), 1);
    assert_eq!(case.calls(), ["acquire", "acquire"]);
}

#[test]
fn leases_that_begin_later_are_not_waited_for() {
    let later = floor_ahead(PATIENCE + Duration::from_millis(1));
    let mut case = case([later], Some(History::New));
    let refused = case.acquire().unwrap_err();
    assert!(
        matches!(refused, StoreError::FloorAhead { .. }),
        "{refused}"
    );
    assert_eq!(case.calls(), ["acquire"]);
}

#[test]
fn a_first_lease_that_may_come_is_asked_for_again() {
    let lost = StoreError::HistoryLost {
        confirmed: Confirmed::new(Block::new(7), Epoch::new(3), 100),
        recorded: None,
    };
    for error in [unavailable(), exhausted(), lost] {
        assert!(may_succeed_later(&error), "{error}");
        let mut case = case([error], None).made();
        case.acquire().unwrap();
        assert_eq!(case.calls(), ["acquire", "acquire"]);
    }
    let mut case = case([ambiguous()], None).made();
    case.acquire().unwrap_err();
    assert_eq!(case.calls(), ["acquire"], "it may have cost a block");
    assert!(!may_succeed_later(&ambiguous()) && !may_succeed_later(&not_initialised()));
}

#[test]
fn without_a_wait_it_is_refused_at_once_and_may_ask_again() {
    let mut case = case([unavailable()], Some(History::New));
    case.first.patience = Duration::ZERO;
    case.acquire().unwrap_err();
    assert_eq!(case.calls(), ["acquire"]);
    // That it could not be reached says nothing of the namespace.
    case.acquire().unwrap();
    assert_eq!(case.calls(), ["acquire", "init_if_new", "acquire"]);
}

#[test]
fn a_refused_login_says_nothing_of_the_namespace() {
    let denied = StoreError::Denied {
        source: "password".into(),
    };
    let mut case = case([denied], Some(History::New));
    let refused = case.acquire().unwrap_err();
    assert!(matches!(refused, StoreError::Denied { .. }), "{refused}");
    case.acquire().unwrap();
    assert_eq!(
        case.calls(),
        ["acquire", "acquire", "init_if_new", "acquire"]
    );
}

#[test]
fn an_initialisation_that_did_not_come_to_pass_is_tried_again() {
    let mut case = case([], Some(History::New));
    *case.init_fails.lock().unwrap() = Some(unavailable());
    case.acquire().unwrap();
    let twice = [
        "acquire",
        "init_if_new",
        "acquire",
        "init_if_new",
        "acquire",
    ];
    assert_eq!(case.calls(), twice);
}

/// Whatever has shown it, or may have made it: from then on others may use it, and if it
/// is gone, so is what they were granted.
#[test]
fn a_namespace_that_may_have_existed_is_not_initialised_again() {
    for shown in [
        exhausted(),
        floor_ahead(Duration::from_millis(1)),
        ambiguous(),
    ] {
        let mut case = case([shown], Some(History::New));
        case.first.patience = Duration::ZERO;
        case.acquire().unwrap_err();
        let gone = case.acquire().unwrap_err();
        assert!(matches!(gone, StoreError::NotInitialised { .. }), "{gone}");
        assert_eq!(case.calls(), ["acquire", "acquire"]);
    }
    let mut case = case([], Some(History::New));
    *case.init_fails.lock().unwrap() = Some(ambiguous());
    let unknown = case.acquire().unwrap_err();
    assert!(matches!(unknown, StoreError::Ambiguous { .. }), "{unknown}");
    case.acquire().unwrap_err();
    assert_eq!(case.calls(), ["acquire", "init_if_new", "acquire"]);
}

#[test]
fn pauses_grow_and_end_with_the_patience() {
    let secs = Duration::from_secs;
    let wait = |error, left| again_after(&error, secs(2), left);
    assert_eq!(wait(unavailable(), secs(9)), Some(secs(2)));
    assert_eq!(wait(exhausted(), secs(1)), Some(secs(1)));
    assert_eq!(wait(unavailable(), Duration::ZERO), None);
    assert_eq!(wait(floor_ahead(secs(3)), secs(3)), Some(secs(3)));
    assert_eq!(wait(floor_ahead(secs(3)), secs(3) - MS), None);
    // There is always a pause.
    assert_eq!(wait(floor_ahead(Duration::ZERO), secs(3)), Some(MS));
    assert_eq!(wait(ambiguous(), secs(9)), None);
}

#[test]
fn the_first_lease_has_its_own_length_and_later_ones_the_usual() {
    // Ten seconds, and what is left of the tick of the moment.
    for (duration, length) in [
        (None, 600),
        (Some(10_000), 11),
        (Some(9_001), 11),
        (Some(1), 2),
    ] {
        let mut case = case([exhausted()], None).made();
        let duration = duration.map(Duration::from_millis);
        case.first = FirstLease::new(None, PATIENCE).lasting(duration);
        let length_of = |grants: Vec<Grant>| grants[0].ticks.end - grants[0].ticks.start;
        assert_eq!(length_of(case.acquire().unwrap()), length);
        assert_eq!(length_of(case.acquire().unwrap()), 600);
    }
}

#[test]
fn each_wait_is_reported_with_the_refusal_before_it() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&reports);
    let hook = WaitHook::new(move |error| kept.lock().unwrap().push(error.to_string()));
    let first = FirstLease::new(None, PATIENCE).reporting_to(Some(hook));
    first.waits(&exhausted());
    assert_eq!(*reports.lock().unwrap(), [exhausted().to_string()]);
    let panics = WaitHook::new(|_| panic!("a hook"));
    let first = FirstLease::new(None, PATIENCE).reporting_to(Some(panics));
    first.waits(&exhausted());
}

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::*;
use crate::clock::ManualClock;
use crate::layout::Layout;
use crate::lease::block::{Block, Epoch};
use crate::lease::confirmed::Confirmed;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::store::backends::memory::MemoryStore;
use crate::lease::store::record::StoreRecord;
use crate::lease::store::report::{Listing, StoreReport};
use crate::lease::store::request::{Floor, Renew};

const NOW: u64 = 1_760_000_000_000;
/// The names of the calls of a store.
const ASK: &str = "acquire";
const INIT: &str = "init_if_new";
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
        self.note(ASK);
        match self.refusals.pop_front() {
            Some(refusal) => Err(refusal),
            None => self.inner.acquire(namespace, acquire),
        }
    }

    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.inner.init(namespace, init)
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.note(INIT);
        match self.init_fails.lock().unwrap().take() {
            Some(failure) => Err(failure),
            None => self.inner.init(namespace, init),
        }
    }

    fn renew(&mut self, _: &Namespace, _: &Renew) -> Result<u64, StoreError> {
        unreachable!()
    }

    fn release(&mut self, _: &Namespace, _: Block, _: Epoch) -> Result<(), StoreError> {
        unreachable!()
    }

    fn list(&mut self, _: &Namespace) -> Result<Listing, StoreError> {
        unreachable!()
    }

    fn raise_floor(&mut self, _: &Namespace, _: Floor, _: u64) -> Result<u64, StoreError> {
        unreachable!()
    }

    fn check(&mut self, _: &Namespace, _: u64) -> Result<StoreReport, StoreError> {
        unreachable!()
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

    /// The calls of the store since the last time.
    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    #[track_caller]
    fn granted(&mut self, calls: &[&str]) {
        assert_eq!(self.acquire().unwrap().len(), 1);
        assert_eq!(self.calls(), calls);
    }
}

/// Expects a refusal of this kind, after these calls.
macro_rules! refused {
    ($case:expr, $kind:ident, $calls:expr) => {
        let case = &mut $case;
        let error = case.acquire().unwrap_err();
        assert!(matches!(error, StoreError::$kind { .. }), "{error}");
        assert_eq!(case.calls(), $calls);
    };
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
    case([], Some(History::New)).granted(&[ASK, INIT, ASK]);
    // It is gone: that is no reason to begin anew.
    let gone = [not_initialised(), not_initialised()];
    let mut again = case(gone, Some(History::New)).made();
    refused!(again, NotInitialised, [ASK, INIT, ASK]);
}

#[test]
fn a_namespace_that_disappears_later_is_not_initialised() {
    let mut case = case([], Some(History::New));
    case.first.granted = true;
    refused!(case, NotInitialised, [ASK]);
}

#[test]
fn without_a_history_nothing_is_initialised() {
    refused!(case([], None), NotInitialised, [ASK]);
}

#[test]
fn leases_that_begin_within_the_patience_are_waited_for() {
    case([floor_ahead(MS)], None).made().granted(&[ASK, ASK]);
    let later = floor_ahead(PATIENCE + MS);
    refused!(case([later], Some(History::New)), FloorAhead, [ASK]);
}

#[test]
fn a_first_lease_that_may_come_is_asked_for_again() {
    let lost = StoreError::HistoryLost {
        confirmed: Confirmed::new(Block::new(7), Epoch::new(3), 100),
        recorded: None,
    };
    for error in [unavailable(), exhausted(), lost] {
        assert!(may_succeed_later(&error), "{error}");
        case([error], None).made().granted(&[ASK, ASK]);
    }
    // It may have cost a block.
    refused!(case([ambiguous()], None).made(), Ambiguous, [ASK]);
    assert!(!may_succeed_later(&ambiguous()) && !may_succeed_later(&not_initialised()));
}

#[test]
fn without_a_wait_it_is_refused_at_once_and_may_ask_again() {
    let mut case = case([unavailable()], Some(History::New));
    case.first.patience = Duration::ZERO;
    refused!(case, Unavailable, [ASK]);
    // That it could not be reached says nothing of the namespace.
    case.granted(&[ASK, INIT, ASK]);
}

#[test]
fn a_refused_login_says_nothing_of_the_namespace() {
    let denied = StoreError::Denied {
        source: "password".into(),
    };
    let mut case = case([denied], Some(History::New));
    refused!(case, Denied, [ASK]);
    case.granted(&[ASK, INIT, ASK]);
}

#[test]
fn an_initialisation_that_did_not_come_to_pass_is_tried_again() {
    let mut case = case([], Some(History::New));
    *case.init_fails.lock().unwrap() = Some(unavailable());
    case.granted(&[ASK, INIT, ASK, INIT, ASK]);
}

/// Whatever has shown it, or may have made it: from then on others may use it, and if it
/// is gone, so is what they were granted.
#[test]
fn a_namespace_that_may_have_existed_is_not_initialised_again() {
    for shown in [exhausted(), floor_ahead(MS), ambiguous()] {
        let mut case = case([shown], Some(History::New));
        case.first.patience = Duration::ZERO;
        case.acquire().unwrap_err();
        refused!(case, NotInitialised, [ASK, ASK]);
    }
}

/// It was not made, and the generator would never serve; or it was made and lost, and others
/// may have leases from it.
#[test]
fn u1_a_namespace_that_may_have_been_made_is_initialised_with_an_unknown_history() {
    let mut case = case([], Some(History::New));
    case.first.patience = Duration::ZERO;
    *case.init_fails.lock().unwrap() = Some(ambiguous());
    refused!(case, Ambiguous, [ASK, INIT]);
    // Above whatever a lost lease can reach.
    refused!(case, FloorAhead, [ASK, INIT, ASK]);
    let record = case.store.inner.list(&case.space).unwrap().record;
    assert!(record.floor > record.tick_at(NOW).unwrap());
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
        case.first.duration = duration.map(Duration::from_millis);
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
    let mut first = FirstLease::new(None, PATIENCE);
    first.hook = Some(hook);
    first.waits(&exhausted());
    assert_eq!(*reports.lock().unwrap(), [exhausted().to_string()]);
    first.hook = Some(WaitHook::new(|_| panic!("a hook")));
    first.waits(&exhausted());
}

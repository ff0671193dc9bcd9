use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::*;
use crate::clock::ManualClock;
use crate::layout::Layout;
use crate::lease::{
    Block, Confirmed, Epoch, Fingerprint, MemoryStore, StoreFailureKind, StoreRecord,
};

const NOW: u64 = 1_760_000_000_000;
/// The names of the calls of a store.
const ASK: &str = "acquire";
const INIT: &str = "init_if_new";
const MS: Duration = Duration::from_millis(1);
/// Longer than a busy machine takes for a test.
const PATIENCE: Duration = Duration::from_secs(600);

/// A store that notes what it is asked, and first refuses some acquisitions.
#[derive(Debug)]
struct Scripted {
    inner: MemoryStore,
    refusals: VecDeque<StoreError>,
    /// What the next initialisation fails with.
    init_fails: Option<StoreError>,
    calls: Vec<&'static str>,
}

impl LeaseStore for Scripted {
    crate::forward_store! { |self| self.inner =>
        init renew release list raise_floor check write_test
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        self.calls.push(ASK);
        match self.refusals.pop_front() {
            Some(refusal) => Err(refusal),
            None => self.inner.acquire(namespace, acquire),
        }
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.calls.push(INIT);
        match self.init_fails.take() {
            Some(failure) => Err(failure),
            None => self.inner.init(namespace, init),
        }
    }
}

struct Case {
    first: FirstLease,
    store: Scripted,
    space: Namespace,
}

/// A store in memory, with nothing in it, behind so many refusals.
fn case(refusals: impl IntoIterator<Item = StoreError>, history: Option<History>) -> Case {
    let store = Scripted {
        inner: MemoryStore::new(Arc::new(ManualClock::new(NOW))),
        refusals: refusals.into_iter().collect(),
        init_fails: None,
        calls: Vec::new(),
    };
    Case {
        first: FirstLease::new(history, PATIENCE),
        store,
        space: Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap(),
    }
}

impl Case {
    /// Its namespace was initialised by others.
    fn made(mut self) -> Self {
        let init = Init::new(History::New, NOW);
        self.store.init(&self.space, &init).unwrap();
        self
    }

    /// It does not wait.
    fn hasty(mut self) -> Self {
        self.first.patience = Duration::ZERO;
        self
    }

    fn granted(mut self) -> Self {
        self.first.granted = true;
        self
    }

    fn init_fails(mut self, error: StoreError) -> Self {
        self.store.init_fails = Some(error);
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
            // The worker sleeps; nothing here depends on that.
            if first.again_after(&error).is_none() {
                return Err(error);
            }
        }
        panic!("asked 100 times");
    }

    /// Acquires, and checks the outcome and the calls for it.
    #[track_caller]
    fn expect(&mut self, outcome: Result<usize, StoreFailureKind>, calls: &[&str]) {
        let acquired = self.acquire().map(|grants| grants.len());
        let acquired = acquired.map_err(|error| StoreFailureKind::of(&error));
        let called = std::mem::take(&mut self.store.calls);
        assert_eq!((acquired, &called[..]), (outcome, calls));
    }
}

fn not_initialised() -> StoreError {
    let namespace = "orders".to_owned();
    StoreError::NotInitialised { namespace }
}

fn unavailable() -> StoreError {
    StoreError::unavailable("down")
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
        floor_unix_ms: 2_000,
        now_unix_ms: 1_000,
        retry_after,
    }
}

#[test]
fn a_namespace_is_initialised_once_and_only_before_the_first_lease() {
    use StoreFailureKind::{Denied, NotInitialised, Unavailable};
    let new = Some(History::New);
    case([], new).expect(Ok(1), &[ASK, INIT, ASK]);
    case([], None).expect(Err(NotInitialised), &[ASK]);
    // It is gone: that is no reason to begin anew.
    let gone = [not_initialised(), not_initialised()];
    case(gone, new)
        .made()
        .expect(Err(NotInitialised), &[ASK, INIT, ASK]);
    case([], new).granted().expect(Err(NotInitialised), &[ASK]);
    // What says nothing of the record.
    let denied = StoreError::Denied {
        source: "password".into(),
    };
    for (error, kind) in [(unavailable(), Unavailable), (denied, Denied)] {
        let mut case = case([error], new).hasty();
        case.expect(Err(kind), &[ASK]);
        case.expect(Ok(1), &[ASK, INIT, ASK]);
    }
    let mut undone = case([], new).init_fails(unavailable());
    undone.expect(Ok(1), &[ASK, INIT, ASK, INIT, ASK]);
    // What has shown it, or may have made it: from then on others may use it, and if it is
    // gone, so is what they were granted.
    for shown in [exhausted(), floor_ahead(MS), ambiguous()] {
        let kind = StoreFailureKind::of(&shown);
        let mut case = case([shown], new).hasty();
        case.expect(Err(kind), &[ASK]);
        case.expect(Err(NotInitialised), &[ASK]);
    }
}

#[test]
fn a_first_lease_that_may_come_within_the_patience_is_asked_for_again() {
    let lost = StoreError::HistoryLost {
        confirmed: Confirmed::new(Block::new(7), Epoch::new(3), 100),
        recorded: None,
    };
    for error in [unavailable(), exhausted(), lost, floor_ahead(MS)] {
        assert!(may_succeed_later(&error), "{error}");
        case([error], None).made().expect(Ok(1), &[ASK, ASK]);
    }
    let later = case([floor_ahead(PATIENCE + MS)], Some(History::New));
    later
        .made()
        .expect(Err(StoreFailureKind::FloorAhead), &[ASK]);
    // It may have cost a block.
    let mut unknown = case([ambiguous()], None).made();
    unknown.expect(Err(StoreFailureKind::Ambiguous), &[ASK]);
    assert!(!may_succeed_later(&ambiguous()) && !may_succeed_later(&not_initialised()));
}

/// It was not made, and the generator would never serve; or it was made and lost, and others
/// may have leases from it.
#[test]
fn u1_a_namespace_that_may_have_been_made_is_initialised_with_an_unknown_history() {
    let mut case = case([], Some(History::New)).hasty();
    case.store.init_fails = Some(ambiguous());
    case.expect(Err(StoreFailureKind::Ambiguous), &[ASK, INIT]);
    // Above whatever a lost lease can reach.
    case.expect(Err(StoreFailureKind::FloorAhead), &[ASK, INIT, ASK]);
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

use std::sync::Mutex;

use super::*;
use crate::layout::Layout;
use crate::lease::client::protocol::{Change, Demand, LeasePlan, Manager};
use crate::lease::client::renewal::state::{GrantSink, State};
use crate::lease::fingerprint::Fingerprint;
use crate::wakers::Ticket;
use ringflake_kit::waking::Counting;

/// It wants nothing, and its clock stands still.
#[derive(Debug)]
struct Idle;

impl GrantSink for Idle {
    fn unix_ms(&self) -> u64 {
        Layout::RANDFLAKE.tick_start_unix_ms(1_000)
    }

    fn demand(&self) -> Demand {
        Demand {
            borrowed: Duration::ZERO,
            borrow_limit: Duration::ZERO,
            room: 1,
        }
    }

    fn apply(&mut self, _: &Change) {}

    fn stop_serving(&self) -> bool {
        false
    }
}

fn client() -> (Arc<Shared>, Client) {
    let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
    let manager = Manager::new(orders, LeasePlan::default(), 7).unwrap();
    let state = State::new(manager, Box::new(Idle), Arc::default());
    let shared = Arc::new(Shared::new(state).unwrap());
    let first = FirstLease::new(None, Duration::ZERO);
    let client = Client::new(Arc::clone(&shared), first, None);
    (shared, client)
}

/// A worker that unwinds drops its clients, and nobody else says that there is none.
#[test]
fn those_who_wait_learn_that_their_worker_is_gone() {
    let (shared, client) = client();
    let waker = Counting::new();
    let mut ticket = Ticket::default();
    let mut poll = || shared.poll(&mut ticket, &waker.waker(), State::readiness);
    assert_eq!(poll(), None);
    assert_eq!(shared.wait(Duration::ZERO, State::readiness), None);
    drop(client);
    assert_eq!(waker.woken(), 1);
    assert_eq!(poll(), Some(false));
    assert_eq!(shared.wait(Duration::ZERO, State::readiness), Some(false));
    assert_eq!(shared.completion.wait(Duration::ZERO), Some(false));
}

/// Such a waker may wait for the thread that shuts the generator down.
#[test]
fn a_waker_is_called_once_the_end_has_been_reported() {
    let (shared, mut client) = client();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let waker = Counting::and({
        let (shared, reported) = (Arc::clone(&shared), Arc::clone(&reported));
        move || {
            let outcome = shared.completion.wait(Duration::ZERO);
            reported.lock().unwrap().push(outcome);
        }
    });
    let polled = shared.poll(&mut Ticket::default(), &waker.waker(), State::readiness);
    assert_eq!(polled, None);
    shared.stop.store(true, Relaxed);
    assert!(matches!(client.next_step(), Step::Done));
    drop(client);
    assert_eq!(*reported.lock().unwrap(), [Some(true)]);
    assert_eq!(waker.woken(), 1);
}

/// As when `key` of the store forks. The store is not closed either.
#[test]
#[cfg(unix)]
fn a_child_refuses_a_client_that_was_made_before_the_fork() {
    use crate::clock::ManualClock;
    use crate::lease::client::renewal::assign::assign;
    use crate::lease::store::backends::memory::MemoryStore;

    let (_, client) = client();
    let clock = Arc::new(ManualClock::new(0));
    let store = Box::new(MemoryStore::new(clock.clone()));
    let owners = Arc::strong_count(&clock);
    let status = ringflake_kit::child::in_a_fork(|| {
        let is_refused = assign(store, client).is_err();
        u8::from(!is_refused || Arc::strong_count(&clock) != owners)
    });
    assert_eq!(status, Ok(0));
}

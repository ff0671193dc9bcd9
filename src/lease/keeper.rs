//! The thread that keeps leases: it drives a [`Manager`] against a store.
//!
//! The manager decides; this asks the store what the manager says, hands it the
//! answers, and lets the tenant know what it has from then on. The desk, that is
//! manager and tenant together, is behind one lock. It is never held while the
//! store is asked, so [`invalidate`](Keeper::invalidate) finds the lanes of every
//! grant that ever was, whatever the store is doing; nor while `tracing` is told,
//! so a subscriber may ask how the leases stand.
//!
//! The thread looks at the clock and at the demand four times a second, but not
//! while it waits for the store. It takes no part in issuing IDs: should it stand
//! still, leases are used up to their confirmed ends and no further.
//!
//! Other people's code may panic. A store that does has left its answer open, a
//! clock says what it said before, and a subscriber's panic is dropped. None of
//! them comes between the manager and the tenant: what the manager has changed,
//! the tenant is told.

mod farewell;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use self::farewell::Ending;
use super::{
    Answer, Change, Demand, Expiry, LeaseStatus, LeaseStore, Manager, Moment, Outage, Request,
    Step, StoreError, Trouble, TroubleKind,
};
use crate::events::{self, Throttle};
use crate::fork::WipeOnFork;
use crate::unwind::catching;

/// The longest that the thread sleeps: how late it notices that the clock has
/// passed the end of the leases, or that borrowing has grown.
const NAP: Duration = Duration::from_millis(250);

/// Where grants are put to use. Called by one thread at a time.
///
/// The first two may call a user's clock, and panic with it. The others run
/// nobody else's code.
pub(crate) trait Tenant: Send + fmt::Debug {
    /// The tenant's time, in milliseconds since 1970.
    fn unix_ms(&self) -> u64;

    /// What it needs at the moment.
    fn demand(&self) -> Demand;

    /// Takes note of what it has from now on.
    fn apply(&mut self, change: &Change);

    /// Serves nothing that was made before. Returns whether this must be called
    /// again for what is still to come.
    fn stop_serving(&self) -> bool;
}

/// Keeps the leases of one tenant; letting it go releases them, see [`farewell`].
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    /// Taken when dropped.
    thread: Option<JoinHandle<()>>,
    /// Reads false in a forked child, which has neither the thread nor the leases.
    at_home: WipeOnFork<bool>,
}

/// Why there is no keeper.
pub(crate) enum KeeperError {
    /// The store gave no lease.
    Store(StoreError),
    /// The operating system refused memory or a thread.
    System(std::io::Error),
}

#[derive(Debug)]
struct Shared {
    desk: Mutex<Desk>,
    /// Leases or the clock may have changed.
    changed: Condvar,
    stop: AtomicBool,
    ending: Ending,
}

#[derive(Debug)]
struct Desk {
    manager: Manager,
    tenant: Box<dyn Tenant>,
    /// For the monotonic time.
    started: Instant,
    /// What the tenant's clock said last, and what it needed then.
    unix_ms: u64,
    demand: Demand,
    outage: Arc<Outage>,
    /// When the last lease ended or will end, in milliseconds since 1970; 0
    /// before there was one, and after all were given up.
    last_end_unix_ms: u64,
    /// The leases have ended, and what was made from them may not be served.
    ended: bool,
}

/// What is told to `tracing` once the desk is free.
#[must_use]
struct News {
    changes: Vec<Change>,
    /// The trouble that is over.
    recovered: Option<Trouble>,
}

/// What the thread has to itself.
struct Courier {
    shared: Arc<Shared>,
    store: Box<dyn LeaseStore>,
    failures: Throttle,
}

impl Keeper {
    /// Starts the thread, and waits until it has acquired the first leases if they are
    /// `awaited`.
    ///
    /// # Errors
    /// The system's refusal, or the store's first one where leases are awaited. Nothing is
    /// kept then.
    pub(crate) fn start(
        store: Box<dyn LeaseStore>,
        manager: Manager,
        tenant: Box<dyn Tenant>,
        outage: Arc<Outage>,
        awaited: bool,
    ) -> Result<Self, KeeperError> {
        let at_home = WipeOnFork::new(true).map_err(KeeperError::System)?;
        let shared = Arc::new(Shared {
            desk: Mutex::new(Desk {
                started: Instant::now(),
                // A clock that panics as early as here is the caller's affair.
                unix_ms: tenant.unix_ms(),
                demand: tenant.demand(),
                manager,
                tenant,
                outage,
                last_end_unix_ms: 0,
                ended: false,
            }),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            ending: Ending::default(),
        });
        let courier = Courier {
            shared: Arc::clone(&shared),
            store,
            failures: Throttle::new(),
        };
        let (outcome, first) = mpsc::channel();
        let outcome = awaited.then_some(outcome);
        let thread = thread::Builder::new()
            .name("ringflake-lease".to_owned())
            .spawn(move || {
                let shared = Arc::clone(&courier.shared);
                // What can panic is caught inside, but for the drop of the store.
                let released = catching(|| courier.run(outcome));
                shared.ending.tell(released.unwrap_or(false));
            })
            .map_err(KeeperError::System)?;
        // From here on an error lets go of what the thread has, and of the thread.
        let keeper = Self {
            shared,
            thread: Some(thread),
            at_home,
        };
        if !awaited {
            return Ok(keeper);
        }
        match first.recv() {
            Ok(first) => first.map(|()| keeper).map_err(KeeperError::Store),
            Err(gone) => Err(KeeperError::System(std::io::Error::other(gone))),
        }
    }

    /// How the leases stand.
    pub(crate) fn status(&self) -> LeaseStatus {
        self.shared.desk().manager.status()
    }

    /// Gives up every lease at once, with all that was made from them, and lets
    /// the thread acquire others.
    pub(crate) fn invalidate(&self) {
        let mut desk = self.shared.desk();
        let changes = desk.manager.invalidate();
        let news = desk.apply(changes);
        // Before anything is opened again: what is made from that stays.
        while desk.tenant.stop_serving() {}
        drop(desk);
        self.wake();
        news.tell();
    }

    /// Waits until a lease is in force, for no longer than `patience`, and answers whether
    /// one is. Not for a forked child, where nobody unlocks the desk.
    pub(crate) fn wait_ready(&self, patience: Duration) -> bool {
        let waits = |desk: &mut Desk| !desk.is_in_force();
        let desk = self.shared.desk();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(desk, patience, waits);
        let (_desk, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }

    /// Releases every lease, and waits for that as long as `patience`. Answers whether
    /// all were released by then.
    pub(crate) fn shut_down(mut self, patience: Duration) -> bool {
        self.leave(|ending| ending.wait(patience))
    }

    /// Lets the thread go, and `wait` for its end.
    fn leave(&mut self, wait: impl FnOnce(&Ending) -> Option<bool>) -> bool {
        let Some(thread) = self.thread.take() else {
            return false;
        };
        if !*self.at_home {
            // The parent's; there is nothing to join, and nothing to release.
            std::mem::forget(thread);
            return false;
        }
        // Relaxed: the thread looks again after each operation and each nap.
        self.shared.stop.store(true, Relaxed);
        thread.thread().unpark();
        // A hook may own the last generator, and a store may call it.
        if thread.thread().id() == thread::current().id() {
            return false;
        }
        let Some(released) = wait(&self.shared.ending) else {
            // It goes on by itself.
            return false;
        };
        // It has nothing left to do.
        let _ = thread.join();
        released
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.leave(Ending::wait_in_a_drop);
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // Nothing that runs at the desk can panic and leave it between two steps.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Courier {
    /// The life of the thread. Answers whether all leases were released in the end.
    fn run(mut self, outcome: Option<mpsc::Sender<Result<(), StoreError>>>) -> bool {
        if let Some(outcome) = outcome {
            let first = self.acquire_first();
            let failed = first.is_err();
            // It is waited for, except by a caller that forked meanwhile.
            let _ = outcome.send(first);
            if failed {
                return false;
            }
        }
        self.keep()
    }

    /// Asks until there is a first lease and nothing more to ask at once.
    fn acquire_first(&mut self) -> Result<(), StoreError> {
        while let Step::Ask(request) = self.step(false) {
            let (answer, took) = self.ask(&request);
            match answer {
                Answer::Acquired(Err(error)) if !self.shared.desk().had_a_lease() => {
                    return Err(error);
                }
                answer => self.hand_in(&request, answer, took),
            };
        }
        if self.shared.desk().had_a_lease() {
            Ok(())
        } else {
            Err(StoreError::Corrupt {
                detail: "it granted no block that can be used".to_owned(),
                source: None,
            })
        }
    }

    fn keep(&mut self) -> bool {
        loop {
            // Relaxed: who sets it wakes this thread afterwards.
            let stop = self.shared.stop.load(Relaxed);
            match self.step(stop) {
                Step::Ask(request) => {
                    let (answer, took) = self.ask(&request);
                    let failed = self.hand_in(&request, answer, took);
                    if stop && failed {
                        // Releasing is a courtesy; the blocks come free by themselves.
                        return false;
                    }
                }
                Step::Wait(_) if stop => return false,
                Step::Wait(nap) => thread::park_timeout(nap.min(NAP)),
                Step::Done => return true,
            }
        }
    }

    /// Lets the manager say what is to be done: let go of everything, if `stop`.
    fn step(&self, stop: bool) -> Step {
        let (step, news) = self.shared.desk().step(stop);
        // A step follows each answer and each nap, so nothing is told later than that.
        self.shared.changed.notify_all();
        catching(|| news.tell());
        step
    }

    /// Asks the store, and says how long it took.
    fn ask(&mut self, request: &Request) -> (Answer, Duration) {
        let namespace = self.shared.desk().manager.namespace().clone();
        let started = Instant::now();
        let answer = catching(|| request.send(&mut *self.store, &namespace))
            .unwrap_or_else(|| panicked(request));
        (answer, started.elapsed())
    }

    /// Takes note of an answer, and says whether it is an error.
    fn hand_in(&self, request: &Request, answer: Answer, took: Duration) -> bool {
        let error = error_of(&answer);
        catching(|| {
            events::lease_store_asked(request, took);
            if let Some(error) = error {
                events::lease_store_failed(&self.failures, request, error);
            }
            if let Some(StoreError::HistoryLost { .. }) = error {
                events::lease_history_lost();
            }
        });
        let failed = error.is_some();
        let news = self.shared.desk().answered(answer);
        catching(|| news.tell());
        failed
    }
}

/// The answer of a store that panicked: whether it did anything is unknown.
fn panicked(request: &Request) -> Answer {
    fn unknown<T>() -> Result<T, StoreError> {
        Err(StoreError::Ambiguous {
            operation: "an operation of the store",
            source: "the store panicked".into(),
        })
    }
    match request {
        Request::Acquire(_) => Answer::Acquired(unknown()),
        Request::Renew(_) => Answer::Renewed(unknown()),
        Request::Release { .. } => Answer::Released(unknown()),
        Request::Check { .. } => Answer::Checked(unknown()),
    }
}

fn error_of(answer: &Answer) -> Option<&StoreError> {
    match answer {
        Answer::Acquired(Err(error))
        | Answer::Renewed(Err(error))
        | Answer::Released(Err(error))
        | Answer::Checked(Err(error)) => Some(error),
        _ => None,
    }
}

impl Desk {
    /// Whether the clock has not passed the end of the last lease.
    fn is_in_force(&mut self) -> bool {
        self.moment().unix_ms < self.last_end_unix_ms
    }

    fn had_a_lease(&self) -> bool {
        self.last_end_unix_ms > 0
    }

    fn moment(&mut self) -> Moment {
        if let Some(unix_ms) = catching(|| self.tenant.unix_ms()) {
            self.unix_ms = unix_ms;
        }
        Moment {
            unix_ms: self.unix_ms,
            elapsed: self.started.elapsed(),
        }
    }

    fn demand(&mut self) -> Demand {
        if let Some(demand) = catching(|| self.tenant.demand()) {
            self.demand = demand;
        }
        self.demand
    }

    fn step(&mut self, stop: bool) -> (Step, News) {
        let (moment, demand) = (self.moment(), self.demand());
        if stop {
            self.manager.release();
        }
        let (changes, step) = self.manager.next(moment, demand);
        let news = self.apply(changes);
        if self.ended {
            // Until what was under way at the end has come in, too.
            self.ended = self.tenant.stop_serving();
        }
        (step, news)
    }

    fn answered(&mut self, answer: Answer) -> News {
        let moment = self.moment();
        let changes = self.manager.answer(moment, answer);
        self.apply(changes)
    }

    fn apply(&mut self, changes: Vec<Change>) -> News {
        for change in &changes {
            self.tenant.apply(change);
            match change {
                Change::Expired { .. } if self.manager.plan().expiry == Expiry::Refuse => {
                    self.ended = self.tenant.stop_serving();
                }
                Change::Revived => self.ended = false,
                Change::Revoked(_) => self.last_end_unix_ms = 0,
                _ => {}
            }
        }
        News {
            changes,
            recovered: self.note(),
        }
    }

    /// Lets takes that are refused know why. Returns the trouble that is over.
    fn note(&mut self) -> Option<Trouble> {
        let status = self.manager.status();
        let layout = self.manager.namespace().layout();
        let ends = status.grants.iter().map(|held| held.grant.ticks.end);
        if let Some(end) = ends.max() {
            self.last_end_unix_ms = layout.tick_start_unix_ms(end);
        }
        let health = status.health;
        let trouble = health.trouble.zip(health.failing_since_unix_ms);
        let trouble = trouble.map(|(error, since)| Trouble::new(TroubleKind::of(&error), since));
        let before = self.outage.trouble();
        self.outage.note(self.last_end_unix_ms, trouble);
        before.filter(|_| trouble.is_none())
    }
}

impl News {
    fn tell(&self) {
        self.changes.iter().for_each(events::lease_changed);
        if let Some(trouble) = self.recovered {
            events::lease_store_recovered(trouble);
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

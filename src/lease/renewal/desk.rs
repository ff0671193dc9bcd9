//! A manager and its sink, behind one lock.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::super::protocol::{Answer, Change, Demand, Expiry, LeaseStatus, Manager, Moment, Step};
use super::super::{Namespace, Outage, Trouble, TroubleKind};
use super::events;
use super::farewell::Ending;
use crate::unwind::catching;

/// Where grants are put to use. Called by one thread at a time.
///
/// The first two may call a user's clock, and panic with it. The others run
/// nobody else's code.
pub(crate) trait GrantSink: Send + std::fmt::Debug {
    /// The sink's time, in milliseconds since 1970.
    fn unix_ms(&self) -> u64;

    /// What it needs at the moment.
    fn demand(&self) -> Demand;

    /// Takes note of what it has from now on.
    fn apply(&mut self, change: &Change);

    /// Serves nothing that was made before. Returns whether this must be called
    /// again for what is still to come.
    fn stop_serving(&self) -> bool;
}

/// What a keeper and its courier share.
#[derive(Debug)]
pub(super) struct Shared {
    desk: Mutex<Desk>,
    /// Leases or the clock may have changed.
    changed: Condvar,
    /// Everything is to be released.
    pub(super) stop: AtomicBool,
    pub(super) ending: Ending,
}

impl Shared {
    pub(super) fn new(desk: Desk) -> Self {
        Self {
            desk: Mutex::new(desk),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            ending: Ending::default(),
        }
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        // Nothing that runs at the desk can panic and leave it between two steps.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for something at the desk.
    pub(super) fn changed(&self) {
        self.changed.notify_all();
    }

    /// Waits until it `holds`, for no longer than `patience`, and answers whether it does.
    pub(super) fn wait(&self, patience: Duration, holds: impl Fn(&mut Desk) -> bool) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.desk(), patience, |desk| !holds(desk));
        let (_desk, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }
}

#[derive(Debug)]
pub(super) struct Desk {
    manager: Manager,
    sink: Box<dyn GrantSink>,
    /// For the monotonic time.
    started: Instant,
    /// What the sink's clock said last, and what it needed then.
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
pub(super) struct News {
    changes: Vec<Change>,
    /// The trouble that is over.
    recovered: Option<Trouble>,
}

impl Desk {
    pub(super) fn new(manager: Manager, sink: Box<dyn GrantSink>, outage: Arc<Outage>) -> Self {
        Self {
            started: Instant::now(),
            // A clock that panics as early as here is the caller's affair.
            unix_ms: sink.unix_ms(),
            demand: sink.demand(),
            manager,
            sink,
            outage,
            last_end_unix_ms: 0,
            ended: false,
        }
    }

    pub(super) fn status(&self) -> LeaseStatus {
        self.manager.status()
    }

    pub(super) fn namespace(&self) -> &Namespace {
        self.manager.namespace()
    }

    /// Whether the clock has not passed the end of the last lease.
    pub(super) fn is_in_force(&mut self) -> bool {
        self.moment().unix_ms < self.last_end_unix_ms
    }

    pub(super) fn had_a_lease(&self) -> bool {
        self.last_end_unix_ms > 0
    }

    /// The sink's time, in milliseconds since 1970.
    pub(super) fn unix_ms(&mut self) -> u64 {
        self.moment().unix_ms
    }

    fn moment(&mut self) -> Moment {
        if let Some(unix_ms) = catching(|| self.sink.unix_ms()) {
            self.unix_ms = unix_ms;
        }
        Moment {
            unix_ms: self.unix_ms,
            elapsed: self.started.elapsed(),
        }
    }

    fn demand(&mut self) -> Demand {
        if let Some(demand) = catching(|| self.sink.demand()) {
            self.demand = demand;
        }
        self.demand
    }

    /// Lets the manager say what is to be done: let go of everything, if `stop`.
    pub(super) fn step(&mut self, stop: bool) -> (Step, News) {
        let (moment, demand) = (self.moment(), self.demand());
        if stop {
            self.manager.release();
        }
        let (changes, step) = self.manager.next(moment, demand);
        let news = self.apply(changes);
        if self.ended {
            // Until what was under way at the end has come in, too.
            self.ended = self.sink.stop_serving();
        }
        (step, news)
    }

    pub(super) fn answered(&mut self, answer: Answer) -> News {
        let moment = self.moment();
        let changes = self.manager.answer(moment, answer);
        self.apply(changes)
    }

    /// Gives up every lease, with all that was made from them.
    pub(super) fn invalidate(&mut self) -> News {
        let changes = self.manager.invalidate();
        let news = self.apply(changes);
        // Before anything is opened again: what is made from that stays.
        while self.sink.stop_serving() {}
        news
    }

    fn apply(&mut self, changes: Vec<Change>) -> News {
        for change in &changes {
            self.sink.apply(change);
            match change {
                Change::Expired { .. } if self.manager.plan().expiry == Expiry::Refuse => {
                    self.ended = self.sink.stop_serving();
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
    pub(super) fn tell(&self) {
        self.changes.iter().for_each(events::changed);
        if let Some(trouble) = self.recovered {
            events::store_recovered(trouble);
        }
    }
}

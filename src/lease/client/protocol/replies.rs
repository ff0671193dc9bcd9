//! The effect of each answer.

use std::sync::Arc;
use std::time::Duration;

use super::{
    Answer, Change, Failing, GrantState, Holding, Manager, Mode, Moment, RenewTiming, Request,
};
use crate::lease::{Acquire, Fence, Grant, Renew, StoreError};

impl Manager {
    pub(super) fn take_in(
        &mut self,
        at: Moment,
        request: &Request,
        answer: Answer,
        changes: &mut Vec<Change>,
    ) {
        self.counts.note(request, &answer);
        match (request, answer) {
            (Request::Acquire(acquire), Answer::Acquired(result)) => match result {
                Ok(grants) => self.acquired(at, acquire, grants, changes),
                Err(error) => self.not_acquired(at, error),
            },
            (Request::Renew(renew), Answer::Renewed(result)) => match result {
                Ok(end) => self.renewed(at, renew, end, changes),
                Err(error) => self.not_renewed(at, renew, error),
            },
            (Request::Release { .. }, Answer::Released(result)) => match result {
                // A refusal that fences is a reply, too.
                Ok(()) | Err(StoreError::Fenced { .. }) => self.replied(),
                Err(error) => {
                    // For other processes the blocks are free when their marks
                    // pass.
                    self.to_release.clear();
                    self.store_fails(at, error);
                }
            },
            (Request::Check { .. }, Answer::Checked(result)) => match result {
                Ok(()) => self.replied(),
                Err(error) => self.store_fails(at, error),
            },
            (request, _) => {
                let lost = StoreError::Ambiguous {
                    operation: "a request that was answered as another",
                    source: "the answer is of another kind than the request".into(),
                };
                match request {
                    Request::Renew(renew) => self.not_renewed(at, renew, lost),
                    _ => self.store_fails(at, lost),
                }
            }
        }
    }

    fn acquired(
        &mut self,
        at: Moment,
        acquire: &Acquire,
        grants: Vec<Grant>,
        changes: &mut Vec<Change>,
    ) {
        self.store_works();
        self.acquire_failing = None;
        let wanted = acquire.blocks as usize;
        // Fewer blocks than wanted are a success. More may come, but nothing is
        // urgent.
        self.acquire_at = if grants.len() < wanted {
            self.slowly(at)
        } else {
            at.elapsed
        };
        for grant in grants.into_iter().take(wanted) {
            if let Err(why) = self.is_sound(&grant) {
                let detail = format!("it granted {grant}, {why}");
                self.acquire_at = self.slowly(at);
                self.acquire_fails(at, StoreError::corrupt(detail));
            } else if self.mode.is_leaving() {
                self.to_release.push_back((grant.block, grant.epoch));
            } else {
                self.open(at, grant, changes);
            }
        }
    }

    fn open(&mut self, at: Moment, grant: Grant, changes: &mut Vec<Change>) {
        let mut held = Holding::new(grant);
        let layout = self.namespace.layout();
        self.reach = held.confirmed(at, layout, &self.timing, &mut self.jitter);
        changes.push(Change::Opened(held.grant.clone()));
        self.last_end = self.last_end.max(Some(held.grant.ticks.end));
        self.evidence.note(&held.grant);
        self.holdings.push(held);
        self.leave_what_is_replaced(at, changes);
    }

    /// A store that conforms never fails at this.
    fn is_sound(&self, grant: &Grant) -> Result<(), &'static str> {
        if grant.to_lease(&self.namespace).is_err() {
            return Err("which is outside of the namespace");
        }
        let overlaps = |held: &Holding| {
            let (ours, theirs) = (&held.grant.ticks, &grant.ticks);
            held.grant.block == grant.block && ours.start < theirs.end && theirs.start < ours.end
        };
        if self.holdings.iter().any(overlaps) {
            return Err("which overlaps with a grant held here");
        }
        Ok(())
    }

    fn not_acquired(&mut self, at: Moment, error: StoreError) {
        match error {
            StoreError::Exhausted { retry_after, .. }
            | StoreError::FloorAhead { retry_after, .. } => {
                self.store_works();
                self.acquire_at = self.spread(at, retry_after);
                let serves = matches!(error, StoreError::Exhausted { .. }) && self.serves(at);
                if serves {
                    self.acquire_failing = None;
                } else {
                    self.acquire_fails(at, error);
                }
            }
            // The store is well, but has no grant for us.
            StoreError::ClockSkew { .. }
            | StoreError::HistoryLost { .. }
            | StoreError::LayoutEnded { .. }
            | StoreError::Invalid { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Fenced { .. } => {
                self.store_works();
                self.acquire_at = self.slowly(at);
                self.acquire_fails(at, error);
            }
            _ => self.store_fails(at, error),
        }
    }

    fn renewed(&mut self, at: Moment, renew: &Renew, end: u64, changes: &mut Vec<Change>) {
        if !(renew.known_end..=renew.new_end).contains(&end) {
            let detail = format!(
                "block {} was renewed to tick {end}, not between {} and {}",
                renew.block, renew.known_end, renew.new_end
            );
            self.drain(renew, false);
            self.store_fails(at, StoreError::corrupt(detail));
            return;
        }
        self.store_works();
        let layout = self.namespace.layout();
        let Some(held) = self.holdings.iter_mut().find(|h| h.is_subject_of(renew)) else {
            return;
        };
        held.grant.ticks.end = end;
        self.evidence.note(&held.grant);
        self.reach = held.confirmed(at, layout, &self.timing, &mut self.jitter);
        self.last_end = self.last_end.max(Some(end));
        if end > renew.known_end {
            changes.push(Change::Extended(held.grant.clone()));
        }
    }

    fn not_renewed(&mut self, at: Moment, renew: &Renew, error: StoreError) {
        match error {
            StoreError::Fenced { fence, .. } => {
                self.store_works();
                self.drain(renew, false);
                // The lost history fences every other grant, too. One
                // acquisition is to replace them all, once each has been
                // fenced.
                let wait = match fence {
                    Fence::Incarnation | Fence::Floor { .. } => self.breadth(at),
                    _ => RenewTiming::FIRST,
                };
                if self.acquire_at <= at.elapsed {
                    let wait = self.jitter.up_to(wait);
                    self.acquire_at = at.elapsed.saturating_add(wait);
                }
            }
            StoreError::Ambiguous { .. } => {
                // Whether its end was moved is unknown, but not whose the block
                // is: it may be released.
                self.drain(renew, true);
                self.store_fails(at, error);
            }
            // The error concerns one block, not the store.
            StoreError::Invalid { .. } | StoreError::Corrupt { .. } => {
                self.replied();
                let renew_at = self.slowly(at);
                if let Some(held) = self.holdings.iter_mut().find(|h| h.is_subject_of(renew)) {
                    held.postpone(renew_at);
                }
                note(&mut self.store_failing, at, error);
            }
            _ => self.store_fails(at, error),
        }
    }

    /// Stops renewing a grant, for good.
    fn drain(&mut self, renew: &Renew, is_last: bool) {
        if let Some(held) = self.holdings.iter_mut().find(|h| h.is_subject_of(renew)) {
            held.state = GrantState::Draining;
            held.is_last = is_last;
        }
    }

    /// A reply came. The next failure still counts with those before it: an
    /// overloaded store answers now and then.
    fn replied(&mut self) {
        self.backoff.until = Duration::ZERO;
        self.enter(Mode::Asking);
    }

    /// A reply of the kind that leases need came back.
    fn store_works(&mut self) {
        self.backoff.succeed();
        self.enter(Mode::Asking);
        self.store_failing = None;
    }

    /// The store serves no request at the moment, of whatever kind.
    fn store_fails(&mut self, at: Moment, error: StoreError) {
        let longest = self.timing.longest_step(self.held_left(at));
        let (now, jitter) = (at.elapsed, &mut self.jitter);
        match error {
            StoreError::Unavailable { .. } => self.backoff.fail(now, longest, jitter),
            StoreError::Ambiguous { .. } => {
                // The store may be overloaded. If every process of a fleet
                // retries at this rate, that is no more requests than their
                // top-ups are.
                self.backoff
                    .fail(now, longest.max(self.timing.period), jitter);
                self.enter(Mode::Unsure);
            }
            _ => {
                self.backoff.slow_down(now, &self.timing, jitter);
                self.enter(Mode::Asking);
            }
        }
        note(&mut self.store_failing, at, error);
    }

    /// How much is left of the held grant that ends first.
    fn held_left(&self, at: Moment) -> Duration {
        let layout = self.namespace.layout();
        let held = self.holdings.iter().filter(|held| held.counts());
        let left = held.map(|held| held.left_ms(layout, at.unix_ms)).min();
        Duration::from_millis(left.unwrap_or(0))
    }

    fn acquire_fails(&mut self, at: Moment, error: StoreError) {
        note(&mut self.acquire_failing, at, error);
    }

    fn slowly(&mut self, at: Moment) -> Duration {
        at.elapsed
            .saturating_add(self.timing.slowly(&mut self.jitter))
    }

    /// After the time that the store advises, but within a top-up period, and
    /// spread over the processes that got the same advice.
    fn spread(&mut self, at: Moment, retry_after: Duration) -> Duration {
        let earliest = retry_after.min(self.timing.period);
        let breadth = self.breadth(at).max(earliest / 2);
        let wait = self.jitter.between(earliest, earliest + breadth);
        at.elapsed.saturating_add(wait.max(RenewTiming::FIRST))
    }

    /// How far to spread an acquisition: widely while something is in force.
    fn breadth(&self, at: Moment) -> Duration {
        if self.serves(at) {
            self.timing.period / 2
        } else {
            self.timing.slow
        }
    }
}

/// Records a failure. It began when the first of its kind did.
fn note(failing: &mut Option<Failing>, at: Moment, error: StoreError) {
    let since_unix_ms = failing
        .as_ref()
        .map_or(at.unix_ms, |failing| failing.since_unix_ms);
    *failing = Some(Failing {
        since_unix_ms,
        error: Arc::new(error),
    });
}

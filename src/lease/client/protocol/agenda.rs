//! The choice of the next request, and its time.

use std::time::Duration;

use super::{Demand, Flight, GrantState, Holding, Manager, Mode, Moment, Request, Step};
use crate::lease::{Acquire, MAX_ACQUIRE, Renew};

/// The requests to choose from.
enum Task {
    Check,
    Renew(Renew),
    Acquire,
}

impl Manager {
    /// Adjusts the target to the demand, and the held grants to the target.
    pub(super) fn follow_demand(&mut self, at: Moment, demand: Demand) {
        self.judge_reach(at, demand);
        let mut held = self.held();
        if !self.reach_ahead.is_lost {
            self.width.follow(at.elapsed, held, demand, &self.timing);
        }
        let target = self.width.target as usize;
        while held > target {
            let ends_first = self
                .within_reach(GrantState::Held)
                .min_by_key(|h| h.grant.ticks.end);
            let Some(spare) = ends_first else { break };
            spare.state = GrantState::Lapsing;
            held -= 1;
        }
        while held < target {
            let ends_last = self
                .within_reach(GrantState::Lapsing)
                .max_by_key(|h| h.grant.ticks.end);
            let Some(spare) = ends_last else { break };
            spare.state = GrantState::Held;
            spare.postpone(at.elapsed);
            held += 1;
        }
        if held >= target {
            self.acquire_failing = None;
        }
    }

    /// The request that is overdue for longest, or the time until one is due.
    pub(super) fn choose(&mut self, at: Moment, demand: Demand) -> Step {
        let held = self.held();
        let missing = (self.width.target as usize)
            .saturating_sub(held)
            .min(demand.room);
        let (due, task) = self.overdue_longest(at, missing > 0);
        let mut next_attempt = due.max(self.backoff.until);
        if next_attempt > at.elapsed.saturating_add(self.timing.lease_duration) {
            // No request is planned that far ahead. The monotonic clock went back:
            // the process was restored on another machine.
            next_attempt = at.elapsed;
        }
        if next_attempt <= at.elapsed {
            return self.ask(match task {
                Task::Check => Request::Check {
                    now_unix_ms: at.unix_ms,
                },
                Task::Renew(renew) => Request::Renew(renew),
                Task::Acquire => self.acquisition(at, missing),
            });
        }
        if self.backoff.until <= at.elapsed
            && let Some((block, epoch)) = self.to_release.pop_front()
        {
            return self.ask(Request::Release { block, epoch });
        }
        let until = |then: Duration| then.saturating_sub(at.elapsed);
        let changes_at = match self.reach_ahead.is_lost {
            true => None,
            false => self.width.changes_at(held, demand, &self.timing),
        };
        let wait = [
            Some(until(next_attempt)),
            changes_at.map(until),
            self.until_something_passes(at),
        ];
        let wait = wait.into_iter().flatten().min().unwrap_or_default();
        Step::Wait(wait.max(Duration::from_millis(1)))
    }

    fn overdue_longest(&self, at: Moment, is_missing: bool) -> (Duration, Task) {
        if self.mode == Mode::Unsure {
            return (Duration::ZERO, Task::Check);
        }
        let renewals = self
            .holdings
            .iter()
            .filter(|held| held.is_held())
            .map(|held| {
                let due = held.due(at, self.layout());
                (due, Task::Renew(self.renewal(at, held)))
            });
        let acquisition = is_missing.then_some((self.acquire_at, Task::Acquire));
        renewals
            .chain(acquisition)
            .min_by_key(|(due, _)| *due)
            // Nothing is held, and there is no room.
            .unwrap_or((
                at.elapsed.saturating_add(self.timing.lease_duration),
                Task::Check,
            ))
    }

    /// To the clock plus the lease duration, and never to a tick before the known end, even if
    /// the clock was set back.
    fn renewal(&self, at: Moment, held: &Holding) -> Renew {
        let layout = self.layout();
        let wish = layout.tick_at(at.unix_ms).unwrap_or(0);
        let wish = wish.saturating_add(self.lease_ticks()).min(layout.ticks());
        let new_end = wish.max(held.grant.ticks.end);
        Renew::new(&held.grant, new_end, at.unix_ms)
    }

    fn acquisition(&self, at: Moment, missing: usize) -> Request {
        let blocks = u32::try_from(missing).unwrap_or(u32::MAX).min(MAX_ACQUIRE);
        let acquire =
            Acquire::new(blocks, self.lease_ticks(), at.unix_ms).with_evidence(self.evidence.all());
        Request::Acquire(match &self.plan.holder {
            Some(holder) => acquire.held_by(holder.clone()),
            None => acquire,
        })
    }

    /// The lease duration in ticks, and one more for the tick that is half over.
    fn lease_ticks(&self) -> u64 {
        let lease_ms = u64::try_from(self.plan.lease_duration.as_millis()).unwrap_or(u64::MAX);
        lease_ms.div_ceil(self.layout().tick_ms()).saturating_add(1)
    }

    pub(super) fn ask(&mut self, request: Request) -> Step {
        self.flight = Some(Flight {
            request: request.clone(),
            void: false,
        });
        Step::Ask(request)
    }

    /// The time until the clock closes a grant, or passes the end of the last
    /// one.
    pub(super) fn until_something_passes(&self, at: Moment) -> Option<Duration> {
        let left = |held: &Holding| held.left_ms(self.layout(), at.unix_ms);
        let closes = self
            .holdings
            .iter()
            .filter(|held| !held.is_held())
            .map(left)
            .min();
        let expires = self.holdings.iter().map(left).max();
        let passes = [closes, expires].into_iter().flatten();
        let next = passes.filter(|left| *left > 0).min();
        next.map(Duration::from_millis)
    }
}

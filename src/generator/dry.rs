//! The rest of a take that has found the ring dry.

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::time::Duration;

use super::cached::CachedGenerator;
use super::empty::{OnEmpty, RingEmpty, TakeError};
use crate::events;
use crate::fill::RecallMark;
use crate::id::Id;
use crate::timeline::Refused;
use crate::unwind::Undo;

impl CachedGenerator {
    /// A take that was not done at once.
    #[cold]
    #[inline(never)]
    pub(super) fn take_slowly(&self) -> Result<Id, TakeError> {
        if let Some(id) = self.filler.take_slowly() {
            return Ok(id);
        }
        let mut id = [Id::default()];
        self.take_batch_dry(&mut id, 0, self.filler.recall_mark())?;
        Ok(id[0])
    }

    /// The rest of a take that got `have` IDs out of a ring that then was dry.
    #[cold]
    pub(super) fn take_batch_dry(
        &self,
        out: &mut [Id],
        have: usize,
        mark: RecallMark,
    ) -> Result<usize, TakeError> {
        match self.find_dry(out, have, mark) {
            Dry::Done(outcome) => outcome,
            Dry::Waits(timeout) => self.conclude(self.wait(out, timeout)),
        }
    }

    /// The same up to where it has to wait.
    pub(super) fn find_dry(&self, out: &mut [Id], have: usize, mark: RecallMark) -> Dry {
        if self.is_forked() {
            return Dry::Done(Err(Refused::Forked.into()));
        }
        self.shared.dry.ran_dry();
        let (had, rest) = out.split_at_mut(have);
        // If a hook, a clock or a subscriber panics, the IDs taken so far go
        // back.
        let taken = Undo(move || self.give_back(had, mark));
        events::ran_dry(&self.shared.ran_dry);
        let answer = self.shared.on_empty;
        if let Some(hook) = &self.shared.hook {
            let empties = self.shared.dry.empties();
            hook(RingEmpty { empties, answer });
        }
        let outcome = match answer {
            OnEmpty::Generate => self.generate(rest, mark),
            // Some are better at once than all of them later.
            OnEmpty::Error | OnEmpty::Wait(_) if have > 0 => Ok(0),
            OnEmpty::Error => match self.filler.take_last(rest) {
                0 => Err(self.reason().map_or(TakeError::Empty, TakeError::Refused)),
                last => Ok(last),
            },
            OnEmpty::Wait(timeout) => {
                // It has none.
                taken.keep();
                return Dry::Waits(timeout);
            }
        };
        taken.keep();
        Dry::Done(self.conclude(match outcome {
            Ok(got) => Ok(have + got),
            Err(_) if have > 0 => Ok(have),
            Err(error) => Err(error),
        }))
    }

    /// The outcome of a take, after its last call of a hook, a clock, a subscriber or a
    /// waker: if one of them forked, the IDs that the take has are the parent's. Counts the
    /// take if it failed.
    pub(super) fn conclude(&self, outcome: Result<usize, TakeError>) -> Result<usize, TakeError> {
        if self.is_forked() {
            return Err(Refused::Forked.into());
        }
        if let Err(error) = outcome {
            self.shared.dry.failed(error);
        }
        outcome
    }

    /// Takes once there are IDs in the ring, or gives up.
    fn wait(&self, out: &mut [Id], timeout: Duration) -> Result<usize, TakeError> {
        let took = self.filler.wait(timeout, || self.attempt(out));
        took.unwrap_or_else(|| {
            let timed_out = TakeError::TimedOut { waited: timeout };
            Err(self.reason().map_or(timed_out, TakeError::Refused))
        })
    }

    /// One attempt of a take that waits: none if it has to go on waiting.
    pub(super) fn attempt(&self, out: &mut [Id]) -> Option<Result<usize, TakeError>> {
        let attempt = self.filler.attempt(out)?;
        Some(attempt.map_err(TakeError::Refused))
    }

    /// Why no ID can be made at the moment, if none can.
    fn reason(&self) -> Option<Refused> {
        self.filler.source().timeline().refused_now()
    }

    /// Makes IDs in place; fewer than asked for at a limit, but at least one.
    fn generate(&self, out: &mut [Id], mark: RecallMark) -> Result<usize, TakeError> {
        let mut done = 0;
        while done < out.len() {
            let (had, rest) = out.split_at_mut(done);
            // If a clock panics now, they go into the ring.
            let taken = Undo(move || self.give_back(had, mark));
            match self.filler.make_in_place(rest) {
                Ok(made) => {
                    self.shared.dry.made_in_place(made);
                    done += made.given;
                }
                Err(refused) => {
                    // The timeline is at its limit, but IDs claimed before may
                    // have reached the ring meanwhile, or lie in a core's stock.
                    match self.filler.take_last(rest) {
                        0 if done > 0 => {
                            taken.keep();
                            break;
                        }
                        0 => {
                            events::refused(&self.shared.refused, refused);
                            return Err(refused.into());
                        }
                        count => done += count,
                    }
                }
            }
            taken.keep();
        }
        Ok(done)
    }
}

/// How far a take has come that has found the ring dry.
pub(super) enum Dry {
    Done(Result<usize, TakeError>),
    /// It has none, and waits: at most for this long, if it blocks its thread.
    Waits(Duration),
}

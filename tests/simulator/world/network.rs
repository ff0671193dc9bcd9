//! Requests and replies on their way.

use ringflake::lease::protocol::{Answer, Request};

use super::queue::{Event, Message};
use super::{Flight, Twin, World};
use crate::coverage::Coverage;
use crate::errors::{ambiguous, unavailable};
use crate::mutations::Mutation;
use crate::oracle::Violation;
use crate::scenario::{SKEW_MS, TIMEOUT_MS};
use crate::service::Caller;

impl World {
    pub(super) fn send(&mut self, index: usize, request: Request, again: bool) {
        let primary = self.service.primary();
        let process = &mut self.processes[index];
        process.flight = Some(Flight {
            number: process.number,
            request: request.clone(),
            void: false,
            again,
        });
        if matches!(request, Request::Acquire(_))
            && let Some(hook) = process.copy_at_acquire.take()
        {
            let process = index;
            let soon_ms = self.now_ms + self.random.below(30);
            self.queue.push(soon_ms, Event::Copy { process, hook });
        }
        let process = &mut self.processes[index];
        if self.now_ms >= process.reroute_at_ms {
            process.server = primary;
        }
        let broken_clock = process.ahead_ms.unsigned_abs() > SKEW_MS;
        let message = Message {
            process: index,
            number: process.number,
            server: process.server,
            caller: Caller {
                token: process.token(),
                broken_clock,
            },
            told: self.oracle.told(index),
            request,
        };
        let cut_off = self.now_ms < process.cut_off_until_ms;
        let number = message.number;
        if cut_off || !self.service.answers(message.server, self.now_ms) {
            self.processes[index].reroute_at_ms = self.now_ms;
            if self.random.chance(50) {
                let answer = unavailable(&message.request);
                self.deliver(index, number, answer);
                return;
            }
        } else if self.random.chance(self.scenario.lost) {
            self.tally.meet(Coverage::RequestLost);
        } else {
            if self.random.chance(self.scenario.twice) {
                self.tally.meet(Coverage::RequestTwice);
                let delay = self.delay();
                self.after(delay, Event::Arrive(Box::new(message.clone())));
            }
            let delay = self.delay();
            self.after(delay, Event::Arrive(Box::new(message)));
        }
        let process = index;
        self.after(TIMEOUT_MS, Event::TimeOut { process, number });
    }

    fn delay(&mut self) -> u64 {
        if self.random.chance(self.scenario.slow) {
            self.random.between(200, 4_000)
        } else {
            self.random.between(1, 40)
        }
    }

    fn deliver(&mut self, process: usize, number: u64, answer: Answer) {
        let delay = self.delay();
        self.after(
            delay,
            Event::Reply {
                process,
                number,
                answer,
            },
        );
    }

    pub(super) fn arrive(&mut self, message: Message) -> Result<(), Violation> {
        let Message {
            process,
            number,
            server,
            caller,
            told,
            request,
        } = message;
        if !self.service.answers(server, self.now_ms) {
            return Ok(());
        }
        let (now_ms, oracle) = (self.now_ms, &mut self.oracle);
        if server != self.service.primary() {
            self.tally.meet(Coverage::OldPrimary);
        }
        let answer = self
            .service
            .execute(server, now_ms, caller, &request, &told, oracle)?;
        if self.trace {
            println!("       server {server} answers {answer:?}");
        }
        self.mix(process as u64);
        self.mix(number);
        match &answer {
            Answer::Acquired(Ok(grants)) => {
                for grant in grants {
                    self.mix(grant.block.index());
                    self.mix(grant.epoch.get());
                    self.mix(grant.ticks.start);
                    self.mix(grant.ticks.end);
                }
            }
            Answer::Renewed(Ok(end)) => self.mix(*end),
            _ => {}
        }
        let cut_off = self.now_ms < self.processes[process].cut_off_until_ms;
        if cut_off || self.random.chance(self.scenario.lost) {
            self.tally.meet(Coverage::ReplyLost);
        } else {
            if self.random.chance(self.scenario.twice)
                && let Some(copy) = copy_of(&answer)
            {
                self.tally.meet(Coverage::ReplyTwice);
                self.deliver(process, number, copy);
            }
            self.deliver(process, number, answer);
        }
        Ok(())
    }

    pub(super) fn reply(
        &mut self,
        index: usize,
        number: u64,
        answer: Answer,
    ) -> Result<(), Violation> {
        let process = &self.processes[index];
        if process.dead {
            return Ok(());
        }
        if process.paused_until_ms > self.now_ms {
            let resumes_ms = process.paused_until_ms + self.random.below(3);
            let process = index;
            self.queue.push(
                resumes_ms,
                Event::Reply {
                    process,
                    number,
                    answer,
                },
            );
            return Ok(());
        }
        let Some(flight) = process.flight.clone() else {
            return Ok(());
        };
        if flight.number != number {
            self.tally.meet(Coverage::ReplyLate);
            let same_kind = matches!(
                (&flight.request, &answer),
                (Request::Acquire(_), Answer::Acquired(_))
                    | (Request::Renew(_), Answer::Renewed(_))
            );
            if self.mutation == Some(Mutation::TakesLateReplies) && same_kind {
                return self.answer(index, Some(answer));
            }
            return Ok(());
        }
        self.share_with_twin(index, number, &answer);
        if flight.void {
            self.tally.meet(Coverage::ReplyVoid);
        } else {
            match (&flight.request, &answer) {
                (Request::Acquire(_), Answer::Acquired(Ok(grants))) => {
                    grants
                        .iter()
                        .for_each(|grant| self.oracle.confirm(index, grant));
                }
                (Request::Renew(renew), Answer::Renewed(Ok(end))) => {
                    self.oracle.confirm_end(index, renew, *end);
                }
                _ => {}
            }
        }
        self.answer(index, Some(answer))
    }

    /// A reply that reaches a process may reach its copy as well, where both wait
    /// for it.
    fn share_with_twin(&mut self, index: usize, number: u64, answer: &Answer) {
        let waits = |twin: &Twin| (twin.original, twin.number) == (index, number);
        let Some(at) = self.twins.iter().position(waits) else {
            return;
        };
        let Twin { copy, hook, .. } = self.twins.swap_remove(at);
        let Some(shared) = copy_of(answer) else {
            return;
        };
        if !hook {
            match (&shared, self.processes[copy].flight.as_ref()) {
                (Answer::Acquired(Ok(grants)), _) => {
                    for grant in grants {
                        self.oracle.allow(grant.block, grant.ticks.clone());
                    }
                }
                (Answer::Renewed(Ok(end)), Some(flight)) => {
                    if let Request::Renew(renew) = &flight.request {
                        self.oracle.allow(renew.block, renew.known_end..*end);
                    }
                }
                _ => {}
            }
        }
        self.tally.meet(Coverage::ReplyToBoth);
        self.deliver(copy, number, shared);
    }

    /// Hands an answer to a manager; none when the wait is over.
    pub(super) fn answer(&mut self, index: usize, answer: Option<Answer>) -> Result<(), Violation> {
        let Some(flight) = self.processes[index].flight.as_ref() else {
            return Ok(());
        };
        let answer = answer.unwrap_or_else(|| ambiguous(&flight.request));
        let wanted = match &flight.request {
            Request::Acquire(acquire) => acquire.blocks as usize,
            _ => 0,
        };
        self.tally.answer(&answer, wanted);
        let (process, service) = (&mut self.processes[index], &mut self.service);
        let server = process.server;
        let again = process.answer(self.now_ms, answer, || service.listing(server));
        if let Some(request) = again {
            self.send(index, request, true);
            return Ok(());
        }
        self.drive(index)
    }
}

/// Only positive replies are worth repeating.
fn copy_of(answer: &Answer) -> Option<Answer> {
    match answer {
        Answer::Acquired(Ok(grants)) => Some(Answer::Acquired(Ok(grants.clone()))),
        Answer::Renewed(Ok(end)) => Some(Answer::Renewed(Ok(*end))),
        _ => None,
    }
}

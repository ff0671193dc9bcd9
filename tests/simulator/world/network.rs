//! Requests and replies on their way.

use ringflake::lease::protocol::{Answer, Request};

use super::queue::Event;
use super::{Twin, World};
use crate::errors::{ambiguous, unavailable};
use crate::mutations::Mutation;
use crate::oracle::Violation;
use crate::process::Flight;
use crate::scenario::{SKEW_MS, TIMEOUT_MS};
use crate::service::Message;

impl World {
    pub(super) fn send(&mut self, index: usize, request: Request, again: bool) {
        let now_ms = self.now_ms;
        let process = &mut self.processes[index];
        let number = process.number;
        process.flight = Some(Flight {
            number,
            request: request.clone(),
            void: false,
            again,
        });
        if matches!(request, Request::Acquire(_))
            && let Some(hook) = process.copy_at_acquire.take()
        {
            let process = index;
            let soon_ms = now_ms + self.random.below(30);
            self.queue.push(soon_ms, Event::Copy { process, hook });
        }
        if now_ms >= process.reroute_at_ms {
            process.server = self.service.primary();
        }
        let cut_off = now_ms < process.cut_off_until_ms;
        let message = Message {
            process: index,
            number,
            server: process.server,
            token: process.token(),
            broken_clock: process.ahead_ms.unsigned_abs() > SKEW_MS,
            known: self.oracle.known(index),
            request,
        };
        if cut_off || !self.service.answers(message.server, now_ms) {
            process.reroute_at_ms = now_ms;
            if self.random.chance(50) {
                self.deliver(index, number, message.request.failed(unavailable()));
                return;
            }
        } else if self.random.chance(self.scenario.lost) {
            self.tally.meet("request lost");
        } else {
            if self.random.chance(self.scenario.twice) {
                self.tally.meet("request delivered twice");
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
        let reply = Event::Reply {
            process,
            number,
            answer,
        };
        self.after(delay, reply);
    }

    pub(super) fn arrive(&mut self, message: Message) -> Result<(), Violation> {
        let Message {
            process,
            number,
            server,
            ..
        } = message;
        let now_ms = self.now_ms;
        if !self.service.answers(server, now_ms) {
            return Ok(());
        }
        if server != self.service.primary() {
            self.tally.meet("answered by a superseded primary");
        }
        let answer = self.service.execute(now_ms, &message, &mut self.oracle)?;
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
        let cut_off = now_ms < self.processes[process].cut_off_until_ms;
        if cut_off || self.random.chance(self.scenario.lost) {
            self.tally.meet("reply lost");
            return Ok(());
        }
        if self.random.chance(self.scenario.twice)
            && let Some(copy) = copy_of(&answer)
        {
            self.tally.meet("reply delivered twice");
            self.deliver(process, number, copy);
        }
        self.deliver(process, number, answer);
        Ok(())
    }

    pub(super) fn reply(
        &mut self,
        index: usize,
        number: u64,
        answer: Answer,
    ) -> Result<(), Violation> {
        let Some(flight) = self.processes[index].flight.clone() else {
            return Ok(());
        };
        if flight.number != number {
            self.tally.meet("reply after the time-out");
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
        match flight.void {
            true => self.tally.meet("reply after invalidate"),
            false => self.oracle.confirm(index, &flight.request, &answer),
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
        let flight = self.processes[copy].flight.as_ref();
        match (&shared, flight.map(|flight| &flight.request)) {
            _ if hook => {}
            (Answer::Acquired(Ok(grants)), _) => {
                for grant in grants {
                    self.oracle.allow(grant.block, grant.ticks.clone());
                }
            }
            (Answer::Renewed(Ok(end)), Some(Request::Renew(renew))) => {
                self.oracle.allow(renew.block, renew.known_end..*end);
            }
            _ => {}
        }
        self.tally.meet("reply to both copies");
        self.deliver(copy, number, shared);
    }

    /// Hands an answer to a manager; none when the wait is over.
    pub(super) fn answer(&mut self, index: usize, answer: Option<Answer>) -> Result<(), Violation> {
        let process = &mut self.processes[index];
        let Some(Flight { request, .. }) = &process.flight else {
            return Ok(());
        };
        let answer = answer.unwrap_or_else(|| request.failed(ambiguous()));
        let wanted = match request {
            Request::Acquire(acquire) => acquire.blocks as usize,
            _ => 0,
        };
        self.tally.answer(&answer, wanted);
        let server = process.server;
        let listing = || self.service.listing(server);
        if let Some(request) = process.answer(self.now_ms, answer, listing) {
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

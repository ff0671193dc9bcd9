//! The faults of a world.

use super::queue::Event;
use super::{Twin, World};
use crate::mutations::Mutation;
use crate::oracle::Violation;
use crate::process::Flight;
use crate::scenario::{ALIVE_MS, Fault, SKEW_MS, TIMEOUT_MS, client_jump, server_jump};

impl World {
    fn victim(&mut self) -> Option<usize> {
        let alive = self.processes.iter().filter(|process| process.is_alive());
        let alive: Vec<_> = alive.map(|process| process.index).collect();
        (!alive.is_empty()).then(|| self.random.pick(&alive))
    }

    pub(super) fn strike(&mut self, fault: Fault) -> Result<(), Violation> {
        let now_ms = self.now_ms;
        if now_ms >= self.scenario.calm_ms {
            return Ok(());
        }
        match fault {
            Fault::Replicate => self.service.replicate(),
            Fault::FailOver => {
                let ahead_ms = self.random.around(SKEW_MS);
                self.service.fail_over(now_ms, ahead_ms);
                for process in &mut self.processes {
                    process.reroute_at_ms = now_ms;
                    // One that sleeps finds the new primary when it awakes.
                    if process.paused_until_ms <= now_ms {
                        process.reroute_at_ms += self.random.below(ALIVE_MS + 1_000);
                    }
                }
            }
            Fault::FailOverBehindSleeper => {
                self.service.replicate();
                let Some(sleeper) = self.victim() else {
                    return Ok(());
                };
                let sleeps_ms = self.random.between(9_000, 16_000);
                let until_ms = (now_ms + sleeps_ms).min(self.scenario.calm_ms);
                let greed_ms = now_ms + self.random.between(8_000, 16_000);
                for process in &mut self.processes {
                    process.busy_until_ms = greed_ms;
                }
                // One that sleeps already, as a suspended machine does, awakes no sooner.
                let sleeper = &mut self.processes[sleeper];
                sleeper.paused_until_ms = sleeper.paused_until_ms.max(until_ms);
                let soon = sleeps_ms - self.random.below(3_000);
                self.after(soon, Event::Strike(Fault::FailOver));
            }
            Fault::Backup => self.service.back_up(),
            Fault::RollBack => self.service.roll_back(&mut self.oracle),
            Fault::Restart => self.service.restart(now_ms, false),
            Fault::Reincarnate => self.service.restart(now_ms, true),
            Fault::ServerClock => {
                let ahead_ms = match self.random.below(3) {
                    0 => 0,
                    _ => server_jump(&mut self.random),
                };
                self.service.set_clock(ahead_ms);
            }
            Fault::RaiseFloor => {
                let by = self.random.chance(60).then(|| self.random.below(8));
                self.service.raise_floor(now_ms, by);
            }
            Fault::Damage => {
                if !self.service.damage(self.random.roll()) {
                    return Ok(());
                }
            }
            Fault::Repair => {
                if self.service.repair(now_ms) == 0 {
                    return Ok(());
                }
            }
            Fault::Import => self.import()?,
            Fault::Impostor => self.service.resist(now_ms, self.oracle.watch)?,
            fault => {
                let Some(victim) = self.victim() else {
                    return Ok(());
                };
                self.strike_process(victim, fault)?;
            }
        }
        self.tally.meet(format!("{fault:?}"));
        Ok(())
    }

    fn import(&mut self) -> Result<(), Violation> {
        let random = &mut self.scenario.imports;
        let answer = self.service.import(self.now_ms, random, &mut self.oracle)?;
        if self.trace {
            println!("       an import is answered {answer:?}");
        }
        match answer {
            Some(Ok(grants)) => {
                self.tally.meet("past granted");
                for grant in grants {
                    self.mix(grant.block.index());
                    self.mix(grant.epoch.get());
                    self.mix(grant.ticks.start);
                }
            }
            Some(Err(error)) => self.tally.refusal(&error),
            None => {}
        }
        Ok(())
    }

    fn strike_process(&mut self, victim: usize, fault: Fault) -> Result<(), Violation> {
        let now_ms = self.now_ms;
        let longer = self.random.between(1_000, 16_000);
        let process = &mut self.processes[victim];
        match fault {
            Fault::Partition => process.cut_off_until_ms = now_ms + longer,
            Fault::Pause if process.paused_until_ms <= now_ms => {
                let until_ms = (now_ms + longer).min(self.scenario.calm_ms);
                process.paused_until_ms = until_ms;
                if self.random.chance(50) {
                    // Not a stopped process but a suspended machine: its monotonic
                    // clock stands still.
                    process.suspended_ms += until_ms - now_ms;
                }
            }
            Fault::Busy => process.busy_until_ms = now_ms + longer,
            Fault::ClientClock => process.ahead_ms = client_jump(&mut self.random),
            Fault::RestartGenerator => process.restart_generator(),
            Fault::Crash | Fault::ShutDown => {
                if fault == Fault::Crash {
                    process.dead = true;
                } else {
                    process.release();
                }
                let name = victim % self.scenario.processes;
                self.after(longer / 8, Event::Start { name });
            }
            Fault::Clone | Fault::CloneWithHook => {
                let hook = fault == Fault::CloneWithHook;
                if self.random.chance(30) {
                    process.copy_at_acquire = Some(hook);
                } else {
                    self.copy(victim, hook);
                }
            }
            // The child has its parent's memory, and no keeper. It issues nothing;
            // one that did would show at once.
            Fault::Fork if self.mutation == Some(Mutation::ForkedChildIssues) => {
                let mut child = process.clone();
                child.index = self.oracle.copy(victim);
                child.issue(now_ms, &mut self.random, &mut self.oracle)?;
                child.dead = true;
                self.processes.push(child);
            }
            _ => {}
        }
        Ok(())
    }

    /// Resumes a snapshot of a process beside it.
    pub(super) fn copy(&mut self, original: usize, hook: bool) {
        if self.processes[original].dead {
            return;
        }
        let mut copy = self.processes[original].clone();
        copy.copy_at_acquire = None;
        copy.index = self.oracle.copy(original);
        let index = copy.index;
        self.service.copy_connections(original, index);
        if hook {
            copy.invalidate();
            if self.mutation != Some(Mutation::KeepsGrantsAtResume) {
                self.oracle.forget(index);
            }
        } else {
            self.oracle.allow_common(original, &copy.open_grants());
        }
        if let Some(Flight { number, .. }) = copy.flight {
            if self.random.chance(50) {
                self.twins.push(Twin {
                    original,
                    number,
                    copy: index,
                    hook,
                });
            }
            let process = index;
            self.after(TIMEOUT_MS, Event::TimeOut { process, number });
        }
        self.processes.push(copy);
        let soon = self.random.below(500);
        self.set_alarm(index, soon);
    }

    pub(super) fn calm(&mut self) {
        self.scenario.lost = 0;
        self.scenario.twice = 0;
        self.scenario.slow = 0;
        if !self.scenario.loses_history {
            self.service.set_clock(0);
        }
        for process in &mut self.processes {
            process.ahead_ms = self.random.around(400);
            process.cut_off_until_ms = 0;
            process.busy_until_ms = 0;
        }
    }
}

//! What goes wrong.

use super::queue::Event;
use super::{Twin, World};
use crate::coverage::Coverage;
use crate::mutations::Mutation;
use crate::oracle::Violation;
use crate::process::Process;
use crate::scenario::{ALIVE_MS, Fault, SKEW_MS, TIMEOUT_MS, client_jump, server_jump};

impl World {
    /// A process that is alive, if there is one.
    fn victim(&mut self) -> Option<usize> {
        let alive = |process: &&Process| !process.dead && !process.stopping;
        let alive: Vec<_> = self
            .processes
            .iter()
            .filter(alive)
            .map(|p| p.index)
            .collect();
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
                self.tally.meet(Coverage::FailOver);
                let ahead_ms = self.random.around(SKEW_MS);
                self.service.fail_over(now_ms, ahead_ms);
                for process in &mut self.processes {
                    // One that sleeps finds the new primary when it awakes.
                    let awake = process.paused_until_ms <= now_ms;
                    let notices_ms = if awake {
                        self.random.below(ALIVE_MS + 1_000)
                    } else {
                        0
                    };
                    process.reroute_at_ms = now_ms + notices_ms;
                }
            }
            Fault::FailOverBehindSleeper => {
                self.service.replicate();
                if let Some(sleeper) = self.victim() {
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
            }
            Fault::Backup => self.service.back_up(),
            Fault::RollBack => {
                self.tally.meet(Coverage::RollBack);
                self.service.roll_back(&mut self.oracle);
            }
            Fault::Restart | Fault::Reincarnate => {
                self.tally.meet(Coverage::Restart);
                self.service.restart(now_ms, fault == Fault::Reincarnate);
            }
            Fault::ServerClock => {
                self.tally.meet(Coverage::ServerClock);
                let ahead_ms = match self.random.below(3) {
                    0 => 0,
                    _ => server_jump(&mut self.random),
                };
                self.service.set_clock(ahead_ms);
            }
            Fault::RaiseFloor => {
                self.tally.meet(Coverage::RaiseFloor);
                let by = self.random.chance(60).then(|| self.random.below(8));
                self.service.raise_floor(now_ms, by);
            }
            Fault::Damage => {
                let which = self.random.roll();
                if self.service.damage(which) {
                    self.tally.meet(Coverage::Damage);
                }
            }
            Fault::Repair => {
                if self.service.repair(now_ms) > 0 {
                    self.tally.meet(Coverage::Repair);
                }
            }
            Fault::Impostor => {
                self.tally.meet(Coverage::Impostor);
                self.service.resist(now_ms, self.oracle.watch)?;
            }
            fault => {
                if let Some(victim) = self.victim() {
                    self.strike_process(victim, fault)?;
                }
            }
        }
        Ok(())
    }

    fn strike_process(&mut self, victim: usize, fault: Fault) -> Result<(), Violation> {
        let now_ms = self.now_ms;
        let longer = self.random.between(1_000, 16_000);
        self.tally.meet(match fault {
            Fault::Partition => Coverage::Partition,
            Fault::Pause => Coverage::Pause,
            Fault::Busy => Coverage::Busy,
            Fault::ClientClock => Coverage::ClientClock,
            Fault::RestartGenerator => Coverage::RestartGenerator,
            Fault::Crash => Coverage::Crash,
            Fault::ShutDown => Coverage::ShutDown,
            Fault::Clone => Coverage::Clone,
            Fault::CloneWithHook => Coverage::CloneWithHook,
            _ => Coverage::Fork,
        });
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
            Fault::Crash => {
                process.dead = true;
                let name = victim % self.scenario.processes;
                self.after(longer / 8, Event::Start { name });
            }
            Fault::ShutDown => {
                process.release();
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
        if hook {
            copy.invalidate();
            self.oracle_forgets(index);
        } else {
            self.oracle.allow_common(original, &copy.open_grants());
        }
        if let Some(flight) = &copy.flight {
            let number = flight.number;
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

    fn oracle_forgets(&mut self, process: usize) {
        if self.mutation != Some(Mutation::KeepsGrantsAtResume) {
            self.oracle.forget(process);
        }
    }

    /// Ends all faults.
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

//! One schedule: processes, a network and a service, driven by a queue of events.

mod faults;
mod network;
mod queue;

use ringflake::lease::Holder;
use ringflake::lease::protocol::{Manager, Step};
use ringflake_kit::split_mix::SplitMix64;

use self::queue::{Event, Queue};
use crate::coverage::Tally;
use crate::mutations::{Mutation, Promise};
use crate::oracle::{Oracle, Violation, Watch, broken};
use crate::process::Process;
use crate::scenario::Scenario;
use crate::service::Service;

#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) steps: u64,
    /// The same for the same events.
    pub(crate) digest: u64,
    pub(crate) tally: Tally,
    pub(crate) violation: Option<Violation>,
}

pub(crate) struct World {
    scenario: Scenario,
    random: SplitMix64,
    mutation: Option<Mutation>,
    now_ms: u64,
    queue: Queue,
    steps: u64,
    digest: u64,
    service: Service,
    oracle: Oracle,
    processes: Vec<Process>,
    /// Copies that wait for the same replies as their originals.
    twins: Vec<Twin>,
    tally: Tally,
    trace: bool,
}

/// A copy that may get a reply to a request of its original.
struct Twin {
    original: usize,
    number: u64,
    copy: usize,
    /// Whether a hook ran in the copy.
    hook: bool,
}

/// What to run, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) watch: Watch,
    /// Whether to print every event.
    pub(crate) trace: bool,
}

impl Run {
    /// The schedule of a seed, with every rule in place.
    pub(crate) fn sound(seed: u64) -> Self {
        Self {
            seed,
            mutation: None,
            watch: Watch::Promises,
            trace: false,
        }
    }

    /// The same without a rule.
    pub(crate) fn without(self, mutation: Mutation) -> Self {
        Self {
            mutation: Some(mutation),
            ..self
        }
    }

    pub(crate) fn outcome(self) -> Outcome {
        let mut random = SplitMix64::new(self.seed);
        let scenario = Scenario::new(&mut random);
        if self.trace {
            println!("{self:?}: {scenario:#?}");
        }
        let mut world = World {
            service: Service::new(self.mutation, &scenario),
            oracle: Oracle::new(scenario.namespace.blocks(), self.watch),
            scenario,
            random,
            mutation: self.mutation,
            now_ms: 0,
            queue: Queue::default(),
            steps: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            processes: Vec::new(),
            twins: Vec::new(),
            tally: Tally::default(),
            trace: self.trace,
        };
        let violation = world.run().err();
        for (what, times) in [
            ("events", world.steps),
            ("intervals given away", world.oracle.grants),
            ("cells issued", world.oracle.cells),
            // By copies without a hook, and by stores that forgot.
            ("cells issued twice", world.oracle.doubles),
            (
                "ticks given again before a loss was noticed",
                world.oracle.again,
            ),
        ] {
            world.tally.count(what, times);
        }
        Outcome {
            steps: world.steps,
            digest: world.digest,
            tally: world.tally,
            violation,
        }
    }
}

impl World {
    fn run(&mut self) -> Result<(), Violation> {
        for name in 0..self.scenario.processes {
            let at_ms = self.random.below(2_000);
            self.queue.push(at_ms, Event::Start { name });
        }
        for (at_ms, fault) in self.scenario.faults.clone() {
            self.queue.push(at_ms, Event::Strike(fault));
        }
        self.queue.push(self.scenario.calm_ms, Event::Calm);
        while let Some((at_ms, event)) = self.queue.pop() {
            if at_ms > self.scenario.end_ms {
                break;
            }
            self.now_ms = at_ms;
            self.steps += 1;
            if self.trace {
                println!("{at_ms:>6} {:>4} {event:?}", self.steps);
            }
            self.happen(event)?;
        }
        self.check_recovery()
    }

    fn after(&mut self, ms: u64, event: Event) {
        self.queue.push(self.now_ms + ms, event);
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Wake { process, alarm } if self.processes[process].alarm != alarm => {
                return Ok(());
            }
            Event::TimeOut { process, number } if !self.processes[process].awaits(number) => {
                return Ok(());
            }
            Event::Wake { process, .. }
            | Event::TimeOut { process, .. }
            | Event::Reply { process, .. } => {
                let process = &self.processes[process];
                if process.dead {
                    return Ok(());
                }
                if process.paused_until_ms > self.now_ms {
                    // Queued messages arrive in any order.
                    let at_ms = process.paused_until_ms + self.random.below(3);
                    self.queue.push(at_ms, event);
                    return Ok(());
                }
            }
            _ => {}
        }
        match event {
            Event::Wake { process, .. } => self.drive(process)?,
            Event::Arrive(message) => self.arrive(*message)?,
            Event::Reply {
                process,
                number,
                answer,
            } => self.reply(process, number, answer)?,
            Event::TimeOut { process, .. } => self.answer(process, None)?,
            Event::Strike(fault) => self.strike(fault)?,
            Event::Start { name } => self.start(name),
            Event::Copy { process, hook } => self.copy(process, hook),
            Event::Calm => self.calm(),
        }
        Ok(())
    }

    fn start(&mut self, name: usize) {
        let index = self.oracle.enter();
        let holder = Holder::new("simulated", name.to_string());
        let mut plan = self.scenario.plan.clone();
        plan.holder = Some(holder);
        let seed = self.random.roll();
        let manager = Manager::new(self.scenario.namespace.clone(), plan, seed);
        let manager = manager.expect("the plan is valid");
        let server = self.service.primary();
        let process = Process::new(index, manager, self.mutation, server, &mut self.random);
        self.processes.push(process);
        self.set_alarm(index, 0);
    }

    fn set_alarm(&mut self, process: usize, ms: u64) {
        self.processes[process].alarm += 1;
        let alarm = self.processes[process].alarm;
        self.after(ms, Event::Wake { process, alarm });
    }

    /// Lets a process issue IDs, and do what its manager says.
    fn drive(&mut self, index: usize) -> Result<(), Violation> {
        let process = &mut self.processes[index];
        if process.overslept(self.now_ms) {
            self.tally.meet("awake past the end of a lease");
        }
        process.issue(self.now_ms, &mut self.random, &mut self.oracle)?;
        match process.next(self.now_ms) {
            Step::Ask(request) => {
                process.number += 1;
                self.send(index, request, false);
            }
            Step::Wait(wait) => {
                let wait_ms = (wait.as_micros().div_ceil(1000) as u64).min(2_500);
                self.set_alarm(index, wait_ms);
            }
            Step::Done => process.dead = true,
        }
        Ok(())
    }

    /// Every process that is left must be served again by the end.
    fn check_recovery(&self) -> Result<(), Violation> {
        if !self.scenario.watch_recovery || self.oracle.watch == Watch::Duplicates {
            return Ok(());
        }
        let mut there = self.processes.iter().filter(|process| process.is_alive());
        let Some(process) = there.find(|process| !process.is_served(self.now_ms)) else {
            return Ok(());
        };
        let index = process.index;
        let detail = format!("process {index} has no grant in force long after all is well");
        broken(Promise::Live, detail)
    }

    fn mix(&mut self, word: u64) {
        let mixed = self.digest ^ word ^ (self.now_ms << 20);
        self.digest = mixed.wrapping_mul(0x0000_0100_0000_01b3).rotate_left(7);
    }
}

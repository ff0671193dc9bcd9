//! The workers of a scenario, and what they tell.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::resume_unwind;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ringflake::lease::{History, Init, LeaseStore, Namespace, OpenOptions, open};
use ringflake::{Clock as _, SystemClock};

use super::case::Record;
use super::grant_log::{GrantLog, Run};
use super::report::{Figures, Sample};
use super::wire::{self, Flaw, Line, Task};
use super::{Outcome, space};
use ringflake_kit::server::Clock;

/// The workers of a scenario.
pub(crate) const WORKERS: u32 = 8;

/// Turns a hang into a failure.
const DEADLINE: Duration = Duration::from_secs(90);

/// What a store says that finds less on record than it has confirmed.
const LOST: &str = "the store has lost what it confirmed";

/// The space of a scenario where there are far more blocks than workers: 128.
pub(crate) const WIDE: u32 = 9;
/// As many blocks as workers.
pub(crate) const NARROW: u32 = 5;
/// 16 blocks, twice as many as workers: whoever knows nothing of the eight that are
/// held takes these.
pub(crate) const TWICE_AS_MANY: u32 = 6;

/// What the workers of a scenario have in common.
pub(crate) struct Terms {
    pub(crate) node_bits: u32,
    /// How far ahead of its clock the store may grant.
    pub(crate) horizon: Duration,
    pub(crate) best_effort: bool,
    /// Every second worker takes more than there is.
    pub(crate) greedy: bool,
    /// Shown to all workers, or to every second one.
    pub(crate) clock: Option<(Clock, Shown)>,
    pub(crate) flaw: Option<Flaw>,
    /// The workers make the namespace, which they take for new at each start.
    pub(crate) takes_it_for_new: bool,
}

/// Who shows the clock of the scenario, and not the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    All,
    Half,
}

impl Terms {
    /// As usual, in a space of so many node bits.
    pub(crate) fn of(node_bits: u32) -> Self {
        Self {
            node_bits,
            ..Self::default()
        }
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            node_bits: WIDE,
            horizon: space::HORIZON,
            best_effort: false,
            greedy: true,
            clock: None,
            flaw: None,
            takes_it_for_new: false,
        }
    }
}

/// Processes that issue IDs, and everything that they said. When dropped they are
/// killed, their reports are read to the end, and what they did is put on record.
pub(crate) struct WorkerPool {
    terms: Terms,
    /// Where the overseer reaches the store.
    direct: String,
    url: String,
    namespace: String,
    members: Vec<Member>,
    reports: Arc<Mutex<Reports>>,
    record: Record,
    /// How many faults were done to it.
    pub(crate) faults: u64,
    /// The first tick of which something is promised.
    pub(crate) promised_from: u64,
}

struct Member {
    number: u32,
    run: Run,
    /// Kills itself sooner or later.
    doomed: bool,
    child: Child,
    orders: Option<ChildStdin>,
    reader: Option<JoinHandle<()>>,
}

/// What came out of the workers' pipes.
pub(crate) struct Reports {
    pub(crate) grant_log: GrantLog,
    pub(crate) runs: Vec<WorkerRecord>,
    /// How many positive replies there were.
    pub(crate) confirmed: u64,
    pub(crate) borrowed_ms: Sample,
    pub(crate) renewal_us: Sample,
    /// How often a store or a take was refused.
    pub(crate) refusals: u64,
    /// How often a store has said that it has lost what it confirmed.
    pub(crate) lost: u64,
    /// Lines that no worker may say.
    broken: Vec<String>,
}

/// One process.
pub(crate) struct WorkerRecord {
    started: Instant,
    pub(crate) ids: u64,
    /// How many positive replies it has had.
    pub(crate) confirmed: u64,
    pub(crate) first_id: Option<Duration>,
    /// Since when it is refused, and what it was told last.
    pub(crate) refused: Option<(Instant, String)>,
    pub(crate) longest_refusal: Duration,
    pub(crate) forks: u64,
    /// The last that its store said instead of yes.
    pub(crate) last_failure: Option<String>,
}

impl WorkerPool {
    /// A namespace of its own on the store at `direct`, for workers that reach it at `url`.
    pub(crate) fn new(
        direct: &str,
        url: &str,
        name: &str,
        terms: Terms,
        record: &Record,
    ) -> Outcome<Self> {
        let name = name.replace(' ', "-");
        let space = space::namespace(&name, terms.node_bits);
        if terms.flaw != Some(Flaw::TtlOnly) && !terms.takes_it_for_new {
            let mut store = opened(direct, &terms)?;
            let init = Init::new(History::New, SystemClock.unix_ms());
            let limits = space::limits().with_horizon(terms.horizon);
            store
                .init(&space, &init.with_limits(limits))
                .map_err(|error| format!("init: {error:?}"))?;
        }
        Ok(Self {
            terms,
            direct: direct.to_owned(),
            url: url.to_owned(),
            namespace: name,
            members: Vec::new(),
            reports: Arc::new(Mutex::new(Reports::new(space))),
            record: record.clone(),
            faults: 0,
            promised_from: 0,
        })
    }

    /// Starts eight workers and waits until each has issued IDs.
    pub(crate) fn serving(mut self) -> Outcome<Self> {
        for number in 0..WORKERS {
            self.spawn(number, None);
        }
        self.all_serve("at the start")?;
        Ok(self)
    }

    /// Another worker of the same number, where there is one.
    pub(crate) fn kill_and_spawn(&mut self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            self.kill(number);
            self.spawn(number, None);
        }
    }

    /// Starts a worker of this number.
    pub(crate) fn spawn(&mut self, number: u32, dies_after_reply: Option<u32>) -> Run {
        let mut command = wire::command(&Task {
            url: self.url.clone(),
            best_effort: self.terms.best_effort,
            namespace: self.namespace.clone(),
            node_bits: self.terms.node_bits,
            number,
            greedy: self.terms.greedy && number % 2 == 1,
            dies_after_reply,
            flaw: self.terms.flaw,
            takes_it_for_new: self.terms.takes_it_for_new,
        });
        if let Some((clock, shown)) = &self.terms.clock
            && (*shown == Shown::All || number % 4 < 2)
        {
            clock.preload(&mut command);
        }
        let end_with_parent = || {
            // SAFETY: numbers only.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            Ok(())
        };
        // SAFETY: `prctl` may be called between fork and exec.
        unsafe { command.pre_exec(end_with_parent) };
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let run = {
            let mut reports = self.reports();
            reports.runs.push(WorkerRecord::starting(started));
            reports.runs.len() - 1
        };
        let output = child.stdout.take().unwrap();
        let reports = Arc::clone(&self.reports);
        self.members.push(Member {
            number,
            run,
            doomed: dies_after_reply.is_some(),
            orders: child.stdin.take(),
            child,
            reader: Some(thread::spawn(move || read(run, output, &reports))),
        });
        run
    }

    pub(crate) fn reports(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clock(&self) -> &Clock {
        let (clock, _) = self.terms.clock.as_ref().expect("the workers have a clock");
        clock
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its store, for the overseer.
    pub(crate) fn store(&self) -> Outcome<Box<dyn LeaseStore>> {
        opened(&self.direct, &self.terms)
    }

    /// The floor that is on record.
    pub(crate) fn floor(&self) -> Outcome<u64> {
        let space = self.reports().grant_log.namespace().clone();
        let listing = self.store()?.list(&space);
        let listing = listing.map_err(|error| format!("list: {error}"))?;
        Ok(listing.record.floor)
    }

    /// The processes that are workers now, by the order in which they were started.
    pub(crate) fn runs(&self) -> Vec<Run> {
        self.members.iter().map(|member| member.run).collect()
    }

    /// The processes that are workers now, by number.
    pub(crate) fn processes(&self) -> Vec<(u32, i32)> {
        let process = |member: &Member| (member.number, member.child.id() as i32);
        self.members.iter().map(process).collect()
    }

    /// The process number of a worker, and its place among all that ran.
    pub(crate) fn process(&self, number: u32) -> (i32, Run) {
        let member = self.members.iter().find(|member| member.number == number);
        let member = member.expect("the worker lives");
        (member.child.id() as i32, member.run)
    }

    /// Writes an order to every worker.
    pub(crate) fn order(&mut self, order: &str) {
        for member in &mut self.members {
            if let Some(orders) = &mut member.orders {
                // One that has died meanwhile is missed elsewhere.
                let _ = writeln!(orders, "{order}");
            }
        }
    }

    /// Kills a worker and reads its reports to the end.
    pub(crate) fn kill(&mut self, number: u32) {
        let at = self.position(number);
        let mut member = self.members.swap_remove(at);
        if let Some(status) = member.child.try_wait().unwrap() {
            self.check_death(&member, status);
        }
        member.reap();
        self.faults += 1;
    }

    /// Nobody dies of anything but what was done to it.
    fn check_death(&self, member: &Member, status: ExitStatus) {
        if !(member.doomed && status.signal() == Some(libc::SIGKILL)) {
            let text = format!("worker {} ended with {status}", member.number);
            self.reports().broken.push(text);
        }
    }

    /// Lets a worker end as it likes, and reads its reports to the end.
    pub(crate) fn end(&mut self, number: u32) -> Outcome<()> {
        let at = self.position(number);
        let mut member = self.members.swap_remove(at);
        member.orders = None;
        member.leave()
    }

    /// Those that have died by themselves, reaped.
    pub(crate) fn the_dead(&mut self) -> Vec<u32> {
        let mut dead = Vec::new();
        let mut at = 0;
        while at < self.members.len() {
            if let Some(status) = self.members[at].child.try_wait().unwrap() {
                let mut member = self.members.swap_remove(at);
                self.check_death(&member, status);
                dead.push(member.number);
                member.reap();
            } else {
                at += 1;
            }
        }
        dead
    }

    fn position(&self, number: u32) -> usize {
        let mut members = self.members.iter();
        members
            .position(|member| member.number == number)
            .expect("the worker lives")
    }

    /// For what was issued ahead of the clock to be met again, if it ever is.
    pub(crate) fn await_what_was_ahead(&self) {
        thread::sleep(space::LEASE_DURATION / 2);
    }

    /// Waits until all workers have issued IDs from now on.
    pub(crate) fn all_serve(&mut self, when: &str) -> Outcome<()> {
        let numbers: Vec<u32> = self.members.iter().map(|member| member.number).collect();
        self.these_serve(&numbers, when)
    }

    /// Waits until these workers have issued IDs from now on.
    pub(crate) fn these_serve(&mut self, numbers: &[u32], when: &str) -> Outcome<()> {
        let runs: Vec<Run> = numbers.iter().map(|&n| self.process(n).1).collect();
        // One that has a lease of its own making asks nobody.
        let asks = self.terms.flaw != Some(Flaw::StartsAnew);
        let before: Vec<(u64, u64)> = {
            let reports = self.reports();
            let entry = |run: &Run| &reports.runs[*run];
            let entries = runs.iter().map(entry);
            entries.map(|entry| (entry.ids, entry.confirmed)).collect()
        };
        self.wait(&format!("every worker serves {when}"), |reports| {
            let mut pairs = runs.iter().zip(&before);
            pairs.all(|(&run, &(ids, confirmed))| {
                let entry = &reports.runs[run];
                // Not what may still lie in the pipe.
                entry.ids >= ids + 1_000 && (!asks || entry.confirmed > confirmed)
            })
        })
    }

    /// Waits until each worker has a grant that begins at this tick or later.
    pub(crate) fn all_have_grants_from(&mut self, tick: u64, what: &str) -> Outcome<()> {
        let runs = self.runs();
        self.wait(&format!("every worker has a grant {what}"), |reports| {
            let begins = |run: &Run| {
                reports
                    .grant_log
                    .grants_of(*run)
                    .last()
                    .map(|it| it.ticks.start)
            };
            runs.iter().all(|run| begins(run) >= Some(tick))
        })
    }

    /// Waits until what was told is so.
    pub(crate) fn wait(&mut self, what: &str, is_so: impl Fn(&Reports) -> bool) -> Outcome<()> {
        let deadline = Instant::now() + DEADLINE;
        while !is_so(&self.reports()) {
            if Instant::now() > deadline {
                return Err(format!("it never came to this: {what}; {}", self.state()));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// How the workers stand, for a message.
    fn state(&self) -> String {
        let reports = self.reports();
        let state = |member: &Member| {
            let entry = &reports.runs[member.run];
            format!(
                "worker {} (run {}): {} IDs, refused {:?}, last failure {:?}, grants {:?}",
                member.number,
                member.run,
                entry.ids,
                entry.refused.as_ref().map(|(_, why)| why),
                entry.last_failure,
                reports.grant_log.grants_of(member.run),
            )
        };
        let states: Vec<_> = self.members.iter().map(state).collect();
        states.join("\n")
    }

    /// Lets all workers end.
    pub(crate) fn finish(mut self) -> Outcome<()> {
        for member in &mut self.members {
            member.orders = None;
        }
        while let Some(mut member) = self.members.pop() {
            member.leave()?;
        }
        match self.reports().broken.first() {
            Some(line) => Err(format!("what no worker may do: {line}")),
            None => Ok(()),
        }
    }
}

fn opened(url: &str, terms: &Terms) -> Outcome<Box<dyn LeaseStore>> {
    let options = OpenOptions::new().accept_best_effort(terms.best_effort);
    open(url, &options).map_err(|error| error.to_string())
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.child.kill();
            let _ = member.child.wait();
            if let Some(reader) = member.reader.take() {
                // What it said before it panicked was read.
                let _ = reader.join();
            }
        }
        let figures = Figures::of(&self.reports(), self.faults, self.promised_from);
        self.record.add(figures);
    }
}

impl Member {
    /// Waits for one that was told to end.
    fn leave(&mut self) -> Outcome<()> {
        let deadline = Instant::now() + DEADLINE;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                return Err(format!("worker {} does not end", self.number));
            }
            thread::sleep(Duration::from_millis(5));
        }
        let status = self.child.wait().unwrap();
        self.reap();
        if status.success() {
            Ok(())
        } else {
            Err(format!("worker {} ended with {status}", self.number))
        }
    }

    fn reap(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            // A panic in there is a mistake in here.
            reader.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    }
}

impl WorkerRecord {
    fn starting(started: Instant) -> Self {
        Self {
            started,
            ids: 0,
            confirmed: 0,
            first_id: None,
            refused: None,
            longest_refusal: Duration::ZERO,
            forks: 0,
            last_failure: None,
        }
    }
}

impl Reports {
    fn new(space: Namespace) -> Self {
        Self {
            grant_log: GrantLog::new(space),
            runs: Vec::new(),
            confirmed: 0,
            borrowed_ms: Sample::default(),
            renewal_us: Sample::default(),
            refusals: 0,
            lost: 0,
            broken: Vec::new(),
        }
    }

    fn judge(&mut self, run: Run, ids: Vec<u64>) {
        for id in ids {
            self.broken.extend(self.grant_log.issue(run, id).err());
        }
    }

    fn receive(&mut self, run: Run, line: Line) {
        let entry = &mut self.runs[run];
        match line {
            Line::Ids(ids) => {
                entry.first_id.get_or_insert(entry.started.elapsed());
                entry.ids += ids.len() as u64;
                self.judge(run, ids);
            }
            Line::ChildIds(ids) => {
                let text = format!("a forked child of run {run} issued {} IDs", ids.len());
                self.broken.push(text);
                self.judge(run, ids);
            }
            Line::Granted {
                renewed,
                block,
                epoch,
                start,
                end,
                micros,
            } => {
                self.confirmed += 1;
                entry.confirmed += 1;
                let reports = if renewed {
                    self.renewal_us.add(micros);
                    self.grant_log.renew(run, block, epoch, start..end)
                } else {
                    self.grant_log.grant(run, block, epoch, start..end);
                    Ok(())
                };
                self.broken.extend(reports.err());
            }
            Line::Failed { operation, error } => {
                self.refusals += 1;
                self.lost += u64::from(error.contains(LOST));
                entry.last_failure = Some(format!("{operation}: {error}"));
            }
            Line::Unbuilt { error } => entry.last_failure = Some(error),
            Line::Refused { error } => {
                self.refusals += 1;
                let since = entry.refused.as_ref().map(|(since, _)| *since);
                entry.refused = Some((since.unwrap_or_else(Instant::now), error));
            }
            Line::Served { after_ms } => {
                entry.refused = None;
                let refusal = Duration::from_millis(after_ms);
                entry.longest_refusal = entry.longest_refusal.max(refusal);
            }
            Line::Borrowed { ms } => self.borrowed_ms.add(ms.max(0) as u64),
            Line::Forked { status: 0 } => entry.forks += 1,
            Line::Forked { status } => {
                let text = format!("a forked child of run {run} ended with {status}");
                self.broken.push(text);
            }
        }
    }
}

fn read(run: Run, output: ChildStdout, reports: &Mutex<Reports>) {
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| error.to_string());
        let line = line.and_then(|line| wire::receive(&line));
        let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
        match line {
            Ok(line) => reports.receive(run, line),
            Err(error) => reports.broken.push(error),
        }
    }
}

//! The workers of a scenario, and what they tell.

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ringflake::lease::{History, Init, LeaseStore, Namespace, OpenOptions, open};
use ringflake::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};

use super::case::{Case, Record};
use super::grant_log::{GrantLog, Run, Tenure};
use super::report::Figures;
use super::wire::{self, Flaw, Line, Task};
use super::{Outcome, in_time, space, text};
use ringflake_kit::server::{Clock, end_with_parent};

pub(crate) const WORKERS: u32 = 8;

/// Turns a hang into a failure.
const DEADLINE: Duration = Duration::from_secs(90);

/// The message of a store whose record holds less than it has confirmed.
pub(crate) const LOST: &str = "the store has lost a grant that it confirmed";

/// The space of a scenario where there are far more blocks than workers: 128.
pub(crate) const WIDE: u32 = 9;
pub(crate) const NARROW: u32 = 5;
/// 16 blocks, twice as many as workers: newcomers that know nothing of the eight that are
/// held take the others.
pub(crate) const TWICE_AS_MANY: u32 = 6;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) node_bits: u32,
    pub(crate) horizon: Duration,
    pub(crate) best_effort: bool,
    /// Shown to all workers, or to every second one.
    #[serde(skip)]
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
    pub(crate) fn of(node_bits: u32) -> Self {
        Self {
            node_bits,
            horizon: space::HORIZON,
            best_effort: false,
            clock: None,
            flaw: None,
            takes_it_for_new: false,
        }
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self::of(WIDE)
    }
}

/// Processes that issue IDs, and everything that they said. When dropped they are
/// killed, their reports are read to the end, and what they did is put on record.
pub(crate) struct WorkerPool {
    /// Of the worker that was started last.
    task: Task,
    /// Where the overseer reaches the store.
    direct: String,
    pub(crate) space: Namespace,
    pub(crate) members: Vec<Member>,
    reports: Arc<Mutex<Reports>>,
    record: Record,
    pub(crate) faults: u64,
    /// The first tick of which something is promised.
    pub(crate) promised_from: u64,
}

/// A worker. When dropped it is killed, and its reports are read to the end.
pub(crate) struct Member {
    pub(crate) number: u32,
    pub(crate) run: Run,
    /// Kills itself sooner or later.
    doomed: bool,
    child: Child,
    reader: Option<JoinHandle<()>>,
}

pub(crate) struct Reports {
    pub(crate) grant_log: GrantLog,
    pub(crate) runs: Vec<WorkerRecord>,
    pub(crate) confirmed: u64,
    /// How often a store has said that it has lost what it confirmed.
    pub(crate) lost: u64,
    figures: Figures,
    /// Lines that no worker may say.
    broken: Vec<String>,
}

pub(crate) struct WorkerRecord {
    ids: u64,
    pub(crate) confirmed: u64,
    /// Since when it is refused, and what it was told last.
    pub(crate) refused: Option<(Instant, String)>,
    pub(crate) forks: u64,
    /// The last that its store said instead of yes.
    pub(crate) last_failure: Option<String>,
}

impl WorkerPool {
    /// A namespace of its own on the store at `direct`, for workers that reach it at `url`.
    pub(crate) fn new(case: &Case<'_>, direct: &str, url: &str, terms: Terms) -> Outcome<Self> {
        let space = space::namespace(&case.name.replace(' ', "-"), terms.node_bits);
        let limits = space::limits().with_horizon(terms.horizon);
        let others_make_it = terms.flaw == Some(Flaw::TtlOnly) || terms.takes_it_for_new;
        let pool = Self {
            task: Task {
                url: url.to_owned(),
                namespace: space.name().to_owned(),
                number: 0,
                dies_after_reply: None,
                terms,
            },
            direct: direct.to_owned(),
            members: Vec::new(),
            reports: Arc::new(Mutex::new(Reports::new(&space))),
            space,
            record: Arc::clone(&case.record),
            faults: 0,
            promised_from: 0,
        };
        if !others_make_it {
            let mut store = pool.store()?;
            let made = in_time(|| {
                let init = Init::new(History::New, SystemClock.unix_ms()).with_limits(limits);
                store.init(&pool.space, &init)
            });
            made.map_err(|error| format!("init: {error:?}"))?;
        }
        Ok(pool)
    }

    pub(crate) fn serving(mut self) -> Outcome<Self> {
        for number in 0..WORKERS {
            self.spawn(number, None);
        }
        self.all_serve("at the start")?;
        Ok(self)
    }

    /// Another worker of the same number, where there is one.
    pub(crate) fn kill_and_spawn(&mut self, numbers: Range<u32>) {
        for number in numbers {
            self.kill(number);
            self.spawn(number, None);
        }
    }

    pub(crate) fn spawn(&mut self, number: u32, dies_after_reply: Option<u32>) {
        self.task.number = number;
        self.task.dies_after_reply = dies_after_reply;
        let mut command = wire::command(&self.task);
        if let Some((clock, shown)) = &self.task.terms.clock
            && (*shown == Shown::All || number % 4 < 2)
        {
            clock.preload(&mut command);
        }
        end_with_parent(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let run = self.reports().begin();
        let output = child.stdout.take().unwrap();
        let reports = Arc::clone(&self.reports);
        self.members.push(Member {
            number,
            run,
            doomed: dies_after_reply.is_some(),
            child,
            reader: Some(thread::spawn(move || read(run, output, &reports))),
        });
    }

    pub(crate) fn reports(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clock(&self) -> &Clock {
        let clock = self.task.terms.clock.as_ref();
        &clock.expect("the workers have a clock").0
    }

    pub(crate) fn store(&self) -> Outcome<Box<dyn LeaseStore>> {
        let options = OpenOptions::new()
            .accept_best_effort(self.task.terms.best_effort)
            .timeout(DEADLINE);
        open(&self.direct, &options).map_err(text)
    }

    pub(crate) fn floor(&self) -> Outcome<u64> {
        let listing = self.store()?.list(&self.space);
        let listing = listing.map_err(|error| format!("list: {error}"))?;
        Ok(listing.record.floor)
    }

    /// All workers by this, in the order in which they were started.
    pub(crate) fn each<T>(&self, of: impl Fn(&Member) -> T) -> Vec<T> {
        self.members.iter().map(of).collect()
    }

    pub(crate) fn member(&self, number: u32) -> &Member {
        &self.members[self.position(number)]
    }

    fn position(&self, number: u32) -> usize {
        let at = self.members.iter().position(|it| it.number == number);
        at.expect("the worker lives")
    }

    pub(crate) fn order(&mut self, order: &str) {
        for member in &mut self.members {
            if let Some(orders) = &mut member.child.stdin {
                // One that has died meanwhile is missed elsewhere.
                let _ = writeln!(orders, "{order}");
            }
        }
    }

    pub(crate) fn kill(&mut self, number: u32) {
        let mut member = self.members.swap_remove(self.position(number));
        if let Some(status) = member.child.try_wait().unwrap() {
            self.check_death(&member, status);
        }
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
        let mut member = self.members.swap_remove(self.position(number));
        member.child.stdin = None;
        member.leave()
    }

    pub(crate) fn the_dead(&mut self) -> Vec<u32> {
        let is_dead = |member: &mut Member| member.child.try_wait().unwrap().is_some();
        let dead: Vec<_> = self.members.extract_if(.., is_dead).collect();
        let reap = |mut member: Member| {
            let status = member.child.wait().unwrap();
            self.check_death(&member, status);
            member.number
        };
        dead.into_iter().map(reap).collect()
    }

    /// For what was issued ahead of the clock to be met again, if it ever is.
    pub(crate) fn await_what_was_ahead(&self) {
        thread::sleep(space::LEASE_DURATION / 2);
    }

    pub(crate) fn all_serve(&self, when: &str) -> Outcome<()> {
        self.these_serve(&self.each(|member| member.number), when)
    }

    /// Waits until these workers have issued IDs from now on.
    pub(crate) fn these_serve(&self, numbers: &[u32], when: &str) -> Outcome<()> {
        let runs: Vec<Run> = numbers.iter().map(|&n| self.member(n).run).collect();
        // One that has a lease of its own making asks nobody.
        let asks = self.task.terms.flaw != Some(Flaw::StartsAnew);
        let so_far = |reports: &Reports, run: Run| {
            let entry = &reports.runs[run];
            (entry.ids, entry.confirmed)
        };
        let before: Vec<_> = {
            let reports = self.reports();
            runs.iter().map(|&run| so_far(&reports, run)).collect()
        };
        self.wait(&format!("every worker serves {when}"), |reports| {
            let mut pairs = runs.iter().zip(&before);
            pairs.all(|(&run, &(ids_before, confirmed_before))| {
                let (ids, confirmed) = so_far(reports, run);
                // Not what may still lie in the pipe.
                ids >= ids_before + 1_000 && (!asks || confirmed > confirmed_before)
            })
        })
    }

    pub(crate) fn all_have_grants_from(&self, tick: u64, what: &str) -> Outcome<()> {
        self.wait(&format!("every worker has a grant {what}"), |reports| {
            let begins = |member: &Member| Some(reports.grants_of(member.run).last()?.ticks.start);
            self.members.iter().all(|it| begins(it) >= Some(tick))
        })
    }

    /// Waits until what was told is so.
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&Reports) -> bool) -> Outcome<()> {
        let deadline = Instant::now() + DEADLINE;
        while !is_so(&self.reports()) {
            if Instant::now() > deadline {
                return Err(format!("it never came to this: {what}; {}", self.state()));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

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
                reports.grants_of(member.run),
            )
        };
        self.each(state).join("\n")
    }

    pub(crate) fn finish(mut self) -> Outcome<()> {
        for member in &mut self.members {
            member.child.stdin = None;
        }
        while let Some(member) = self.members.pop() {
            member.leave()?;
        }
        if self.reports.is_poisoned() {
            return Err("what the workers said was not read to the end".to_owned());
        }
        match self.reports().broken.first() {
            Some(line) => Err(format!("what no worker may do: {line}")),
            None => Ok(()),
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.members.clear();
        let figures = self.reports().figures(self.faults, self.promised_from);
        let earlier = self.record.lock().unwrap().figures.replace(figures);
        assert!(earlier.is_none() || thread::panicking(), "one pool a case");
    }
}

impl Member {
    pub(crate) fn process(&self) -> i32 {
        self.child.id() as i32
    }

    fn leave(mut self) -> Outcome<()> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("worker {} ended with {status}", self.number)),
                None if Instant::now() > deadline => {
                    return Err(format!("worker {} does not end", self.number));
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // One that has panicked leaves a poisoned lock, which is looked at in the end.
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

impl Reports {
    fn new(space: &Namespace) -> Self {
        Self {
            grant_log: GrantLog::new(space),
            runs: Vec::new(),
            confirmed: 0,
            lost: 0,
            figures: Figures::default(),
            broken: Vec::new(),
        }
    }

    fn begin(&mut self) -> Run {
        self.runs.push(WorkerRecord {
            ids: 0,
            confirmed: 0,
            refused: None,
            forks: 0,
            last_failure: None,
        });
        self.runs.len() - 1
    }

    pub(crate) fn grants_of(&self, run: Run) -> &[Tenure] {
        self.grant_log.grants_of(run)
    }

    /// Ticks before `promised_from` are outside of the promise.
    fn figures(&self, faults: u64, promised_from: u64) -> Figures {
        let log = &self.grant_log;
        let twice = log.twice_from(promised_from);
        Figures {
            ids: log.issued,
            twice,
            excused: log.twice_from(0) - twice,
            outside: log.outside,
            overlaps: log.overlaps(promised_from),
            examples: log.examples.clone(),
            faults,
            starts: self.runs.len(),
            ..self.figures.clone()
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
                entry.ids += ids.len() as u64;
                self.judge(run, ids);
            }
            Line::ChildIds(ids) => {
                let text = format!("a forked child of run {run} issued {} IDs", ids.len());
                self.broken.push(text);
                self.judge(run, ids);
            }
            Line::Granted(grant) => {
                self.confirmed += 1;
                entry.confirmed += 1;
                self.grant_log.grant(run, grant);
            }
            Line::Renewed(grant) => {
                self.confirmed += 1;
                entry.confirmed += 1;
                self.broken.extend(self.grant_log.renew(run, &grant).err());
            }
            Line::Failed { operation, error } => {
                self.figures.refusals += 1;
                self.lost += u64::from(error.contains(LOST));
                entry.last_failure = Some(format!("{operation}: {error}"));
            }
            Line::Unbuilt { error } => entry.last_failure = Some(error),
            Line::Refused { error } => {
                self.figures.refusals += 1;
                let since = entry.refused.as_ref().map(|(since, _)| *since);
                entry.refused = Some((since.unwrap_or_else(Instant::now), error));
            }
            Line::Served { after_ms } => {
                entry.refused = None;
                let longest = &mut self.figures.longest_refusal;
                *longest = (*longest).max(Duration::from_millis(after_ms));
            }
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
        let line = line.map_err(text).and_then(|line| wire::receive(&line));
        let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
        match line {
            Ok(line) => reports.receive(run, line),
            Err(error) => reports.broken.push(error),
        }
    }
}

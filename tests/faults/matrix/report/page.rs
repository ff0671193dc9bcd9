//! The page that is written: who ran what on which machine, what failed, and a row
//! for each scenario.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::SystemTime;

use super::{Control, Figures, Row, Verdict};
use crate::matrix::{space, target};

/// Which code is run, how, when, and where.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) command: String,
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) machine: String,
}

impl Run {
    /// This one. To be asked before anything is done.
    pub(crate) fn of_now() -> Self {
        let now = httpdate::fmt_http_date(SystemTime::now());
        Self {
            command: command(),
            date: now.replace("GMT", "UTC"),
            commit: commit(),
            machine: machine(),
        }
    }
}

fn command() -> String {
    let set = |name: &str| Some(format!("{name}={} ", std::env::var(name).ok()?));
    let set: String = ["RINGFLAKE_FAULTS", "RINGFLAKE_FAULT_SCENARIOS"]
        .into_iter()
        .filter_map(set)
        .collect();
    let release = if cfg!(debug_assertions) {
        ""
    } else {
        " --release"
    };
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments = match arguments.join(" ") {
        none if none.is_empty() => none,
        some => format!(" -- {some}"),
    };
    format!("{set}cargo test{release} --all-features --test faults{arguments}")
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-C", concat!(env!("CARGO_MANIFEST_DIR"), "/..")])
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn commit() -> String {
    let unknown = || "unknown".to_owned();
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return unknown();
    };
    // The report itself is not what is tested.
    let but_this = ":(exclude)tests/faults/REPORT.md";
    match git(&["status", "--porcelain", "--", ".", but_this]) {
        Some(changes) if changes.is_empty() => head,
        Some(_) => format!("{head} with changes that are in no commit"),
        None => unknown(),
    }
}

fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.and_then(|rest| rest.split_once(": ")).map(|it| it.1);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{}, {cores} processors, which also ran the servers; Linux {}; {}",
        model.unwrap_or("a processor of unknown make").trim(),
        kernel.trim(),
        target::versions().join("; ")
    )
}

pub(super) fn text(rows: &[Row], controls: &[Control], run: &Run, whole: bool) -> String {
    let part = if whole {
        ""
    } else {
        "**A part of the matrix, or a short one: no report on the whole.**\n\n"
    };
    let mut text = format!(
        "# What faults did\n\
         \n\
         {part}\
         Written by `{}`.\n\
         \n\
         * **date**: {}\n\
         * **commit**: {}\n\
         * **machine**: {}\n\
         \n\
         {}\n",
        run.command,
        run.date,
        run.commit,
        run.machine,
        sums(rows),
    );
    for row in rows {
        let (how, why) = match &row.verdict {
            Verdict::Passed | Verdict::NotRun(_) => continue,
            Verdict::Failed(why) => ("failed", why),
            Verdict::Panicked(why) => ("panicked", why),
        };
        let why = why.trim().replace('\n', " ");
        let _ = writeln!(text, "* **{}, {}** {how}: {why}", row.store, row.fault);
    }
    let _ = write!(
        text,
        "\n\
         Eight workers each, with one block of {} IDs a second: half of them take 2,000 a second, \
         and half take whatever there is, up to {} s ahead of the clock. Cover {} s, horizon {} s, \
         failover {} s, skew {} s, ticks of {} ms. `faults.rs` says how each ID is judged.\n\
         \n\
         * **twice**: what was issued twice although that was promised not to be; after +, what \
         was issued twice where nothing is promised, and the remark below says when.\n\
         * **outside**, **overlaps**: without a grant of the very process, and pairs of grants \
         that share a tick; – where a process tells no grants.\n\
         * **refused**: how often a store or a take was refused, as far as that was told.\n\
         * **refusal**: the longest time for which a worker had no IDs, in seconds; where a worker \
         was stopped, that counts.\n\
         * **borrowed**: how far IDs were ahead of their worker's clock, in seconds: median, 99 of \
         100, most. Where clocks were set back, that is by how much: what the ring held is still \
         given out.\n\
         * **renewal**: the time that 99 of 100 renewals took at the most, in milliseconds, from \
         call to reply.\n\
         * **first ID**: from the start of a process to its first ID, in milliseconds: median, \
         most.\n\
         * **ride-through**: from the moment when the store was gone until a worker was refused \
         for it, the shortest of those that take no more than their block has; and what its \
         lease's end had promised then, in seconds.\n\
         \n\
         | store | fault | verdict | IDs | twice | outside | overlaps | faults | refused | refusal \
         | borrowed | renewal | first ID | ride-through |\n\
         |---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        4 * 64 * 10,
        space::BORROW.as_secs(),
        space::LEASE_DURATION.as_secs(),
        space::HORIZON.as_secs(),
        space::FAILOVER.as_secs(),
        space::SKEW.as_secs(),
        space::TICK.as_millis(),
    );
    for row in rows {
        text += &line(row);
        text.push('\n');
    }
    text += &promises(rows);
    text += &flaws(controls);
    text
}

/// One sentence on all.
fn sums(rows: &[Row]) -> String {
    let figures = || rows.iter().filter_map(|row| row.figures.as_ref());
    let total = |of: fn(&Figures) -> u64| figures().map(of).sum::<u64>();
    let count = |is: fn(&Verdict) -> bool| rows.iter().filter(|row| is(&row.verdict)).count();
    let excused = match total(|it| it.excused) {
        0 => String::new(),
        some => format!(" (and {some} where nothing is promised)"),
    };
    format!(
        "{} scenarios: {} passed, {} failed, {} were not run. {} processes, {} IDs: {} issued twice\
         {excused}, {} without a grant, {} grants that overlap.\n",
        rows.len(),
        count(|it| matches!(it, Verdict::Passed)),
        count(|it| matches!(it, Verdict::Failed(_) | Verdict::Panicked(_))),
        count(|it| matches!(it, Verdict::NotRun(_))),
        total(|it| it.starts as u64),
        total(|it| it.ids),
        total(|it| it.twice),
        total(|it| it.outside.unwrap_or(0)),
        total(|it| it.overlapping().len() as u64),
    )
}

fn line(row: &Row) -> String {
    const NONE: &str = "–";
    let verdict = match &row.verdict {
        Verdict::Passed => "passed".to_owned(),
        Verdict::Failed(_) => "**failed**".to_owned(),
        Verdict::Panicked(_) => "**panicked**".to_owned(),
        Verdict::NotRun(why) => format!("not run: {why}"),
    };
    let head = format!("| {} | {} | {verdict} |", row.store, row.fault);
    let Some(it) = &row.figures else {
        return head + &format!(" {NONE} |").repeat(11);
    };
    let seconds = |ms: Option<u64>| match ms {
        Some(ms) => format!("{:.1}", ms as f64 / 1e3),
        None => NONE.to_owned(),
    };
    let borrowed = |percent| seconds(it.borrowed_ms.percentile(percent));
    let milliseconds = |us: Option<u64>| match us {
        Some(us) => format!("{:.1}", us as f64 / 1e3),
        None => NONE.to_owned(),
    };
    let whole = |number: Option<u64>| number.map_or(NONE.to_owned(), |it| it.to_string());
    let ride = row.ride_through.map_or(NONE.to_owned(), |ride| {
        let (measured, predicted) = (ride.measured, ride.predicted);
        format!(
            "{:.1} / {:.1}",
            measured.as_secs_f64(),
            predicted.as_secs_f64()
        )
    });
    let excused = match it.excused {
        0 => String::new(),
        some => format!(" +{some}"),
    };
    format!(
        "{head} {} | {}{excused} | {} | {} | {} | {} | {} | {} / {} / {} | {} | {} / {} | {ride} |",
        it.ids,
        it.twice,
        whole(it.outside),
        whole(it.overlaps.as_ref().map(|all| all.len() as u64)),
        it.faults,
        it.refusals,
        seconds(Some(it.longest_refusal.as_millis() as u64)),
        borrowed(50),
        borrowed(99),
        borrowed(100),
        milliseconds(it.renewal_us.percentile(99)),
        whole(it.first_id_ms.percentile(50)),
        whole(it.first_id_ms.percentile(100)),
    )
}

/// What scenarios are judged by, where that is more or less than that no ID comes twice.
fn promises(rows: &[Row]) -> String {
    let mut text = String::new();
    let is_told = |row: &&Row| row.figures.is_some() && !row.promise.is_empty();
    let promises: Vec<&str> = rows.iter().filter(is_told).map(|row| row.promise).collect();
    if !promises.is_empty() {
        text += "\n## What is promised there\n\n";
    }
    let mut told = BTreeSet::new();
    for promise in promises {
        if told.insert(promise) {
            let of_it = rows
                .iter()
                .filter(is_told)
                .filter(|row| row.promise == promise);
            let names: BTreeSet<_> = of_it.map(|row| format!("*{}*", row.fault)).collect();
            let names: Vec<_> = names.into_iter().collect();
            let _ = writeln!(text, "* {}: {promise}.", names.join("; "));
        }
    }
    let mut remarked = rows.iter().filter(|row| !row.remark.is_empty()).peekable();
    if remarked.peek().is_some() {
        text += "\n## Remarks\n\n";
    }
    for row in remarked {
        let _ = writeln!(text, "* {}, *{}*: {}.", row.store, row.fault, row.remark);
    }
    text
}

fn flaws(controls: &[Control]) -> String {
    let mut text = String::new();
    if !controls.is_empty() {
        text += "\n## What is wrong and was found out\n\n\
                 | flaw | IDs | twice | outside | overlaps |\n|---|--:|--:|--:|--:|\n";
    }
    for Control { flaw, figures } in controls {
        let _ = writeln!(
            text,
            "| {flaw:?} | {} | {} | {} | {} |",
            figures.ids,
            figures.twice,
            figures.outside.unwrap_or(0),
            figures.overlapping().len(),
        );
    }
    text
}

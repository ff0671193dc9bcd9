//! The page that is written: who ran what on which machine, what failed, and a row
//! for each scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::SystemTime;

use super::{Figures, Row, Verdict};
use crate::matrix::wire::Flaw;
use crate::matrix::{space, target};

/// Which code is run, how, when, and where.
pub(crate) fn head() -> String {
    let now = httpdate::fmt_http_date(SystemTime::now());
    format!(
        "Written by `{}`.\n\n* **date**: {}\n* **commit**: {}\n* **machine**: {}\n",
        command(),
        now.replace("GMT", "UTC"),
        commit().unwrap_or_else(|| "unknown".to_owned()),
        machine(),
    )
}

fn command() -> String {
    let set = |name: &str| Some(format!("{name}={} ", std::env::var(name).ok()?));
    let set = ["RINGFLAKE_FAULTS", "RINGFLAKE_FAULT_SCENARIOS"].map(set);
    let set: String = set.into_iter().flatten().collect();
    let release = match cfg!(debug_assertions) {
        true => "",
        false => " --release",
    };
    let mut arguments: Vec<_> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        arguments.insert(0, " --".to_owned());
    }
    let arguments = arguments.join(" ");
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

fn commit() -> Option<String> {
    let head = git(&["rev-parse", "--short=12", "HEAD"])?;
    // The report itself is not what is tested.
    let but_this = ":(exclude)tests/faults/REPORT.md";
    let changes = git(&["status", "--porcelain", "--", ".", but_this])?;
    Some(match changes.is_empty() {
        true => head,
        false => format!("{head} with changes that are in no commit"),
    })
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

pub(super) fn text(rows: &[Row], controls: &[(Flaw, Figures)], head: &str, whole: bool) -> String {
    let part = match whole {
        true => "",
        false => "**A part of the matrix, or a short one: no report on the whole.**\n\n",
    };
    let mut text = format!("# What faults did\n\n{part}{head}\n{}\n", sums(rows));
    for row in rows {
        if let Some(why) = row.failure() {
            let why = why.trim().replace('\n', " ");
            let _ = writeln!(text, "* **{}, {}** failed: {why}", row.store, row.fault);
        }
    }
    let _ = write!(
        text,
        "\n\
         Eight workers each, with one block of {} IDs a second: half of them take 2,000 a second, \
         and half take whatever there is, up to {} s ahead of the clock. Lease duration {} s, horizon {} s, \
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
    text += &section("What is promised there", promises(rows));
    text += &section("Remarks", remarks(rows));
    text += &section("What is wrong and was found out", flaws(controls));
    text
}

/// Nothing where it has no lines.
fn section(heading: &str, lines: Vec<String>) -> String {
    match lines.is_empty() {
        true => String::new(),
        false => format!("\n## {heading}\n\n{}\n", lines.join("\n")),
    }
}

/// One sentence on all.
fn sums(rows: &[Row]) -> String {
    let figures = || rows.iter().filter_map(|row| row.findings.figures.as_ref());
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
        count(|it| matches!(it, Verdict::Failed(_))),
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
        Verdict::NotRun(why) => format!("not run: {why}"),
    };
    let head = format!("| {} | {} | {verdict} |", row.store, row.fault);
    let Some(it) = &row.findings.figures else {
        return head + &format!(" {NONE} |").repeat(11);
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let whole = |number: Option<u64>| or_none(number.map(|it| it.to_string()));
    let thousandths =
        |number: Option<u64>| or_none(number.map(|it| format!("{:.1}", it as f64 / 1e3)));
    let borrowed = |percent| thousandths(it.borrowed_ms.percentile(percent));
    let ride = or_none(row.findings.ride_through.map(|ride| {
        let [measured, predicted] = [ride.measured, ride.predicted].map(|it| it.as_secs_f64());
        format!("{measured:.1} / {predicted:.1}")
    }));
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
        thousandths(Some(it.longest_refusal.as_millis() as u64)),
        borrowed(50),
        borrowed(99),
        borrowed(100),
        thousandths(it.renewal_us.percentile(99)),
        whole(it.first_id_ms.percentile(50)),
        whole(it.first_id_ms.percentile(100)),
    )
}

/// The promises of scenarios, where they differ from "no ID comes twice".
fn promises(rows: &[Row]) -> Vec<String> {
    let mut promises: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        if row.findings.figures.is_some() && !row.promise.is_empty() {
            let faults = promises.entry(row.promise).or_default();
            faults.insert(format!("*{}*", row.fault));
        }
    }
    let line = |(promise, faults): (_, BTreeSet<_>)| {
        let faults: Vec<_> = faults.into_iter().collect();
        format!("* {}: {promise}.", faults.join("; "))
    };
    promises.into_iter().map(line).collect()
}

fn remarks(rows: &[Row]) -> Vec<String> {
    let remarked = rows.iter().filter(|row| !row.findings.remark.is_empty());
    remarked
        .map(|row| format!("* {}, *{}*: {}.", row.store, row.fault, row.findings.remark))
        .collect()
}

fn flaws(controls: &[(Flaw, Figures)]) -> Vec<String> {
    if controls.is_empty() {
        return Vec::new();
    }
    let head = "| flaw | IDs | twice | outside | overlaps |\n|---|--:|--:|--:|--:|";
    let line = |(flaw, figures): &(Flaw, Figures)| {
        let outside = figures.outside.unwrap_or(0);
        let (ids, twice, overlaps) = (figures.ids, figures.twice, figures.overlapping().len());
        format!("| {flaw:?} | {ids} | {twice} | {outside} | {overlaps} |")
    };
    let lines = controls.iter().map(line);
    std::iter::once(head.to_owned()).chain(lines).collect()
}

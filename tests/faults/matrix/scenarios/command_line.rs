//! The command line in a data directory: its `leases.db` is put back, or its secret is
//! taken to another directory. Each run is a process that begins with nothing but what
//! the directory holds.

use std::fs;
use std::io::Read as _;
use std::process::{Child, Output, Stdio};
use std::sync::Arc;

use super::Scenario;
use super::files::{How, copy, directory};
use crate::matrix::Outcome;
use crate::matrix::case::{Case, Record};
use crate::matrix::report::Figures;
use ringflake_kit::home::Home;

pub(super) fn of() -> Vec<Scenario> {
    use How::{Overwritten, Renamed};

    let mut scenarios = Vec::new();
    for (name, how, under_way) in [
        ("command line, file renamed back", Renamed, false),
        ("command line, file written over", Overwritten, false),
        ("command line, file renamed back under a run", Renamed, true),
        (
            "command line, file written over under a run",
            Overwritten,
            true,
        ),
    ] {
        let scenario = Scenario::new(name, move |case| put_back(case, how, under_way));
        let is_usual = how == Renamed && !under_way;
        scenarios.push(if is_usual { scenario } else { scenario.long() });
    }
    // Whether the other directory keeps the secret.
    let brought = |name, kept| Scenario::new(name, move |case| two_directories(case, kept));
    scenarios.push(brought(
        "command line, one secret given in two directories",
        false,
    ));
    scenarios.push(brought("command line, one secret kept in two directories", true).long());
    scenarios
}

const SECRET: &str = "generate --format u64le";
/// IDs without encryption, in binary: what two runs have in common is the same at sight.
const PLAIN: &str = "generate --format u64le --plain";
/// The first node that is free, far ahead of the clock. Where nothing is on record, it is the
/// first of all.
const ONE_NODE: &str = "--blocks=1";

/// A directory for data directories, and the IDs that runs there have printed.
struct Fixture {
    record: Record,
    home: Home,
    ids: Vec<u64>,
    figures: Figures,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.ids.sort_unstable();
        for pair in self.ids.windows(2).filter(|pair| pair[0] == pair[1]) {
            self.figures.twice += 1;
            if self.figures.examples.len() < 5 {
                let text = format!("{:#x} was printed again", pair[0]);
                self.figures.examples.push(text);
            }
        }
        self.figures.ids = self.ids.len() as u64;
        self.record.lock().unwrap().figures = Some(std::mem::take(&mut self.figures));
    }
}

impl Fixture {
    fn new(case: &Case<'_>) -> Self {
        Self {
            record: Arc::clone(&case.record),
            home: Home::of(directory()),
            ids: Vec::new(),
            figures: Figures::default(),
        }
    }

    /// Starts a command line, here in parts, in this data directory.
    fn spawn(&self, data: &str, line: &[&str]) -> Child {
        let program = env!("CARGO_BIN_EXE_ringflake");
        let mut command = self.home.command(program, &line.join(" "));
        command
            .env("RINGFLAKE_DATA_DIR", self.home.file(data))
            .current_dir(self.home.file(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn ended(&mut self, run: Child) -> Output {
        self.figures.starts += 1;
        run.wait_with_output().unwrap()
    }

    /// The end of a run that prints IDs or nothing.
    fn counted(&mut self, run: Child) -> Output {
        let output = self.ended(run);
        self.count(&output.stdout);
        output
    }

    fn count(&mut self, bytes: &[u8]) {
        let ids = bytes.as_chunks().0.iter();
        self.ids.extend(ids.map(|id| u64::from_le_bytes(*id)));
    }

    fn issued(&mut self, run: Child) -> Outcome<()> {
        succeeded(&self.counted(run))
    }

    fn refused(&mut self, run: Child, words: &[&str]) -> Outcome<()> {
        self.figures.refusals += 1;
        let output = self.counted(run);
        let said = stderr(&output);
        let is_said = words.iter().all(|word| said.contains(word));
        if is_said && !output.status.success() && output.stdout.is_empty() {
            return Ok(());
        }
        Err(format!(
            "it was to be refused with {words:?}, ended with {}, printed {} bytes and said {said}",
            output.status,
            output.stdout.len()
        ))
    }
}

fn succeeded(output: &Output) -> Outcome<()> {
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "a run failed, {}: {}",
            output.status,
            stderr(output)
        )),
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The backup is of before the namespace of plain IDs, and knows that of a secret. After a
/// renaming every run is refused until the floor is raised; what is written over needs no help.
fn put_back(case: &mut Case<'_>, how: How, under_way: bool) -> Outcome<()> {
    let mut fixture = Fixture::new(case);
    fixture.issued(fixture.spawn("data", &[SECRET, "-n 1000"]))?;
    let (file, backup) = (
        fixture.home.file("data/leases.db"),
        fixture.home.file("backup"),
    );
    copy(&file, &backup)?;
    fixture.issued(fixture.spawn("data", &[SECRET, "-n 200000"]))?;
    // Ahead of the clock by seconds.
    fixture.issued(fixture.spawn("data", &[PLAIN, ONE_NODE, "-n 600000"]))?;
    let mut running = None;
    if under_way {
        // Stands still when the pipe is full, and holds its leases.
        let run = running.insert(fixture.spawn("data", &[PLAIN, "-n 400000"]));
        let output = run.stdout.as_mut().expect("it is piped");
        let mut begun = [0; 8 * 512];
        let has_begun = output.read_exact(&mut begun);
        has_begun.map_err(|error| format!("the run under way has not begun: {error}"))?;
        fixture.count(&begun);
    }
    how.put_back(&backup, &file)?;
    fixture.figures.faults += 1;
    if how == How::Renamed {
        for line in [PLAIN, SECRET] {
            fixture.refused(
                fixture.spawn("data", &[line]),
                &["is a copy, or was restored", "raise-floor"],
            )?;
        }
        let raise = "store raise-floor --over-lost-grants --all";
        succeeded(&fixture.ended(fixture.spawn("data", &[raise])))?;
    }
    // Two at once, each of which needs the record that is gone.
    let runs = [(); 2].map(|()| fixture.spawn("data", &[PLAIN, "-n 20000"]));
    for run in runs {
        fixture.issued(run)?;
    }
    fixture.issued(fixture.spawn("data", &[PLAIN, ONE_NODE, "-n 20000"]))?;
    fixture.issued(fixture.spawn("data", &[SECRET, "-n 20000"]))?;
    if let Some(run) = running {
        // It goes on with what it has, to its end or until it needs more.
        let status = fixture.counted(run).status;
        case.findings().remark = format!("the run under way: {status}");
    }
    Ok(())
}

/// The secret is made in one directory and used in two; the second refuses it and makes nothing.
fn two_directories(case: &mut Case<'_>, kept: bool) -> Outcome<()> {
    const WAYS_OUT: [&str; 4] = [
        "has no history in",
        "--store",
        "--history new",
        "--history unknown",
    ];
    const GIVEN: &str = "--secret-file=key";

    let mut fixture = Fixture::new(case);
    succeeded(&fixture.ended(fixture.spawn("one", &["keygen --out key"])))?;
    fs::create_dir(fixture.home.file("other")).unwrap();
    if kept {
        copy(
            &fixture.home.file("key"),
            &fixture.home.file("other/secret"),
        )?;
    }
    let of_one = [SECRET, GIVEN, ONE_NODE, "-n 600000"];
    let of_other = [SECRET, if kept { "" } else { GIVEN }];
    fixture.figures.faults += 1;
    fixture.issued(fixture.spawn("one", &of_one))?;
    let first = [&of_other[..], &[ONE_NODE, "-n 300000"]].concat();
    fixture.refused(fixture.spawn("other", &first), &WAYS_OUT)?;
    // Eight at once, while the first directory goes on.
    let again = [&of_other[..], &["-n 100000"]].concat();
    let runs = [(); 8].map(|()| fixture.spawn("other", &again));
    fixture.issued(fixture.spawn("one", &of_one))?;
    for run in runs {
        fixture.refused(run, &WAYS_OUT)?;
    }
    match fixture.home.file("other/leases.db").exists() {
        false => Ok(()),
        true => Err("leases.db was made in the other directory".to_owned()),
    }
}

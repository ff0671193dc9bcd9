//! The command line in a data directory: its `leases.db` is put back, or its secret is
//! taken to another directory. Each run is a process that begins with nothing but what
//! the directory holds.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use super::Scenario;
use super::files::{How, copy, directory};
use crate::matrix::Outcome;
use crate::matrix::case::{Case, Record};
use crate::matrix::report::Figures;

const RESTORED: &str = "what the file that is put back does not know of begins above all that may \
                        have been issued, and what it knows of is refused until somebody raises \
                        the floor; nothing at all comes twice";
const BROUGHT: &str = "a secret that was not made in a directory is refused there with the ways \
                       out, and nothing is issued or made";

pub(super) fn of() -> Vec<Scenario> {
    use How::{Overwritten, Renamed};

    let program = env!("CARGO_BIN_EXE_ringflake");
    let restored = [
        ("command line, file renamed back", Renamed, false),
        ("command line, file written over", Overwritten, false),
        ("command line, file renamed back under a run", Renamed, true),
        (
            "command line, file written over under a run",
            Overwritten,
            true,
        ),
    ]
    .map(|(name, how, under_way)| {
        let scenario = Scenario::new(name, move |case| put_back(case, program, how, under_way));
        let is_usual = (how, under_way) == (Renamed, false);
        (scenario.promising(RESTORED), is_usual)
    });
    let brought = [
        ("command line, one secret given in two directories", false),
        ("command line, one secret kept in two directories", true),
    ]
    .map(|(name, kept)| {
        let scenario = Scenario::new(name, move |case| two_directories(case, program, kept));
        (scenario.promising(BROUGHT), !kept)
    });
    let all = restored.into_iter().chain(brought);
    all.map(|(scenario, is_usual)| if is_usual { scenario } else { scenario.long() })
        .collect()
}

/// IDs without encryption, from the first node and in binary: what two runs have in
/// common is the same at sight.
const PLAIN: [&str; 4] = ["generate", "--plain", "--format", "u64le"];
const FIRST_NODE: &str = "--nodes=0..1";

/// The IDs that runs have printed.
struct Desk {
    record: Record,
    program: &'static str,
    directory: TempDir,
    ids: Vec<u64>,
    figures: Figures,
}

impl Drop for Desk {
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

impl Desk {
    fn new(case: &Case<'_>, program: &'static str) -> Self {
        Self {
            record: std::sync::Arc::clone(&case.record),
            program,
            directory: directory(),
            ids: Vec::new(),
            figures: Figures::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts it in this data directory.
    fn spawn(&mut self, data: &str, arguments: &[&str]) -> Child {
        self.figures.starts += 1;
        Command::new(self.program)
            .args(arguments)
            .env_remove("RINGFLAKE_SECRET_FILE")
            .env_remove("RINGFLAKE_BACKEND")
            .env_remove("RINGFLAKE_STORE")
            .env("RINGFLAKE_BEST_EFFORT", "1")
            .env("RINGFLAKE_DATA_DIR", self.path(data))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&mut self, data: &str, arguments: &[&str]) -> Output {
        self.spawn(data, arguments).wait_with_output().unwrap()
    }

    /// Runs it, which must succeed.
    fn succeed(&mut self, data: &str, arguments: &[&str]) -> Outcome<Output> {
        let output = self.run(data, arguments);
        match output.status.success() {
            true => Ok(output),
            false => Err(format!("{arguments:?} failed: {}", stderr(&output))),
        }
    }

    /// Runs it, which must issue IDs.
    fn issue(&mut self, data: &str, arguments: &[&str]) -> Outcome<()> {
        let output = self.succeed(data, arguments)?;
        self.count(&output.stdout);
        Ok(())
    }

    /// Runs it, which must be refused in these words and issue nothing.
    fn refused(&mut self, data: &str, arguments: &[&str], words: &[&str]) -> Outcome<()> {
        let output = self.run(data, arguments);
        self.check_refusal(&output, words)
    }

    fn check_refusal(&mut self, output: &Output, words: &[&str]) -> Outcome<()> {
        self.count(&output.stdout);
        self.figures.refusals += 1;
        let said = stderr(output);
        let is_said = words.iter().all(|word| said.contains(word));
        let is_refused = !output.status.success() && output.stdout.is_empty();
        if is_refused && is_said {
            return Ok(());
        }
        Err(format!(
            "it was to be refused with {words:?}, ended with {}, printed {} bytes and said {said}",
            output.status,
            output.stdout.len()
        ))
    }

    fn count(&mut self, bytes: &[u8]) {
        let ids = bytes.as_chunks().0.iter();
        self.ids.extend(ids.map(|id| u64::from_le_bytes(*id)));
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The backup is of before the namespace of plain IDs, and knows that of a secret.
fn put_back(case: &mut Case<'_>, program: &'static str, how: How, under_way: bool) -> Outcome<()> {
    let mut desk = Desk::new(case, program);
    let secret = ["generate", "--format", "u64le"];
    let bump = ["store", "raise-floor", "--over-lost-grants"];
    desk.issue("data", &[&secret[..], &["-n", "1000"]].concat())?;
    let (file, backup) = (desk.path("data/leases.db"), desk.path("backup"));
    copy(&file, &backup)?;
    desk.issue("data", &[&secret[..], &["-n", "200000"]].concat())?;
    // Ahead of the clock by seconds.
    desk.issue(
        "data",
        &[&PLAIN[..], &[FIRST_NODE, "-n", "600000"]].concat(),
    )?;
    // Stands still when the pipe is full, and holds its leases.
    let mut running = None;
    let mut begun = [0; 8 * 512];
    if under_way {
        let mut run = desk.spawn("data", &[&PLAIN[..], &["-n", "400000"]].concat());
        let output = run.stdout.as_mut().expect("it is piped");
        let has_begun = output.read_exact(&mut begun);
        running = Some(run);
        has_begun.map_err(|error| format!("the run under way has not begun: {error}"))?;
        desk.count(&begun);
    }
    how.put_back(&backup, &file)?;
    desk.figures.faults += 1;
    // Two at once, each of which needs the record that is gone.
    let again = [&PLAIN[..], &["-n", "20000"]].concat();
    let runs = [desk.spawn("data", &again), desk.spawn("data", &again)];
    for run in runs {
        let output = run.wait_with_output().unwrap();
        desk.count(&output.stdout);
        if !output.status.success() {
            return Err(format!("{again:?} failed: {}", stderr(&output)));
        }
    }
    desk.issue("data", &[&PLAIN[..], &[FIRST_NODE, "-n", "20000"]].concat())?;
    desk.refused("data", &secret, &["put back", "raise-floor"])?;
    desk.succeed("data", &bump)?;
    desk.issue("data", &[&secret[..], &["-n", "20000"]].concat())?;
    if let Some(run) = running {
        // It goes on with what it has, to its end or until it needs more.
        let output = run.wait_with_output().unwrap();
        desk.count(&output.stdout);
        case.findings().remark = format!("the run under way: {}", output.status);
    }
    Ok(())
}

/// The secret is made in one directory and used in two.
fn two_directories(case: &mut Case<'_>, program: &'static str, kept: bool) -> Outcome<()> {
    const WAYS_OUT: [&str; 4] = [
        "was not made in",
        "--store",
        "--history new",
        "--history unknown",
    ];
    let mut desk = Desk::new(case, program);
    let file = desk.path("key");
    let given = format!("--secret-file={}", file.display());
    desk.succeed("one", &["keygen", "--out", file.to_str().unwrap()])?;
    let generate = ["generate", "--format", "u64le"];
    let of_one = [&generate[..], &[&given, FIRST_NODE, "-n", "600000"]].concat();
    let other = desk.path("other");
    fs::create_dir(&other).unwrap();
    let mut of_other = generate.to_vec();
    if kept {
        copy(&file, &other.join("secret"))?;
    } else {
        of_other.push(&given);
    }
    desk.figures.faults += 1;
    desk.issue("one", &of_one)?;
    let first = [&of_other[..], &[FIRST_NODE, "-n", "300000"]].concat();
    desk.refused("other", &first, &WAYS_OUT)?;
    // Eight at once, while the first directory goes on.
    let runs: Vec<_> = (0..8)
        .map(|_| desk.spawn("other", &[&of_other[..], &["-n", "100000"]].concat()))
        .collect();
    desk.issue("one", &of_one)?;
    for run in runs {
        let output = run.wait_with_output().unwrap();
        desk.check_refusal(&output, &WAYS_OUT)?;
    }
    is_not_there(&other.join("leases.db"))
}

fn is_not_there(path: &Path) -> Outcome<()> {
    match path.exists() {
        false => Ok(()),
        true => Err(format!("{} was made", path.display())),
    }
}

//! Running the program, and reading what it prints.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Write};
use std::ops::Deref;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;

use ringflake::Secret;
use ringflake::local::DataDir;
use serde::Deserialize;
use serde_json::Value;

use ringflake_kit::server::signal_child;
use ringflake_kit::{eventually, unix_ms};

/// Two secrets, as files have them.
pub(crate) const ONE: &str = "00112233445566778899aabbccddeeff";
pub(crate) const OTHER: &str = "ffeeddccbbaa99887766554433221100";

/// A directory of its own, and what is done in it.
pub(crate) struct Home(ringflake_kit::home::Home);

impl Deref for Home {
    type Target = ringflake_kit::home::Home;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        Self(ringflake_kit::home::Home::new())
    }

    /// On disk, not in memory.
    #[cfg(feature = "stores")]
    pub(crate) fn on_disk() -> Self {
        let directory = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self(ringflake_kit::home::Home::of(directory))
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.file(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn command(&self, line: impl AsRef<str>) -> Command {
        self.0
            .command(env!("CARGO_BIN_EXE_ringflake"), line.as_ref())
    }

    pub(crate) fn run(&self, line: impl AsRef<str>) -> Output {
        self.command(line).output().unwrap()
    }

    pub(crate) fn run_with(&self, line: &str, variable: &str, value: &str) -> Output {
        self.command(line).env(variable, value).output().unwrap()
    }

    /// Runs it, which must succeed, and returns what it printed.
    #[track_caller]
    pub(crate) fn print(&self, line: impl AsRef<str>) -> String {
        stdout(&succeed(self.run(line)))
    }

    /// Runs it, which must fail with one line on stderr, and returns that.
    #[track_caller]
    pub(crate) fn refuse(&self, line: impl AsRef<str>) -> String {
        fail(self.run(line))
    }

    /// Runs it, which must exit with this status, say this in its error, and print nothing.
    #[track_caller]
    pub(crate) fn assert_refused(&self, line: &str, status: i32, said: &str) {
        let output = self.run(line);
        assert_eq!(stdout(&output), "", "{line}");
        let text = error_line(&output, status);
        assert!(text.contains(said), "{line}: {said:?} is not in: {text}");
    }

    /// The IDs that `generate` prints with these options.
    #[track_caller]
    pub(crate) fn generate(&self, options: &str) -> Vec<u64> {
        let line = format!("generate --format u64le {options}");
        numbers(&succeed(self.run(line)).stdout)
    }

    pub(crate) fn feed(&self, line: impl AsRef<str>, input: &[u8]) -> Output {
        let mut child = spawn(self.command(line).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input).unwrap());
            child.wait_with_output().unwrap()
        })
    }

    /// Runs it with `input` on stdin, and with a stdout that nobody reads.
    pub(crate) fn feed_unread(&self, line: impl AsRef<str>, input: &[u8]) -> Output {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.stdout(writer).spawn().unwrap();
        // It may have ended before.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// Runs it, and interrupts it as soon as it listens to signals: until then one would
    /// end it.
    pub(crate) fn interrupt(&self, line: impl AsRef<str>) -> Output {
        // Of the two signals that it listens to this is the second.
        const SIGTERM: u64 = 1 << (libc::SIGTERM - 1);
        let child = spawn(&mut self.command(line));
        eventually("it listens", || {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.map(|mask| u64::from_str_radix(mask.trim(), 16).unwrap());
            caught.is_some_and(|mask| mask & SIGTERM != 0)
        });
        // Two for the same end, as where a process and its group are both sent one. A second
        // between them would make the second one insist, so it stands still until both have come.
        signal(&child, libc::SIGSTOP);
        signal(&child, libc::SIGINT);
        signal(&child, libc::SIGTERM);
        signal(&child, libc::SIGCONT);
        child.wait_with_output().unwrap()
    }

    /// What `inspect` with these options says about IDs, each on a line.
    #[track_caller]
    pub(crate) fn inspect(&self, options: impl AsRef<str>, ids: &str) -> Vec<Parts> {
        let line = format!("inspect --format json {}", options.as_ref());
        let output = succeed(self.feed(line, ids.as_bytes()));
        stdout(&output).lines().map(Parts::of).collect()
    }

    /// A secret as `keygen` makes one, in a file of this name.
    pub(crate) fn keep_secret(&self, name: &str, hex: &str) -> String {
        let secret = Secret::from_hex(hex).unwrap();
        let data_dir = DataDir::new(self.data_dir());
        data_dir.note_new_secret(&secret).unwrap();
        self.write_secret(name, hex)
    }

    pub(crate) fn write_secret(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        self.write(name, contents);
        self.path(name)
    }
}

/// A run of `generate` that has printed some IDs, and goes on as it is read.
pub(crate) struct Printing {
    pub(crate) child: Child,
    stdout: ChildStdout,
    bytes: Vec<u8>,
}

impl Printing {
    /// It prints plain IDs, many more than a pipe can hold.
    pub(crate) fn start(home: &Home, options: &str) -> Self {
        let line = format!("generate --plain --format u64le {options}");
        let mut child = spawn(&mut home.command(line));
        let mut stdout = child.stdout.take().unwrap();
        let mut bytes = vec![0; 8 * 1000];
        stdout.read_exact(&mut bytes).unwrap();
        Self {
            child,
            stdout,
            bytes,
        }
    }

    #[track_caller]
    pub(crate) fn finish(mut self) -> Vec<u64> {
        self.stdout.read_to_end(&mut self.bytes).unwrap();
        succeed(self.child.wait_with_output().unwrap());
        numbers(&self.bytes)
    }

    pub(crate) fn kill(mut self) -> Vec<u64> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.stdout.read_to_end(&mut self.bytes).unwrap();
        // It may have been killed within one.
        self.bytes.truncate(self.bytes.len() / 8 * 8);
        numbers(&self.bytes)
    }
}

pub(crate) fn spawn(command: &mut Command) -> Child {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
pub(crate) fn objects(lines: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    lines.lines().map(parse).collect()
}

#[track_caller]
pub(crate) fn object(text: &str) -> Value {
    let [object] = objects(text).try_into().unwrap();
    object
}

#[track_caller]
pub(crate) fn row<'a>(table: &'a str, title: &str) -> &'a str {
    let find = |line: &'a str| line.strip_prefix(title)?.strip_prefix("  ");
    let found = table.lines().find_map(find);
    found
        .unwrap_or_else(|| panic!("no {title} in {table}"))
        .trim()
}

/// Asserts that `verify` found that every ID came once and lies in the leases.
#[track_caller]
pub(crate) fn assert_flawless(table: &str) {
    for title in ["duplicates", "outside the leases"] {
        assert_eq!(row(table, title), "0", "{title}: {table}");
    }
}

#[track_caller]
pub(crate) fn succeed(output: Output) -> Output {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

/// Checks that it failed with one line on stderr, and returns that.
#[track_caller]
pub(crate) fn fail(output: Output) -> String {
    error_line(&output, 1)
}

/// Checks that it exited with this status and one error on stderr, and returns that.
#[track_caller]
fn error_line(output: &Output, status: i32) -> String {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(text.starts_with("error: "), "{text}");
    let mut rest = text.lines().skip(1);
    let is_advice = |line: &str| line.starts_with("  note: ") || line.starts_with("  help: ");
    assert!(rest.all(is_advice), "{text}");
    assert!(text.ends_with('\n'), "{text}");
    text
}

/// Asserts that these IDs follow the clock, and do not lie above a lost past.
#[track_caller]
pub(crate) fn assert_new(parts: &[Parts]) {
    let now = unix_ms();
    // The lower bound only tells these from IDs of another secret, whose times are anywhere.
    let made = now - 600_000..=now;
    let is_new = |it: &Parts| made.contains(&it.unix_ms);
    assert!(parts.iter().all(is_new), "{parts:?}");
}

/// One line of `inspect --format json`: these names and no others.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parts {
    pub(crate) id: String,
    #[serde(rename = "timestamp_unix_ms")]
    pub(crate) unix_ms: u64,
    pub(crate) timestamp: String,
    pub(crate) node: u64,
    pub(crate) sequence: u64,
}

impl Parts {
    pub(crate) fn of(line: &str) -> Self {
        serde_json::from_str(line).unwrap()
    }

    pub(crate) fn cell(&self) -> (u64, u64, u64) {
        (self.unix_ms, self.node, self.sequence)
    }
}

#[track_caller]
pub(crate) fn numbers(bytes: &[u8]) -> Vec<u64> {
    assert!(bytes.len().is_multiple_of(8), "{} bytes", bytes.len());
    let numbers = bytes.as_chunks().0.iter();
    numbers.map(|&bytes| u64::from_le_bytes(bytes)).collect()
}

pub(crate) fn distinct<T: Eq + std::hash::Hash>(items: impl IntoIterator<Item = T>) -> usize {
    items.into_iter().collect::<HashSet<_>>().len()
}

pub(crate) fn signal(child: &Child, signal: i32) {
    signal_child(child.id() as libc::pid_t, signal);
}

//! What a worker and its overseer tell each other: a line of JSON each, written
//! in one piece, so that a worker that is killed leaves no half line behind.

use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

use serde::{Deserialize, Serialize};

use super::grant_log::Tenure;
use super::worker_pool::Terms;

/// Holds a [`Task`] where this process is a worker.
const TASK: &str = "RINGFLAKE_FAULT_TASK";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) url: String,
    pub(crate) namespace: String,
    /// Its number in the pool; workers take in different ways.
    pub(crate) number: u32,
    /// Dies after this many grants and renewals of the store, before it reports the last one.
    pub(crate) dies_after_reply: Option<u32>,
    pub(crate) terms: Terms,
}

impl Task {
    /// Takes far more than its lease is wide, whatever is refused.
    pub(crate) fn is_greedy(&self) -> bool {
        self.number % 2 == 1
    }
}

/// A deliberate error of a worker, which the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Flaw {
    /// A store that knows only until when a block is held, and not what was
    /// issued from it.
    TtlOnly,
    /// A generator that begins anew with each start of its process.
    StartsAnew,
    /// A timeline that reaches past the end of its grant.
    PassesTheEnd,
    /// A store that gives a released block from now on, whatever its mark.
    IgnoresTheMark,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Line {
    /// It has issued these.
    Ids(Vec<u64>),
    /// The store has confirmed these ticks of a block.
    Granted(Tenure),
    /// The store has confirmed these ticks more.
    Renewed(Tenure),
    /// The store has refused.
    Failed { operation: String, error: String },
    /// The generator could not be built yet.
    Unbuilt { error: String },
    /// A take was refused where the one before was not, or still is.
    Refused { error: String },
    /// Takes are served again after so many milliseconds.
    Served { after_ms: u64 },
    /// It has forked, and the child has ended with this status.
    Forked { status: u8 },
    /// A forked child of it has issued these.
    ChildIds(Vec<u64>),
}

/// As many IDs as make a line that a pipe takes in one piece.
pub(crate) const IDS_A_LINE: usize = 128;

/// What a pipe takes in one piece, by POSIX at least 512, and on Linux:
const PIPE_BUF: usize = 4096;

pub(crate) fn task() -> Option<Task> {
    let text = std::env::var(TASK).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// A process of this very program that is a worker.
pub(crate) fn command(task: &Task) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.env(TASK, serde_json::to_string(task).unwrap());
    command
}

/// Says it, or ends this process where nobody listens any more.
pub(crate) fn say(line: &Line) {
    let mut text = serde_json::to_string(line).unwrap();
    text.push('\n');
    assert!(text.len() <= PIPE_BUF, "{}", text.len());
    // SAFETY: the standard output is open for as long as the process lives, and
    // is not closed here.
    let mut output = ManuallyDrop::new(unsafe { File::from_raw_fd(1) });
    if output.write_all(text.as_bytes()).is_err() {
        std::process::exit(1);
    }
}

pub(crate) fn receive(line: &str) -> Result<Line, String> {
    serde_json::from_str(line).map_err(|error| format!("{error} in {line:?}"))
}

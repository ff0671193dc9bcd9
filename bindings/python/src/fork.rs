//! Forks: the identity of a process, and the hooks that Python calls around a fork.
//!
//! # What is promised
//! F1. A fork by `os.fork` copies no half-done SQLite operation of a thread that opens, shuts down
//! or drops a generator, unless the thread is busy for longer than [`PATIENCE`].
//! F2. No hook and no busy thread waits for the other one's GIL.
//! F3. A child starts with nothing busy and nothing forking.
//!
//! # Why
//! [`Busy`] and [`before`] exclude each other as in Dekker's algorithm: each announces itself
//! (`BUSY`, `FORKING`) and then reads the other's word, all in one total order (`SeqCst`). If
//! both announce, `Busy` steps back and waits until no fork is under way, and `before` waits
//! until nothing is busy (F1). `before` waits with the GIL released, and a [`Busy`] thread
//! neither has the GIL nor asks for it (F2). [`after_in_child`] runs in the only
//! thread of the child, so nothing else can write the words that it resets (F3).
//!
//! # Gap
//! The engine renews leases in its own threads. A fork while one of them writes to SQLite is not
//! held off; the engine then refuses SQLite in the child for good. Code that forks without
//! Python's hooks has no F1 either. Neither repeats an ID.

use std::process;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The longest time that a fork waits for busy threads, and that they wait for forks.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// Threads that may be in SQLite.
static BUSY: AtomicUsize = AtomicUsize::new(0);
/// Threads between the hooks of a fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);
/// Forks between the first process and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Which process this is, among a process and those that are forked from it.
///
/// Two parts, because a child of C code has run no hook, and because process numbers repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    generation: u64,
    number: u32,
}

impl Process {
    pub(crate) fn current() -> Self {
        Self {
            generation: GENERATION.load(SeqCst),
            number: process::id(),
        }
    }
}

/// Holds off forks. Not while the thread has the GIL, or waits for it.
#[derive(Debug)]
pub(crate) struct Busy(());

impl Busy {
    pub(crate) fn begin() -> Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            BUSY.fetch_add(1, SeqCst);
            if FORKING.load(SeqCst) == 0 || Instant::now() >= deadline {
                return Self(());
            }
            BUSY.fetch_sub(1, SeqCst);
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.fetch_sub(1, SeqCst);
    }
}

#[pyfunction]
fn before(py: Python<'_>) {
    FORKING.fetch_add(1, SeqCst);
    if BUSY.load(SeqCst) == 0 {
        return;
    }
    py.detach(|| {
        let deadline = Instant::now() + PATIENCE;
        while BUSY.load(SeqCst) > 0 && Instant::now() < deadline {
            thread::sleep(PAUSE);
        }
    });
}

#[pyfunction]
fn after_in_parent() {
    FORKING.fetch_sub(1, SeqCst);
}

#[pyfunction]
fn after_in_child() {
    FORKING.store(0, SeqCst);
    BUSY.store(0, SeqCst);
    GENERATION.fetch_add(1, SeqCst);
}

/// Registers the hooks, once for a process.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    // Not on Windows.
    let Ok(register) = os.getattr("register_at_fork") else {
        return Ok(());
    };
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before, py)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_in_parent, py)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_in_child, py)?)?;
    register.call((), Some(&hooks))?;
    Ok(())
}

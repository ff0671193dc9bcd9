//! Which process this is, among a process and those that are forked from it.

use std::process;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::PyDict;

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
            generation: GENERATION.load(Relaxed),
            number: process::id(),
        }
    }
}

#[pyfunction]
fn after_in_child() {
    // Relaxed: this is the only thread of the child.
    GENERATION.fetch_add(1, Relaxed);
}

/// Registers the hook that counts forks, once for a process.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    // Not on Windows.
    let Ok(register) = os.getattr("register_at_fork") else {
        return Ok(());
    };
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(after_in_child, py)?)?;
    register.call((), Some(&hooks))?;
    Ok(())
}

//! The numbers of cores in a model, where each thread says which one it runs on.

use std::cell::RefCell;

loom::thread_local! {
    /// In reverse; none is core 0.
    static CORES: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

/// Runs this thread on `core` from now on. It starts on core 0.
pub fn run_on_core(core: usize) {
    run_on_cores(&[core]);
}

/// Migrates this thread: each time that it asks for its core, and in each restartable section,
/// it is on the next of `cores`, and stays on the last. A section on a core without a stock is
/// one that was aborted.
pub fn run_on_cores(cores: &[usize]) {
    let cores = cores.iter().rev().copied().collect();
    CORES.with(|it| it.replace(cores));
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CoreNumbers;

impl CoreNumbers {
    pub(super) fn find() -> Self {
        Self
    }

    pub(super) fn here(self) -> usize {
        CORES.with(|cores| {
            let mut cores = cores.borrow_mut();
            let here = cores.last().copied().unwrap_or(0);
            if cores.len() > 1 {
                cores.pop();
            }
            here
        })
    }

    pub(super) fn here_at_once(self) -> Option<usize> {
        Some(self.here())
    }
}

pub(super) fn allowed_cores() -> Vec<usize> {
    Vec::new()
}

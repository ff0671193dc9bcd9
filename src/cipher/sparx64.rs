//! A key of SPARX-64/128, set up for a backend, and what is done with it.

use std::sync::Arc;

use super::backend::{Backend, Engine};
use super::scalar;
use super::schedule::Schedule;
use super::secret::Secret;
use super::shared_words::{self, SharedWords};
use super::task::Task;
use super::walk;

/// SPARX-64/128 under one key, on all numbers or walked onto those of 63 bits.
#[derive(Clone)]
pub(super) struct Sparx64 {
    schedule: Schedule,
    engine: Engine,
    /// Whether it walks, so that raws and IDs are those of [`walk::is_inside`].
    is_positive: bool,
}

impl Sparx64 {
    pub(super) fn new(secret: &Secret, engine: Engine, is_positive: bool) -> Arc<Self> {
        let mut sparx = Arc::new(Self {
            schedule: Schedule::zeroed(),
            engine,
            is_positive,
        });
        // Filled where it stays, so that no copy is left behind on the stack.
        Arc::make_mut(&mut sparx).schedule.expand(secret);
        sparx
    }

    pub(super) fn is_positive(&self) -> bool {
        self.is_positive
    }

    pub(super) fn backend(&self) -> Backend {
        self.engine.backend()
    }

    pub(super) fn encrypt(&self, raw: u64) -> u64 {
        let once = |block| scalar::encrypt(&self.schedule, block);
        if self.is_positive {
            walk::walk(raw, once, walk::is_inside)
        } else {
            once(raw)
        }
    }

    pub(super) fn decrypt(&self, id: u64) -> u64 {
        let once = |block| scalar::decrypt(&self.schedule, block);
        if self.is_positive {
            walk::walk(id, once, walk::is_inside)
        } else {
            once(id)
        }
    }

    pub(super) fn encrypt_run(&self, first: u64, out: &mut [u64]) {
        for (first, out) in shared_words::split(first, out) {
            // A section lies inside the domain of walks as a whole, or outside.
            if self.is_positive && !walk::is_inside(first) {
                super::count_up(first, out);
            } else {
                self.encrypt_section(first, out);
            }
        }
    }

    fn encrypt_section(&self, first: u64, out: &mut [u64]) {
        let shared = SharedWords::new(&self.schedule, first);
        self.engine
            .perform(&self.schedule, Task::EncryptRun(shared), out);
        if self.is_positive {
            self.engine.walk_on(&self.schedule, out);
        }
    }
}

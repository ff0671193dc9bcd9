//! A key of SPARX-64/128, set up for a backend, and what is done with it.

use std::sync::Arc;

use super::backend::{Backend, Engine};
use super::schedule::Schedule;
use super::secret::Secret;
use super::shared_words::{self, SharedWords};
use super::task::Task;
use super::walk::{self, Steps};
use super::{plain, scalar};

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
            match self.is_positive {
                false => self.encrypt_section(first, out),
                true if walk::is_inside(first) => self.walk_section(first, out),
                true => plain::encrypt_run(first, out),
            }
        }
    }

    fn encrypt_section(&self, first: u64, out: &mut [u64]) {
        let shared = SharedWords::new(&self.schedule, first);
        self.perform(Task::EncryptRun(shared), out);
    }

    fn walk_section(&self, first: u64, out: &mut [u64]) {
        let steps = Steps {
            begin: |start, piece: &mut [u64]| self.encrypt_section(first + start as u64, piece),
            begun: |numbers: &mut [u64], places: &mut [u16]| self.keep_outside(numbers, places),
            next: |numbers: &mut [u64]| self.perform(Task::Encrypt, numbers),
            go_on: |numbers: &mut [u64], places: &mut [u16]| self.keep_outside(numbers, places),
        };
        walk::walk_all(out, &steps);
    }

    pub(super) fn encrypt_batch(&self, numbers: &mut [u64]) {
        self.perform_batch(Task::Encrypt, numbers);
    }

    pub(super) fn decrypt_batch(&self, numbers: &mut [u64]) {
        self.perform_batch(Task::Decrypt, numbers);
    }

    fn perform_batch(&self, task: Task, numbers: &mut [u64]) {
        if !self.is_positive {
            return self.perform(task, numbers);
        }
        let steps = Steps {
            begin: |_, _: &mut [u64]| {},
            // What lies outside stays as it is.
            begun: |numbers: &mut [u64], places: &mut [u16]| {
                walk::keep(numbers, places, walk::is_inside)
            },
            next: |numbers: &mut [u64]| self.perform(task, numbers),
            go_on: |numbers: &mut [u64], places: &mut [u16]| self.keep_outside(numbers, places),
        };
        for numbers in numbers.chunks_mut(walk::MOST) {
            walk::walk_all(numbers, &steps);
        }
    }

    fn keep_outside(&self, numbers: &mut [u64], places: &mut [u16]) -> usize {
        self.engine.keep_outside(numbers, places)
    }

    fn perform(&self, task: Task, blocks: &mut [u64]) {
        self.engine.perform(&self.schedule, task, blocks);
    }
}

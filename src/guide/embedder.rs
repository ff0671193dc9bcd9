//! Code of an embedder in every interleaving: a reserve that two threads share.
#![cfg(loom)]

use std::time::Duration;

use loom::sync::{Arc, Mutex};
use loom::thread;
use ringflake::{CachedGenerator, Id, Layout, ManualClock, OnEmpty, StaticLease, TakeError};

/// The code under test: a reserve that threads share. A thread that finds it empty fills it.
struct Reserve {
    ids: CachedGenerator,
    left: Mutex<Vec<Id>>,
}

impl Reserve {
    fn take(&self) -> Result<Id, TakeError> {
        if let Some(id) = self.left.lock().unwrap().pop() {
            return Ok(id);
        }
        let [id, next] = self.ids.take_array()?;
        self.left.lock().unwrap().push(next);
        Ok(id)
    }
}

/// A generator of four IDs without producer threads, on a clock that stands still.
fn four_ids() -> CachedGenerator {
    let layout = Layout::RANDFLAKE;
    CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, 0..1))
        .clock(ManualClock::new(1_763_000_000_000))
        .borrow_limit(Duration::ZERO)
        .capacity(4)
        .stripes(1)
        .threshold_fill(None)
        .on_empty(OnEmpty::Error)
        .build()
        .unwrap()
}

#[test]
fn each_id_of_a_reserve_is_given_once() {
    loom::model(|| {
        let reserve = Arc::new(Reserve {
            ids: four_ids(),
            left: Mutex::new(Vec::new()),
        });
        let other = Arc::clone(&reserve);
        let other = thread::spawn(move || other.take().unwrap());
        let mut ids = vec![reserve.take().unwrap(), other.join().unwrap()];
        ids.append(&mut reserve.left.lock().unwrap());
        let made = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), made, "an ID was given twice");
    });
}

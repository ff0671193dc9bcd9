//! One operation: when it began, and how often it was decided again.

use std::hash::{BuildHasher, RandomState};
use std::thread;
use std::time::{Duration, Instant};

use crate::lease::error::StoreError;
use crate::lease::store::table::{Snapshot, StoreTime, Txn};

/// Conflicts without a pause, and the longest pause after one.
const AT_ONCE: u32 = 3;
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

/// Conflicts after which a repeatable operation gives up. Each is a change of somebody else, and a
/// thread that never runs at the right moment meets all of them: more than a test makes.
const MOST: u32 = 1_000;

#[derive(Debug)]
pub(super) struct Attempts {
    started: Instant,
    patience: Duration,
    conflicts: u32,
    is_repeatable: bool,
}

impl Attempts {
    pub(super) fn new(patience: Duration, is_repeatable: bool) -> Self {
        Self {
            started: Instant::now(),
            patience,
            conflicts: 0,
            is_repeatable,
        }
    }

    pub(super) fn conflicts(&self) -> u32 {
        self.conflicts
    }

    /// Notes that `txn` conflicted with the snapshot `found`, and waits a random moment after the
    /// first few.
    pub(super) fn again(&mut self, txn: &Txn, found: &Snapshot) -> Result<(), StoreError> {
        self.conflicts += 1;
        let is_last = match self.is_repeatable {
            true => self.conflicts >= MOST,
            false => self.started.elapsed() >= self.patience,
        };
        if is_last {
            return Err(StoreError::unavailable(self.cause(txn, found)));
        }
        if !self.is_repeatable && self.conflicts > AT_ONCE {
            let longest = Duration::from_millis(1 << (self.conflicts - AT_ONCE).min(5));
            let share = RandomState::new().hash_one(self.conflicts) % 1024;
            thread::sleep(longest.min(LONGEST_PAUSE) * share as u32 / 1024);
        }
        Ok(())
    }

    /// Why the last one conflicted.
    fn cause(&self, txn: &Txn, found: &Snapshot) -> String {
        let conflicts = self.conflicts;
        let is_late = matches!(&found.time, Ok(time) if time.unix_ms > txn.not_after_unix_ms);
        if is_late {
            return format!(
                "{conflicts} times, the change came later after its reading than the namespace's \
                 skew allows; the store is slow, or the namespace needs a longer skew"
            );
        }
        format!("other processes changed the same entries {conflicts} times")
    }

    /// The server's time in a snapshot, to be compared with a caller's time from before the
    /// operation.
    pub(super) fn time(&self, snapshot: &Snapshot) -> Result<StoreTime, StoreError> {
        let time = snapshot.time.clone();
        let mut time = time.map_err(StoreError::unavailable)?;
        // Earlier calls of the operation took time, too.
        if !self.is_repeatable {
            let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let earliest = time.unix_ms.saturating_sub(elapsed);
            time.earliest_unix_ms = time.earliest_unix_ms.min(earliest);
        }
        Ok(time)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::error::Error;

    use super::*;
    use crate::lease::store::record::Incarnation;

    fn snapshot(unix_ms: u64) -> Snapshot {
        Snapshot {
            entries: BTreeMap::new(),
            complete: true,
            time: Ok(StoreTime::exactly(unix_ms)),
            incarnation: Incarnation::new("7"),
        }
    }

    #[test]
    fn repeatable_attempts_end_by_their_number() {
        let mut attempts = Attempts::new(Duration::ZERO, true);
        let again = |_: &u32| attempts.again(&Txn::default(), &snapshot(7)).is_err();
        let conflicts = (1..).find(again);
        assert_eq!(conflicts, Some(MOST));
    }

    #[test]
    fn attempts_end_with_the_patience() {
        let mut impatient = Attempts::new(Duration::ZERO, false);
        let found = snapshot(7);
        let error = impatient.again(&Txn::default(), &found).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        let mut patient = Attempts::new(Duration::from_secs(3600), false);
        (0..5).for_each(|_| patient.again(&Txn::default(), &found).unwrap());
    }

    #[test]
    fn a_slow_store_is_told_from_a_busy_one() {
        for (not_after_unix_ms, cause) in [(6, "the store is slow"), (7, "other processes")] {
            let txn = Txn {
                not_after_unix_ms,
                ..Txn::default()
            };
            let mut attempts = Attempts::new(Duration::ZERO, false);
            let error = attempts.again(&txn, &snapshot(7)).unwrap_err();
            let why = error.source().unwrap().to_string();
            assert!(why.contains(cause), "{why}");
        }
    }
}

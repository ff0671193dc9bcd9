//! The findings of all threads.

use std::io;

use anyhow::{Result, bail};
use ringflake::{Id, Inspector};

use super::oracle::{Marker, Verdict};
use crate::report::forgive_closed_pipe;

/// How many IDs were checked, and how many of them were wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) ids: u64,
    pub(super) duplicates: u64,
    pub(super) outside: u64,
    /// How often the generator refused for the moment.
    pub(super) waits: u64,
}

impl Tally {
    pub(super) fn sum(self, other: Self) -> Self {
        Self {
            ids: self.ids + other.ids,
            duplicates: self.duplicates + other.duplicates,
            outside: self.outside + other.outside,
            waits: self.waits + other.waits,
        }
    }

    pub(super) fn check(&mut self, id: Id, inspector: &Inspector, marker: &mut Marker<'_>) {
        self.ids += 1;
        let verdict = match inspector.inspect(id) {
            Ok(parts) => marker.mark(&parts),
            Err(_) => Verdict::Outside,
        };
        match verdict {
            Verdict::New => {}
            Verdict::Duplicate => self.duplicates += 1,
            Verdict::Outside => self.outside += 1,
        }
    }

    /// An error if an ID was wrong, even where the figures could not be printed.
    pub(super) fn conclude(&self, printed: io::Result<()>) -> Result<()> {
        if self.duplicates > 0 || self.outside > 0 {
            bail!(
                "{} IDs were issued twice and {} outside the leases",
                self.duplicates,
                self.outside
            );
        }
        forgive_closed_pipe(printed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_does_not_depend_on_a_reader() {
        let closed = || Err(io::ErrorKind::BrokenPipe.into());
        let clean = Tally::default();
        assert!(clean.conclude(closed()).is_ok());
        assert!(
            clean
                .conclude(Err(io::ErrorKind::StorageFull.into()))
                .is_err()
        );
        for (duplicates, outside) in [(1, 0), (0, 1)] {
            let tally = Tally {
                duplicates,
                outside,
                ..clean
            };
            let verdict = tally.conclude(closed()).unwrap_err().to_string();
            assert!(verdict.contains("issued twice"), "{verdict}");
        }
    }
}

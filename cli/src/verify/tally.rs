//! The findings of all threads.

use anyhow::{Result, bail};
use ringflake::{Id, Inspector};

use super::oracle::{Marker, Verdict};

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
    pub(super) fn conclude(&self, printed: Result<()>) -> Result<()> {
        if self.duplicates > 0 || self.outside > 0 {
            bail!(
                "{} IDs were issued twice and {} outside the leases",
                self.duplicates,
                self.outside
            );
        }
        printed
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn the_verdict_does_not_depend_on_what_could_be_printed() {
        let full = || Err(anyhow!("no space left"));
        let clean = Tally::default();
        assert!(clean.conclude(Ok(())).is_ok() && clean.conclude(full()).is_err());
        for (duplicates, outside) in [(1, 0), (0, 1)] {
            let tally = Tally {
                duplicates,
                outside,
                ..clean
            };
            for printed in [Ok(()), full()] {
                let verdict = tally.conclude(printed).unwrap_err().to_string();
                assert!(verdict.contains("issued twice"), "{verdict}");
            }
        }
    }
}

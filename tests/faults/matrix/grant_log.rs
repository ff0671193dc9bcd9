//! Compares the issued IDs with the grants.
//!
//! Each ID is decrypted. Its cell (node, tick, sequence) has one bit, whichever
//! process issued it. Its block and tick must lie in a grant of that process. The
//! grants themselves are sorted by their beginnings, as a check that knows of no
//! IDs: of two grants of a block, the later begins where the earlier ends, or
//! after.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ringflake::lease::Namespace;
use ringflake::{Cipher, Id, Inspector};
use serde::{Deserialize, Serialize};

use super::space;

/// A process, by the order in which they were started.
pub(crate) type Run = usize;

/// A grant, with the end that was confirmed last. The epoch alone does not tell
/// one of a block from another: a store that lost its history gives it again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tenure {
    pub(crate) block: u64,
    pub(crate) epoch: u64,
    pub(crate) ticks: Range<u64>,
}

pub(crate) struct GrantLog {
    space: Namespace,
    inspector: Inspector,
    /// A bit for each sequence of a node and tick.
    cells: HashMap<(u64, u64), u64>,
    /// Of each process, in the order in which they came.
    grants: HashMap<Run, Vec<Tenure>>,
    pub(crate) issued: u64,
    /// How many were issued a second time, by tick.
    twice: BTreeMap<u64, u64>,
    pub(crate) outside: u64,
    pub(crate) examples: Vec<String>,
}

impl GrantLog {
    pub(crate) fn new(space: &Namespace) -> Self {
        let layout = *space.layout();
        assert!(layout.sequences() <= 64, "a word has a bit for each");
        let cipher = Cipher::sparx64(&space::secret(space.name()));
        Self {
            space: space.clone(),
            inspector: Inspector::new(layout, cipher),
            cells: HashMap::new(),
            grants: HashMap::new(),
            issued: 0,
            twice: BTreeMap::new(),
            outside: 0,
            examples: Vec::new(),
        }
    }

    pub(crate) fn grant(&mut self, run: Run, grant: Tenure) {
        self.grants.entry(run).or_default().push(grant);
    }

    /// Moves an end from the start of these ticks to their end.
    ///
    /// # Errors
    /// Where the process has no such grant.
    pub(crate) fn renew(&mut self, run: Run, more: &Tenure) -> Result<(), String> {
        let is_it = |grant: &&mut Tenure| {
            (grant.block, grant.epoch, grant.ticks.end)
                == (more.block, more.epoch, more.ticks.start)
        };
        let grants = self.grants.entry(run).or_default();
        let grant = grants.iter_mut().rev().find(is_it);
        let grant = grant.ok_or_else(|| format!("run {run} renewed {more:?}, and had none"))?;
        grant.ticks.end = more.ticks.end;
        Ok(())
    }

    /// # Errors
    /// If the number is not an ID of this layout.
    pub(crate) fn issue(&mut self, run: Run, id: u64) -> Result<(), String> {
        let parts = self
            .inspector
            .inspect(Id::from_u64(id))
            .map_err(|error| format!("run {run} issued {id:#x}: {error}"))?;
        self.issued += 1;
        let bit = 1 << parts.sequence;
        let cell = self.cells.entry((parts.node, parts.tick)).or_default();
        let is_new = *cell & bit == 0;
        *cell |= bit;
        if !is_new {
            *self.twice.entry(parts.tick).or_default() += 1;
            self.example(format!("run {run} issued {parts:?} again"));
        }
        let block = self.space.block_of(parts.node).index();
        let is_granted = self.grants.get(&run).is_some_and(|grants| {
            let covers = |it: &Tenure| it.block == block && it.ticks.contains(&parts.tick);
            grants.iter().any(covers)
        });
        if !is_granted {
            self.outside += 1;
            self.example(format!("run {run} issued {parts:?} without a grant"));
        }
        Ok(())
    }

    fn example(&mut self, text: String) {
        if self.examples.len() < 5 {
            self.examples.push(text);
        }
    }

    /// How many IDs were issued a second time, of those that lie in this tick or after.
    pub(crate) fn twice_from(&self, tick: u64) -> u64 {
        self.twice.range(tick..).map(|(_, count)| count).sum()
    }

    pub(crate) fn by_block(&self) -> BTreeMap<u64, Vec<(Run, &Tenure)>> {
        let mut by_block: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for (&run, grants) in &self.grants {
            for grant in grants {
                by_block.entry(grant.block).or_default().push((run, grant));
            }
        }
        by_block
    }

    /// The pairs of grants of one block that share a tick, this one or a later one.
    pub(crate) fn overlaps(&self, from: u64) -> Vec<String> {
        let mut overlaps = Vec::new();
        for mut grants in self.by_block().into_values() {
            grants.sort_unstable_by_key(|(_, grant)| (grant.ticks.start, grant.ticks.end));
            let mut reaches_furthest: Option<(Run, &Tenure)> = None;
            for grant in grants {
                if let Some(before) = reaches_furthest
                    && grant.1.ticks.start < before.1.ticks.end
                    && from < before.1.ticks.end.min(grant.1.ticks.end)
                {
                    overlaps.push(format!("runs {before:?} and {grant:?}"));
                }
                if reaches_furthest.is_none_or(|it| it.1.ticks.end <= grant.1.ticks.end) {
                    reaches_furthest = Some(grant);
                }
            }
        }
        overlaps
    }

    pub(crate) fn grants_of(&self, run: Run) -> &[Tenure] {
        self.grants.get(&run).map_or(&[], Vec::as_slice)
    }
}

//! Whether numbers are distinct.

use std::collections::HashMap;

/// Numbers that share a page of marks: as many as a node of Randflake's layout
/// has in a tick.
const PAGE_BITS: u32 = 17;

/// A bitmap over all 64-bit numbers, with memory only where numbers were seen.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pages: HashMap<u64, Box<[u64]>>,
}

impl Marks {
    /// Marks `raw`, and says whether that was the first time.
    pub(crate) fn mark(&mut self, raw: u64) -> bool {
        let page = self
            .pages
            .entry(raw >> PAGE_BITS)
            .or_insert_with(|| vec![0; (1 << PAGE_BITS) / 64].into_boxed_slice());
        let word = &mut page[(raw as usize >> 6) & ((1 << PAGE_BITS) / 64 - 1)];
        let bit = 1 << (raw % 64);
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

/// How many of `numbers` were there already.
pub(crate) fn duplicates<V: Ord>(mut numbers: Vec<V>) -> usize {
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    all - numbers.len()
}

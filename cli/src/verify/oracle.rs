//! The oracle: has this raw been seen before, and was it ours to issue?
//!
//! The log of confirmed leases answers whether it was ours. For the other
//! question each raw of the layout has a place on a line: node, tick, sequence.
//! A bit a place, in pages made on demand, says whether it was seen. Setting a
//! bit also returns whether it was set before, so two threads that mark
//! the same raw can't both find it new.
//!
//! A page in which every bit is set needs no memory any more: whatever falls
//! on it is a duplicate. A node gives all its raws of a tick, and most ticks in a
//! row, so pages fill up, and the oracle stays small however long it is asked.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock};

use ringflake::{Layout, Parts};

use crate::leases::{AuditLog, Extent};

/// Bits in one page: 8 KiB, little enough to be wasted when the clock moves on.
const PAGE_BITS: u32 = 1 << 16;

/// The IDs that any number of [`Marker`]s have seen.
#[derive(Debug)]
pub(super) struct Oracle<'a> {
    layout: Layout,
    audit_log: &'a AuditLog,
    /// By number; `None` for a page that is full.
    pages: RwLock<HashMap<u64, Option<Arc<Page>>>>,
}

#[derive(Debug)]
struct Page(Box<[AtomicU64]>);

/// What the oracle says about a raw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    New,
    Duplicate,
    /// Not of a lease that was confirmed.
    Outside,
}

impl<'a> Oracle<'a> {
    pub(super) fn new(layout: Layout, audit_log: &'a AuditLog) -> Self {
        Self {
            layout,
            audit_log,
            pages: RwLock::default(),
        }
    }

    pub(super) fn marker(&self) -> Marker<'_> {
        Marker {
            oracle: self,
            extent: None,
            current: None,
        }
    }

    fn place(&self, parts: &Parts) -> u64 {
        // The parts are the layout's, so this has as many bits as a raw.
        let row = parts.node << self.layout.time_bits() | parts.tick;
        row << self.layout.sequence_bits() | parts.sequence
    }

    /// The page of this number, made if it is new; `None` if it is full.
    fn page(&self, number: u64) -> Option<Arc<Page>> {
        let pages = self.pages.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get(&number) {
            return page.clone();
        }
        drop(pages);
        let mut pages = self.pages.write().unwrap_or_else(PoisonError::into_inner);
        let page = pages.entry(number).or_insert_with(|| Some(Page::new()));
        page.clone()
    }

    /// Gives up the memory of a page that is full.
    fn retire(&self, number: u64) {
        let mut pages = self.pages.write().unwrap_or_else(PoisonError::into_inner);
        pages.insert(number, None);
    }
}

impl Page {
    fn new() -> Arc<Self> {
        let words = 0..PAGE_BITS / u64::BITS;
        Arc::new(Self(words.map(|_| AtomicU64::new(0)).collect()))
    }

    /// Sets a bit; whether it was clear before.
    fn set(&self, bit: u32) -> bool {
        let mask = 1 << (bit % u64::BITS);
        // Relaxed: the bits publish nothing but themselves.
        let before = self.0[(bit / u64::BITS) as usize].fetch_or(mask, Relaxed);
        before & mask == 0
    }

    fn is_full(&self) -> bool {
        // Relaxed: see `set`. If two markers leave at once and neither sees the other's bits,
        // the page keeps its memory.
        self.0.iter().all(|word| word.load(Relaxed) == u64::MAX)
    }
}

/// One thread's access to an [`Oracle`]. It keeps the extent and the page that it
/// used last, because the next raw is nearly always of the same ones.
#[derive(Debug)]
pub(super) struct Marker<'a> {
    oracle: &'a Oracle<'a>,
    /// As it was then: its end may have moved out since.
    extent: Option<Extent>,
    /// A page by its number; `None` in place of one that is full.
    current: Option<(u64, Option<Arc<Page>>)>,
}

impl Marker<'_> {
    pub(super) fn mark(&mut self, parts: &Parts) -> Verdict {
        if !self.is_ours(parts) {
            return Verdict::Outside;
        }
        let place = self.oracle.place(parts);
        let page_bits = u64::from(PAGE_BITS);
        let (number, bit) = (place / page_bits, (place % page_bits) as u32);
        match self.turn_to(number) {
            Some(page) if page.set(bit) => Verdict::New,
            _ => Verdict::Duplicate,
        }
    }

    fn is_ours(&mut self, parts: &Parts) -> bool {
        let (node, tick) = (parts.node, parts.tick);
        let is_known = |extent: &Extent| extent.contains(node, tick);
        self.extent.as_ref().is_some_and(is_known) || self.look_up(node, tick)
    }

    #[cold]
    fn look_up(&mut self, node: u64, tick: u64) -> bool {
        self.extent = self.oracle.audit_log.extent(node, tick);
        self.extent.is_some()
    }

    fn turn_to(&mut self, number: u64) -> Option<&Page> {
        if self.current.as_ref().is_some_and(|(at, _)| *at != number) {
            self.leave();
        }
        let turn = || (number, self.oracle.page(number));
        let (_, page) = self.current.get_or_insert_with(turn);
        page.as_deref()
    }

    /// Puts the current page down, for good if it is full.
    fn leave(&mut self) {
        if let Some((number, Some(page))) = self.current.take()
            && page.is_full()
        {
            self.oracle.retire(number);
        }
    }
}

impl Drop for Marker<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::thread;
    use std::time::Duration;

    use ringflake::lease::{Block, Epoch, Fingerprint, Grant, Namespace};

    use super::*;

    const LAYOUT: Layout = Layout::RANDFLAKE;

    /// Nodes 4 and 5, for the ticks 100 to 199.
    fn audit_log() -> AuditLog {
        let space = Namespace::new("a", &LAYOUT, Fingerprint::PLAIN).unwrap();
        let audit_log = AuditLog::new(space.with_block_bits(1).unwrap());
        audit_log.granted(&[Grant::new(Block::new(2), Epoch::FIRST, 100..200)]);
        audit_log
    }

    fn parts(tick: u64, node: u64, sequence: u64) -> Parts {
        LAYOUT
            .unpack(LAYOUT.pack(tick, node, sequence).unwrap())
            .unwrap()
    }

    #[test]
    fn every_raw_of_a_layout_has_a_place_of_its_own() {
        let layout = Layout::builder()
            .bits(4, 3, 2)
            .tick(Duration::from_secs(1))
            .build()
            .unwrap();
        let audit_log = audit_log();
        let oracle = Oracle::new(layout, &audit_log);
        let raws = 0..1 << layout.total_bits();
        let mut places: Vec<_> = raws
            .map(|raw| oracle.place(&layout.unpack(raw).unwrap()))
            .collect();
        places.sort_unstable();
        assert_eq!(places, (0..1 << 9).collect::<Vec<_>>());
        let last = LAYOUT.unpack(u64::MAX).unwrap();
        assert_eq!(Oracle::new(LAYOUT, &audit_log).place(&last), u64::MAX);
    }

    #[test]
    fn what_was_not_granted_is_outside() {
        let audit_log = audit_log();
        let oracle = Oracle::new(LAYOUT, &audit_log);
        let mut marker = oracle.marker();
        for (tick, node) in [(99, 4), (200, 4), (100, 3), (100, 6)] {
            assert_eq!(marker.mark(&parts(tick, node, 0)), Verdict::Outside);
            assert_eq!(marker.mark(&parts(100, 4, tick * 8 + node)), Verdict::New);
        }
    }

    #[test]
    fn what_is_granted_later_is_inside() {
        let audit_log = audit_log();
        let oracle = Oracle::new(LAYOUT, &audit_log);
        let mut marker = oracle.marker();
        assert_eq!(marker.mark(&parts(199, 4, 0)), Verdict::New);
        assert_eq!(marker.mark(&parts(200, 4, 0)), Verdict::Outside);
        audit_log.renewed(Block::new(2), 200, 201);
        assert_eq!(marker.mark(&parts(200, 4, 0)), Verdict::New);
        assert_eq!(marker.mark(&parts(201, 4, 0)), Verdict::Outside);
        audit_log.granted(&[Grant::new(Block::new(7), Epoch::FIRST, 300..301)]);
        assert_eq!(marker.mark(&parts(300, 15, 0)), Verdict::New);
    }

    #[test]
    fn a_full_page_gives_up_its_memory_and_still_knows_duplicates() {
        let audit_log = audit_log();
        let oracle = Oracle::new(LAYOUT, &audit_log);
        let mark = |sequences: Range<u64>, verdict| {
            let mut marker = oracle.marker();
            for sequence in sequences {
                assert_eq!(marker.mark(&parts(100, 4, sequence)), verdict);
            }
        };
        let page = u64::from(PAGE_BITS);
        let first = oracle.place(&parts(100, 4, 0)) / page;
        mark(0..page / 3, Verdict::New);
        mark(page / 3..page - 1, Verdict::New);
        assert!(oracle.page(first).is_some());
        mark(page - 1..page, Verdict::New);
        assert!(oracle.page(first).is_none());
        mark(0..page, Verdict::Duplicate);
        mark(page..page + 1, Verdict::New);
    }

    #[test]
    fn threads_that_mark_the_same_raws_share_them_out() {
        let audit_log = audit_log();
        let oracle = Oracle::new(LAYOUT, &audit_log);
        let count = || {
            let mut marker = oracle.marker();
            (0..100_000)
                .filter(|&sequence| marker.mark(&parts(150, 5, sequence)) == Verdict::New)
                .count()
        };
        let new: usize = thread::scope(|scope| {
            let threads = [scope.spawn(count), scope.spawn(count)];
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(new, 100_000);
    }
}

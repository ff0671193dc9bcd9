//! The nodes and ticks of given leases that generators of this process use, or
//! have used.
//!
//! A given lease, one that the caller passes to a builder, is a promise of the
//! caller's. This registry has the part of it that the process can check: the
//! nodes and ticks that its generators use, and those that they have used. No
//! generator is built on a lease that overlaps with either, however it was made.
//! Leases that a renewal thread has from a store are not entered: the store
//! keeps them apart.
//!
//! IDs can only be equal within one [`Space`]: the same layout and the same
//! secret, or none. Each space has a record of its own. The width of IDs does not separate
//! spaces: half of the raws have the same ID in 63 bits as in 64, so generators of both on
//! the same nodes would make duplicates.
//!
//! # State
//! ```text
//!            enter: meets nothing                 leave
//!   free ------------------------> in use ----------------------> used
//!    ^                               |        what was claimed
//!    +-------------------------------+
//!       drop, or leave with nothing claimed
//! ```
//! The whole rectangle is in use, up to the lease's end. The part up to the end
//! of the last tick that was claimed from is used, and stays so for ever. Only
//! the lease that it was claimed from enters it again: that lease knows its
//! position to the sequence, and begins in the middle of the last tick.
//!
//! # Why it is right
//! *One process.* All steps are made under one lock. A rectangle is entered if it
//! meets none in use and, from its first fresh tick on, none used. So at any time
//! those in use are disjoint, and disjoint from those used but for the one tick
//! in which a lease goes on. That tick became used when the same lease left it,
//! so nobody else has entered it since, and nobody else had it before: then the
//! lease would not have been entered itself. What a generator claims lies in its
//! rectangle (U2), and it leaves when nothing more can be claimed.
//!
//! *Forked processes.* The parent may go on, or build again on what it used, and
//! the child can't know. So whatever its parent had or used counts in the child
//! as the parent's, for ever, with all ticks of its nodes, and nothing that the
//! child drops changes that. The child then makes a registry of its own
//! ([`PerProcess`]).
//!
//! *A fork while another thread holds a lock.* That lock is never unlocked in the
//! child, which must not wait for it. So there are two copies of the state, each
//! under a lock of its own. A thread that has the registry changes the first, unlocks
//! it, and then changes the second: at any instruction at most one of the two is
//! locked by it, and the other is whole. The child takes over the one that it can
//! lock. If that is the second, the change that it misses belongs to a build or a
//! drop which had not returned, so no ID hung on it yet: a build that goes on in
//! the parent after the fork is like one that begins then.
//!
//! # Size
//! Used ticks of the same nodes are merged where they touch. Beyond
//! [`MAX_INTERVALS`] the smallest gap is counted as used too, which refuses more
//! than it must and never less. So a space takes memory for its different ranges
//! of nodes, however often generators are built on them. A space is never forgotten, because its
//! IDs are out: a process that builds generators with ever new secrets keeps about 1 KiB for each.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::{io, thread};

use crate::cipher::Secret;
use crate::fork::{Marked, PerProcess};
use crate::layout::Layout;
use crate::lease::fingerprint::Fingerprint;
use crate::sync::IN_A_MODEL;

/// The maximum of intervals of used ticks that are kept for one range of nodes.
const MAX_INTERVALS: usize = 64;

/// Where IDs can meet: one layout, and one secret or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Space {
    layout: Layout,
    fingerprint: Fingerprint,
}

impl Space {
    pub(crate) fn new(layout: Layout, secret: Option<&Secret>) -> Self {
        Self {
            layout,
            fingerprint: secret.map_or(Fingerprint::PLAIN, Fingerprint::of),
        }
    }
}

/// Nodes times ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) nodes: Range<u64>,
    pub(crate) ticks: Range<u64>,
}

/// The reason why a rectangle can't be entered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// A generator has this one.
    InUse(Rectangle),
    /// A generator had this one. Of several, the one with the last tick.
    Used(Rectangle),
    /// The process that this one was forked from had these nodes then.
    Inherited(Range<u64>),
}

/// A rectangle in use. Dropping it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Entry {
    space: Space,
    rectangle: Rectangle,
    number: u64,
    /// None in a model. Its iterations are one process and one run of the program
    /// each, which know nothing of one another.
    registry: Option<&'static Marked<Registry>>,
}

/// The right to check and to enter. While a thread of this process has it, no other
/// enters, leaves or checks.
pub(crate) struct RegistryGuard {
    /// None in a model, as in [`Entry`].
    held: Option<(&'static Marked<Registry>, MutexGuard<'static, u64>)>,
}

/// Waits for the registry's lock, which others hold for a few microseconds; never for one that
/// a parent held when this process was forked. The holder must not drop an [`Entry`], which
/// waits for this lock, too.
///
/// # Errors
/// The operating system's, for the one page of memory that a process needs for its
/// registry.
pub(crate) fn guard() -> io::Result<RegistryGuard> {
    if IN_A_MODEL {
        return Ok(RegistryGuard { held: None });
    }
    let registry = Registry::of_this_process()?;
    let held = Some((registry, lock(&registry.next_number)));
    Ok(RegistryGuard { held })
}

impl RegistryGuard {
    /// Which of a parent's nodes `nodes` meet, in a process that was forked.
    pub(crate) fn inherited(&self, space: Space, nodes: &Range<u64>) -> Option<Range<u64>> {
        let registry = self.held.as_ref()?.0;
        registry.inherited(space, nodes)
    }

    /// Whether `rectangle` could be entered, of which the ticks from `fresh` on must
    /// never have been used; those before are of the lease that is entered again.
    /// Enters nothing.
    pub(crate) fn check(
        &self,
        space: Space,
        rectangle: &Rectangle,
        fresh: u64,
    ) -> Result<(), Conflict> {
        let Some(registry) = self.held.as_ref().map(|held| held.0) else {
            return Ok(());
        };
        match registry.inherited(space, &rectangle.nodes) {
            Some(nodes) => Err(Conflict::Inherited(nodes)),
            None => lock(&registry.copies[0]).check(space, rectangle, fresh),
        }
    }

    /// Enters `rectangle`, under the condition of [`check`](Self::check).
    pub(crate) fn enter(
        &mut self,
        space: Space,
        rectangle: Rectangle,
        fresh: u64,
    ) -> Result<Entry, Conflict> {
        self.check(space, &rectangle, fresh)?;
        let entered = self.held.as_mut().map(|(registry, next)| {
            let number = registry.enter(next, space, &rectangle);
            (*registry, number)
        });
        Ok(Entry {
            space,
            rectangle,
            number: entered.map_or(0, |(_, number)| number),
            registry: entered.map(|(registry, _)| registry),
        })
    }
}

impl Entry {
    /// Whether it was entered by the process that this one was forked from.
    pub(crate) fn is_inherited(&self) -> bool {
        self.registry.is_some_and(Marked::is_inherited)
    }

    /// Ends the use. IDs of the ticks before `end` may have been issued.
    pub(crate) fn leave(mut self, end: u64) {
        self.end(Some(end));
    }

    fn end(&mut self, claimed_before: Option<u64>) {
        // A parent's registry is the parent's to change.
        if let Some(registry) = self.registry.take()
            && !registry.is_inherited()
        {
            let used = claimed_before.map(|end| Rectangle {
                nodes: self.rectangle.nodes.clone(),
                ticks: self.rectangle.ticks.start..end,
            });
            registry.leave(self.space, self.number, used);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.end(None);
    }
}

/// The registry of one process.
#[derive(Debug)]
struct Registry {
    /// The nodes that the ancestors of this process had at the forks.
    inherited: Vec<(Space, Range<u64>)>,
    /// The number of the next entry. The holder of this lock may change the
    /// copies.
    next_number: Mutex<u64>,
    copies: [Mutex<State>; 2],
}

static REGISTRY: PerProcess<Registry> = PerProcess::new();

impl Registry {
    fn of_this_process() -> io::Result<&'static Marked<Self>> {
        REGISTRY.get(|parent| Ok(Self::new(parent)))
    }

    fn new(parent: Option<&Self>) -> Self {
        Self {
            inherited: parent.map(Self::to_inherit).unwrap_or_default(),
            next_number: Mutex::new(0),
            copies: Default::default(),
        }
    }

    /// In a child, the nodes in this registry of its parent's.
    fn to_inherit(&self) -> Vec<(Space, Range<u64>)> {
        let mut all = self.inherited.clone();
        // One of the two is never held by a thread of the parent, and threads of
        // this process hold them for a moment only.
        loop {
            for copy in &self.copies {
                let state = match copy.try_lock() {
                    Ok(state) => state,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => continue,
                };
                all.extend(state.nodes());
                return all;
            }
            thread::yield_now();
        }
    }

    fn inherited(&self, space: Space, nodes: &Range<u64>) -> Option<Range<u64>> {
        let mut of_space = self.inherited.iter().filter(|(of, _)| *of == space);
        let found = of_space.find(|(_, inherited)| meet(inherited, nodes));
        found.map(|(_, inherited)| inherited.clone())
    }

    /// Records the rectangle that was checked under this lock. Returns its number.
    fn enter(&self, next: &mut u64, space: Space, rectangle: &Rectangle) -> u64 {
        let number = *next;
        *next += 1;
        for copy in &self.copies {
            let mut state = lock(copy);
            let record = state.spaces.entry(space).or_default();
            record.in_use.push((number, rectangle.clone()));
        }
        number
    }

    fn leave(&self, space: Space, number: u64, used: Option<Rectangle>) {
        let _guard = lock(&self.next_number);
        for copy in &self.copies {
            let mut state = lock(copy);
            let record = state.spaces.entry(space).or_default();
            record.in_use.retain(|(other, _)| *other != number);
            if let Some(used) = &used {
                record.use_up(used);
            }
            if record.in_use.is_empty() && record.used.is_empty() {
                state.spaces.remove(&space);
            }
        }
    }
}

/// Nothing in here runs foreign code or unwinds half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct State {
    spaces: HashMap<Space, Record>,
}

/// The record of one space.
#[derive(Debug, Default)]
struct Record {
    in_use: Vec<(u64, Rectangle)>,
    used: Vec<Used>,
}

/// Ticks of nodes that were used.
#[derive(Debug)]
struct Used {
    nodes: Range<u64>,
    /// In order; none touches the next.
    ticks: Vec<Range<u64>>,
}

impl State {
    /// Every range of nodes that is in use, or was.
    fn nodes(&self) -> impl Iterator<Item = (Space, Range<u64>)> {
        self.spaces.iter().flat_map(|(&space, record)| {
            let in_use = record.in_use.iter().map(|(_, rectangle)| &rectangle.nodes);
            let used = record.used.iter().map(|used| &used.nodes);
            in_use.chain(used).map(move |nodes| (space, nodes.clone()))
        })
    }

    fn check(&self, space: Space, asked: &Rectangle, fresh: u64) -> Result<(), Conflict> {
        let Some(record) = self.spaces.get(&space) else {
            return Ok(());
        };
        let mut in_use = record.in_use.iter().map(|(_, other)| other);
        let other = in_use
            .find(|other| meet(&other.nodes, &asked.nodes) && meet(&other.ticks, &asked.ticks));
        if let Some(other) = other {
            return Err(Conflict::InUse(other.clone()));
        }
        let fresh = fresh..asked.ticks.end;
        let used = record
            .used
            .iter()
            .filter(|used| meet(&used.nodes, &asked.nodes));
        let last = used
            .flat_map(|used| used.ticks.iter().map(|ticks| (&used.nodes, ticks)))
            .filter(|(_, ticks)| meet(ticks, &fresh))
            .max_by_key(|(_, ticks)| ticks.end);
        last.map_or(Ok(()), |(nodes, ticks)| {
            Err(Conflict::Used(Rectangle {
                nodes: nodes.clone(),
                ticks: ticks.clone(),
            }))
        })
    }
}

impl Record {
    fn use_up(&mut self, rectangle: &Rectangle) {
        let nodes = &rectangle.nodes;
        match self.used.iter_mut().find(|used| used.nodes == *nodes) {
            Some(used) => used.add(rectangle.ticks.clone()),
            None => self.used.push(Used {
                nodes: nodes.clone(),
                ticks: vec![rectangle.ticks.clone()],
            }),
        }
    }
}

impl Used {
    fn add(&mut self, ticks: Range<u64>) {
        let mut merged = ticks;
        self.ticks.retain(|other| {
            let touches = other.start <= merged.end && merged.start <= other.end;
            if touches {
                merged = merged.start.min(other.start)..merged.end.max(other.end);
            }
            !touches
        });
        let at = self.ticks.partition_point(|other| other.end < merged.start);
        self.ticks.insert(at, merged);
        if self.ticks.len() > MAX_INTERVALS {
            let gap = |at: usize| self.ticks[at + 1].start - self.ticks[at].end;
            if let Some(at) = (0..self.ticks.len() - 1).min_by_key(|&at| gap(at)) {
                self.ticks[at].end = self.ticks.remove(at + 1).end;
            }
        }
    }
}

/// Whether two ranges have a number in common.
fn meet(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// A space that no other test has.
    fn space(name: &str) -> Space {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Space::new(Layout::RANDFLAKE, Some(&Secret::from_bytes(bytes)))
    }

    fn try_enter(space: Space, nodes: Range<u64>, ticks: Range<u64>) -> Result<Entry, Conflict> {
        let fresh = ticks.start;
        guard()
            .unwrap()
            .enter(space, Rectangle { nodes, ticks }, fresh)
    }

    #[test]
    fn a_child_waits_for_no_lock_of_its_parents() {
        let parent = &*Box::leak(Box::new(Registry::new(None)));
        let space = space("locked at a fork");
        let (nodes, ticks) = (3..5, 1..2);
        parent.enter(
            &mut lock(&parent.next_number),
            space,
            &Rectangle { nodes, ticks },
        );
        for held in &parent.copies {
            // A thread that is gone in the child.
            let _held = lock(held);
            let _guard = lock(&parent.next_number);
            let (sender, child) = mpsc::channel();
            thread::spawn(move || {
                let registry = Registry::new(Some(parent));
                sender.send(registry.inherited(space, &(4..9)))
            });
            let patience = Duration::from_secs(60);
            let inherited = child.recv_timeout(patience);
            assert_eq!(inherited, Ok(Some(3..5)), "waits for ever, or forgets");
        }
    }

    #[expect(
        clippy::single_range_in_vec_init,
        reason = "one interval is what is meant"
    )]
    #[test]
    fn used_ticks_that_touch_are_merged() {
        let mut used = Used {
            nodes: 0..1,
            ticks: vec![],
        };
        for (added, all) in [
            (10..20, vec![10..20]),
            (30..40, vec![10..20, 30..40]),
            (0..5, vec![0..5, 10..20, 30..40]),
            (20..25, vec![0..5, 10..25, 30..40]),
            (25..30, vec![0..5, 10..40]),
            (12..13, vec![0..5, 10..40]),
            (3..50, vec![0..50]),
        ] {
            used.add(added);
            assert_eq!(used.ticks, all);
        }
    }

    #[test]
    fn a_thousand_runs_take_no_more_than_a_few() {
        let space = space("bounded");
        for run in 0..1_000 {
            let first = run * 10 + run % 7;
            try_enter(space, 0..8, first..100_000)
                .unwrap()
                .leave(first + 1);
        }
        let registry = Registry::of_this_process().unwrap();
        for copy in &registry.copies {
            let state = lock(copy);
            let record = &state.spaces[&space];
            assert!(record.in_use.is_empty());
            assert_eq!(record.used.len(), 1);
            assert_eq!(record.used[0].ticks.len(), MAX_INTERVALS);
        }
        // Merged intervals do not reach past the last one.
        assert!(try_enter(space, 0..8, 9_990 + 999 % 7..10_000).is_err());
        assert!(try_enter(space, 0..8, 9_991 + 999 % 7..10_000).is_ok());
    }
}

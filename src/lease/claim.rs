//! At most one generator to a lease at a time, and the position at which the
//! next one continues.
//!
//! # State
//! ```text
//!          take                  begin             finish
//!   free ---------> taken --------------> in use ----------> free, further on
//!    ^                |                                      given up, for ever
//!    +----------------+
//!    drop: the build failed
//! ```
//! The clones of a lease share its claim, and so do all leases of one grant. For
//! each range of nodes and each [`Space`] it keeps the position that the last
//! generator reached, to the sequence: the next generator on the same begins
//! there. Another secret has no such position, since those are other IDs.
//!
//! The claim knows only leases that share it. The [registry] knows all leases,
//! and decides.
//!
//! A generator that was invalidated gives its lease up: a copy of this process may
//! continue with it, so nothing in it is known to be free. A lease that is made
//! separately for the same nodes is another promise of the caller's.
//!
//! In a forked child nothing is let go: the parent's leases stay the parent's.

use std::hash::{Hash, Hasher};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::describe::opaque_debug;
use crate::lease::registry::{self, Conflict, Entry, Rectangle, RegistryGuard, Space};

/// Whether a lease is in use, and the positions claimed from it.
///
/// It takes no part in comparisons: two leases are equal whatever their claims.
#[derive(Clone, Default)]
pub(crate) struct Claim(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    in_use: Option<Rectangle>,
    given_up: bool,
    /// One for each space and range of nodes that was claimed from.
    reached: Vec<Reached>,
}

/// Where the claims of a generator ended.
struct Reached {
    space: Space,
    nodes: Range<u64>,
    next: Position,
}

/// A place on the line of a lease's nodes: the tick, and how many of its IDs come
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) tick: u64,
    pub(crate) offset: u64,
}

impl Position {
    /// The start of `tick`.
    pub(crate) fn start_of(tick: u64) -> Self {
        Self { tick, offset: 0 }
    }

    /// The first tick that does not begin before it.
    pub(crate) fn whole_tick(self) -> u64 {
        self.tick + u64::from(self.offset > 0)
    }
}

/// The part of a lease that no claim has taken yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The nodes, and the ticks from that in which it begins.
    pub(crate) rectangle: Rectangle,
    /// Where it begins.
    pub(crate) start: Position,
}

/// Why a lease can't be taken.
#[derive(Debug)]
pub(crate) enum Denied {
    Conflict(Conflict),
    /// It was given up when its generator was invalidated.
    GivenUp,
    System(io::Error),
}

impl Claim {
    /// Takes the lease on `nodes` for `ticks`, or the rest of it.
    ///
    /// # Errors
    /// When it is in use, used up or given up, or meets another lease in the
    /// registry.
    pub(crate) fn take(
        &self,
        space: Space,
        nodes: Range<u64>,
        ticks: Range<u64>,
    ) -> Result<Claimed, Denied> {
        let mut registry_guard = registry::guard().map_err(Denied::System)?;
        let (mut state, rest) = self.rest(&registry_guard, space, nodes, ticks)?;
        let entry = registry_guard
            .enter(space, rest.rectangle.clone(), rest.start.whole_tick())
            .map_err(Denied::Conflict)?;
        state.in_use = Some(rest.rectangle.clone());
        drop(state);
        Ok(Claimed {
            claim: self.clone(),
            space,
            rest,
            entry: Some(entry),
        })
    }

    /// The claim that [`take`](Self::take) would make. It claims nothing.
    pub(crate) fn check(
        &self,
        space: Space,
        nodes: Range<u64>,
        ticks: Range<u64>,
    ) -> Result<Rest, Denied> {
        let registry_guard = registry::guard().map_err(Denied::System)?;
        let (_state, rest) = self.rest(&registry_guard, space, nodes, ticks)?;
        registry_guard
            .check(space, &rest.rectangle, rest.start.whole_tick())
            .map_err(Denied::Conflict)?;
        Ok(rest)
    }

    /// The rest of the lease as far as this claim knows, and the lock on it. A caller holds
    /// the registry's lock until this one is released, so two callers never meet here.
    fn rest(
        &self,
        registry_guard: &RegistryGuard,
        space: Space,
        nodes: Range<u64>,
        ticks: Range<u64>,
    ) -> Result<(MutexGuard<'_, State>, Rest), Denied> {
        let in_use = |other: Rectangle| match registry_guard.inherited(space, &nodes) {
            Some(nodes) => Denied::Conflict(Conflict::Inherited(nodes)),
            None => Denied::Conflict(Conflict::InUse(other)),
        };
        // The holder of the lock lets the lease go, and may wait for the registry's. In a
        // forked child it may be a thread that does not exist, whatever that did.
        let state = match self.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(in_use(Rectangle {
                    nodes: nodes.clone(),
                    ticks,
                }));
            }
        };
        if let Some(other) = &state.in_use {
            return Err(in_use(other.clone()));
        }
        if state.given_up {
            return Err(Denied::GivenUp);
        }
        let mut start = Position::start_of(ticks.start);
        if let Some(reached) = state.reached(space, &nodes) {
            start = start.max(reached.next);
        }
        let rectangle = Rectangle {
            nodes,
            ticks: start.tick..ticks.end,
        };
        if rectangle.ticks.is_empty() {
            let used = Rectangle { ticks, ..rectangle };
            return Err(Denied::Conflict(Conflict::Used(used)));
        }
        Ok((state, Rest { rectangle, start }))
    }
}

impl State {
    fn reached(&self, space: Space, nodes: &Range<u64>) -> Option<&Reached> {
        let mut all = self.reached.iter();
        all.find(|reached| reached.space == space && reached.nodes == *nodes)
    }

    fn note(&mut self, space: Space, nodes: &Range<u64>, next: Position) {
        let is_other = |reached: &Reached| reached.space != space || reached.nodes != *nodes;
        self.reached.retain(is_other);
        self.reached.push(Reached {
            space,
            nodes: nodes.clone(),
            next,
        });
    }
}

/// A lease that was taken. Dropping this leaves it as it was before.
#[derive(Debug)]
pub(crate) struct Claimed {
    claim: Claim,
    space: Space,
    rest: Rest,
    /// None once it is let go.
    entry: Option<Entry>,
}

impl Claimed {
    /// The nodes, and the ticks from that in which it begins.
    pub(crate) fn rectangle(&self) -> &Rectangle {
        &self.rest.rectangle
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> Position {
        self.rest.start
    }

    /// Whether this is a forked child of the process that made the claim.
    pub(crate) fn is_parents(&self) -> bool {
        self.entry.as_ref().is_some_and(Entry::is_inherited)
    }

    /// Lets the lease go: everything before `next` may have been issued, and
    /// nothing more will be. `given_up` for one that nobody may go on with.
    pub(crate) fn finish(mut self, next: Position, given_up: bool) {
        self.let_go(Some(next), given_up);
    }

    fn let_go(&mut self, next: Option<Position>, given_up: bool) {
        let Some(entry) = self.entry.take() else {
            return;
        };
        // The claim is the parent's, and a thread of the parent may hold the
        // lock.
        if entry.is_inherited() {
            return;
        }
        let mut state = self.claim.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The registry first: by the time that the lease is free here, its used
        // part is on record there.
        match next.filter(|next| *next > self.rest.start) {
            Some(next) => {
                entry.leave(next.whole_tick());
                state.note(self.space, &self.rest.rectangle.nodes, next);
            }
            None => drop(entry),
        }
        state.in_use = None;
        state.given_up |= given_up;
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.let_go(None, false);
    }
}

opaque_debug!(Claim);

impl PartialEq for Claim {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Claim {}

impl Hash for Claim {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

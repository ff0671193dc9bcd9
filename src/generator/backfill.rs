//! IDs of past moments, for rows that are older than their IDs.
//!
//! # State
//!
//! A backfill generator has one lease over ticks that have passed, and a count for each of
//! them: how many of its IDs were issued. A tick that nothing was asked of has no entry.
//!
//! ```text
//!                 take n of t                    take n of t
//!   no entry (0) -------------> counts[t] = c  ---------------> c + n, up to nodes x sequences
//!                                                    | nothing left
//!                                                    v
//!                                                  refused: used up
//!
//!   lease:  free --build--> in use --drop, nothing issued--> free
//!                              \-----drop, anything issued--> used, all of it, for ever
//! ```
//!
//! The raws of a tick are numbered: all sequences of the first node, then those of the next
//! one. A claim of `n` raws of a tick is the numbers from `c` to `c + n`.
//!
//! # Why no ID is issued twice
//!
//! *One generator.* A count is read and raised under one lock and never falls, so two claims
//! of one tick are disjoint intervals of numbers. A number is one node and sequence, and is
//! claimed only below `nodes x sequences`, so the raw lies inside the lease (U1, U2). Claims
//! of different ticks differ in the tick.
//!
//! *One process.* The lease is entered into the registry of the process, like that of every other
//! generator: a lease that overlaps it in nodes and ticks is refused while it is in use, whichever
//! came first. A tick in which a generator had stopped half-way is left out. When this generator is
//! dropped, the counts are dropped with it, and so is the knowledge of which IDs it issued. So the
//! whole lease counts as used then, and nothing is built on any part of it again.
//!
//! *A forked child* reads the mark as zero, before it looks for the lock, which a thread of
//! the parent may have held at the fork. Every take of it is refused, and what it drops
//! changes nothing.
//!
//! *Other runs and other machines* are kept apart by where the lease is from: by the caller,
//! or by a store.
//!
//! # A lease by the caller's word
//!
//! Nothing is recorded outside of the process, so here the proof ends and the caller's promise
//! begins: [`StaticLease::assume_unique_past`] says what it has to hold. The rule that follows
//! from it is a fresh range of nodes, or of ticks, for each run, one that failed half-way
//! included.
//!
//! # A lease of a store
//!
//! The store grants one block for all ticks `[from, to)` of the import, once ([`Acquire::past`]).
//! It does so only if the block's mark lies at or before `from`, and moves the mark to `to`; so
//! of this block
//!
//! * nothing was granted before that reaches past `from`, since each grant and renewal
//!   left the mark at or after its end, and no mark ever falls (S1);
//! * nothing is granted afterwards that begins before `to`, to no generator of the present and
//!   to no import: each begins at or after the mark.
//!
//! So any two leases under the namespace are disjoint, whichever of them are of the past. What
//! is left of the block's past before `from` is given up with it, by the mark alone: no record
//! says which ticks were granted, and none is needed.
//!
//! *IDs from before the namespace* are of ticks below its floor, which are not granted: the
//! floor is 0 only after [`History::Unused`], the assertion that there are none.
//!
//! *A store that has lost grants*, and notices it, raises the floor above the present before it
//! grants anything (S8). That closes all of the past until then, for ever. A loss that it
//! doesn't notice is worse here than among leases of the present, where time overtakes what was
//! forgotten: a request for the past goes back to where that lies, and would be granted it
//! again at any later time, whether it was of the past or of the present then. So after such a
//! loss the floor must be raised by hand before the first import that comes, however late, and
//! not only within the horizon.
//!
//! *The run that is repeated* asks again, and gets another block, or this one for later ticks.
//!
//! [`Acquire::past`]: crate::lease::Acquire::past
//! [`History::Unused`]: crate::lease::History::Unused
//! [`StaticLease::assume_unique_past`]: crate::StaticLease::assume_unique_past

mod counts;
mod error;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use self::counts::{Counts, Part};
pub use self::error::BackfillError;
use super::inspector::Inspector;
use crate::cipher::Cipher;
use crate::fork::WipeOnFork;
use crate::id::Id;
use crate::layout::{Layout, LayoutError, Parts};
use crate::lease::{Claimed, Lease, Position};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;

/// Makes IDs of past moments: for an import of rows that carry their own time, so that the ID
/// says that time too.
///
/// Its lease is for one run, over the ticks that the rows lie in. A store grants it, by
/// [`lease_store`](crate::BackfillGeneratorBuilder::lease_store): each run then has nodes that nobody
/// else has at these moments, the generators of the present included. Or it is a promise of the
/// caller's, of nodes kept for this:
/// [`StaticLease::assume_unique_past`](crate::StaticLease::assume_unique_past) says what has to
/// be true of it.
///
/// Clones are cheap and share everything. Takes from several threads wait for each other, for the
/// time of a look into a hash map; the encryption is outside of that. Each distinct tick with IDs
/// costs some 20 to 40 bytes for as long as the generator lives: a year of seconds, each with a
/// row, takes about a gigabyte. If that is too much, import in parts, each with its own lease. In a
/// child of `fork(2)` every take fails. A take that a signal handler interrupts to fork may give
/// its IDs in both processes, or wait for ever in the child.
///
/// A snapshot of the process that is resumed twice is not noticed, nor an import that is started
/// twice with the same lease of the caller's.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
///
/// use ringflake::{BackfillGenerator, Layout, StaticLease};
///
/// let layout = Layout::RANDFLAKE;
/// // Rows of November 2024. Node 131,071 makes no other IDs, and none of these ticks in any
/// // other run.
/// let [from, to] = [1_730_419_200, 1_733_011_200].map(|s| UNIX_EPOCH + Duration::from_secs(s));
/// let ticks = layout.tick_of(from).unwrap()..layout.tick_of(to).unwrap();
/// let lease = StaticLease::assume_unique_past(layout, 131_071..131_072, ticks)?;
///
/// let past = BackfillGenerator::builder(layout).plain().lease(lease).build()?;
/// let written = from + Duration::from_secs(86_400);
/// let id = past.take_at(written)?;
/// assert_eq!(past.inspect(id)?.unix_ms, 1_730_505_600_000);
/// assert!(past.take_at(to).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BackfillGenerator {
    shared: Arc<Shared>,
}

struct Shared {
    lease: Lease,
    cipher: Cipher,
    counts: Counts,
    /// 1; a forked child reads 0.
    mark: WipeOnFork<AtomicU64>,
    /// There until it is dropped.
    claimed: Option<Box<Claimed>>,
}

impl BackfillGenerator {
    /// On the part of `lease` that nobody claimed from, which `claimed` is about.
    pub(super) fn new(lease: Lease, claimed: Box<Claimed>, cipher: Cipher) -> io::Result<Self> {
        let nodes = lease.nodes();
        let counts = Counts::new((nodes.end - nodes.start) * lease.layout().sequences());
        let mark = WipeOnFork::new(AtomicU64::new(1))?;
        // After the mark: from there on a child knows what it is.
        if claimed.is_parents() {
            return Err(io::Error::other("the process was forked during the build"));
        }
        Ok(Self {
            shared: Arc::new(Shared {
                mark,
                lease,
                cipher,
                counts,
                claimed: Some(claimed),
            }),
        })
    }

    /// Makes an ID of the tick that `moment` lies in. Waits for other threads' takes, and may
    /// allocate; some hundred nanoseconds.
    ///
    /// # Errors
    ///
    /// [`BackfillError::OutsideLease`] for a moment in none of the lease's ticks;
    /// [`BackfillError::UsedUp`] where the tick has no ID left; [`BackfillError::Forked`].
    pub fn take_at(&self, moment: SystemTime) -> Result<Id, BackfillError> {
        let mut id = [Id::default()];
        self.take_batch_at(moment, &mut id)?;
        Ok(id[0])
    }

    /// Fills `out` from the front with IDs of the tick that `moment` lies in, and returns how
    /// many that were: all of it, or as many as the tick had left, but at least one unless
    /// `out` is empty. For rows of the same moment, at a fraction of what each
    /// [`take_at`](Self::take_at) costs.
    ///
    /// # Errors
    ///
    /// [`BackfillError`] as in [`take_at`](Self::take_at), if there was not even one.
    pub fn take_batch_at(
        &self,
        moment: SystemTime,
        out: &mut [Id],
    ) -> Result<usize, BackfillError> {
        let shared = &*self.shared;
        // Before the lock, which nobody unlocks in a child.
        if shared.is_forked() {
            return Err(BackfillError::Forked);
        }
        let tick = shared.tick_of(moment)?;
        if out.is_empty() {
            return Ok(0);
        }
        let claimed = shared.counts.claim(tick, out.len());
        // Again: in a child that a signal handler forked before the claim, the parent claims the
        // same numbers. After the claim, both may return them; see `fork`.
        if shared.is_forked() {
            return Err(BackfillError::Forked);
        }
        let Part { first, len } = claimed.ok_or_else(|| shared.used_up(tick))?;
        shared.encrypt(tick, first, &mut out[..len]);
        Ok(len)
    }

    /// The tick, node and sequence of `id`; see [`Inspector::inspect`].
    ///
    /// # Errors
    ///
    /// [`LayoutError`] if the ID was not made with this layout and secret, as far as that
    /// shows.
    pub fn inspect(&self, id: Id) -> Result<Parts, LayoutError> {
        let inspector = Inspector::new(*self.layout(), self.shared.cipher.clone());
        inspector.inspect(id)
    }

    /// The layout of the IDs.
    pub fn layout(&self) -> &Layout {
        self.shared.lease.layout()
    }

    /// The nodes and ticks that IDs are of.
    pub fn lease(&self) -> &Lease {
        &self.shared.lease
    }

    /// How many ticks IDs were taken of: what the memory grows with. Zero in a forked child.
    pub fn distinct_ticks(&self) -> usize {
        if self.shared.is_forked() {
            return 0;
        }
        self.shared.counts.distinct_ticks()
    }
}

impl Shared {
    fn is_forked(&self) -> bool {
        // Relaxed: written before the generator was shared, and else only by the fork.
        self.mark.load(Relaxed) == 0
    }

    /// The lease's tick that `moment` lies in.
    fn tick_of(&self, moment: SystemTime) -> Result<u64, BackfillError> {
        let (layout, ticks) = (self.lease.layout(), self.lease.ticks());
        let tick = layout.tick_of(moment);
        let inside = tick.filter(|tick| ticks.contains(tick));
        inside.ok_or_else(|| BackfillError::OutsideLease {
            moment,
            start_unix_ms: layout.tick_start_unix_ms(ticks.start),
            end_unix_ms: layout.tick_start_unix_ms(ticks.end),
        })
    }

    fn used_up(&self, tick: u64) -> BackfillError {
        BackfillError::UsedUp {
            tick_unix_ms: self.lease.layout().tick_start_unix_ms(tick),
            tick_ms: self.lease.layout().tick_ms(),
            ids: self.counts.ids_a_tick(),
            nodes: self.lease.nodes(),
        }
    }

    /// Writes the IDs of the raws of `tick` from number `first` on. They follow each other from
    /// node to node, as the node's bits are next to the sequence's.
    fn encrypt(&self, tick: u64, first: u64, out: &mut [Id]) {
        let of_tick = self.lease.layout().join(tick, self.lease.nodes().start, 0);
        self.cipher
            .encrypt_run(of_tick + first, Id::as_u64_slice_mut(out));
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A child does not look for the lock. Its parent's lease is let go by nobody here.
        if self.is_forked() || self.counts.distinct_ticks() == 0 {
            return;
        }
        if let Some(claimed) = self.claimed.take() {
            claimed.finish(Position::start_of(self.lease.ticks().end), false);
        }
    }
}

impl fmt::Debug for BackfillGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackfillGenerator")
            .field("lease", &self.shared.lease)
            .finish_non_exhaustive()
    }
}

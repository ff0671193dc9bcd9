//! A stock of IDs for each core, from which a take pops without a locked instruction.
//!
//! A locked instruction orders a take against every other core. A stock belongs to one core,
//! so a take has to be ordered only against the other threads of that core, and against
//! signal handlers of its own thread. A *restartable section* does that: a few instructions
//! that the kernel does not let a thread finish once it was interrupted in them (`rseq(2)`).
//!
//! # State
//!
//! A stock is one word and [`CAPACITY`] places. The word has two fields: a *mark*, which says
//! under which count of recalls the IDs were taken (`fill::recall`), and in its low 8 bits the
//! *level* `n`: the IDs are at places 1 to `n`.
//!
//! ```text
//!                fill with mark m: copy IDs to places 1 to n, store (m, n)
//!   (_, 0) ----------------------------------------------------------------> (m, n)
//!     ^                                                                        |
//!     |   discard_stale: store (m, 0), if m is not the current mark            |
//!     +------------------------------------------------------------------------+
//!     |   pop with the current mark, if that is m: read place n, store (m, n - 1)
//!     +------------------------------------------------------------------------+
//! ```
//!
//! Each transition is one section, and its store of the word, the *commit*, is the last
//! instruction of it. A section that finds another state than its transition starts from
//! leaves without a commit.
//!
//! # What the kernel guarantees
//!
//! * **K1.** A thread that is preempted, migrated or interrupted by a signal between the first
//!   and the last instruction of a section continues at the section's abort handler, and not
//!   in the section. A signal handler runs after that decision.
//! * **K2.** In a section the field `cpu_id` is the number of the core on which the section
//!   runs. It is at least 2^31 where the thread has no registered rseq area.
//! * **K3.** A core that switches from one thread to another executes the second one's loads
//!   and stores as if they came after the first one's in one program.
//!
//! # No ID twice, none lost (R1)
//!
//! *Sections of one core do not overlap.* Two threads run on one core at the same time only in
//! turns. A turn that ends inside a section aborts it before the commit (K1). So from the
//! first instruction of a committed section to its commit, no other section ran on this core;
//! and no section of another core touches this stock, since its address follows from `cpu_id`
//! (K2). What a section reads is what the one before it has stored (K3).
//!
//! *An aborted section changed nothing that counts.* Only `fill` writes anything before its
//! commit: the places, while the level is 0. Nobody reads a place above the level.
//!
//! So each transition happens as a whole or not at all, in one order for each stock. A `fill`
//! starts from level 0, so its IDs replace none. A pop that commits lowers the level below the
//! place that it has read, so no later pop reads it again before the next `fill`.
//!
//! *Another core seizes a stock* when a take would else fail: it finds all stripes empty, and no
//! ID can be made. One thread at a time does so, in these steps:
//!
//! 1. Swap the word for [`SEIZED`]. A section that starts after that leaves.
//! 2. Have the kernel abort what is in a section on that core (`membarrier(2)`).
//! 3. Read the word. If it is `SEIZED`, no section has committed since the swap, and none will:
//!    places 1 to `n` of the old word are the seizing thread's. Else a section that had read the
//!    word before the swap has committed over it: that is a state as any other; back to 1.
//! 4. Copy the IDs, and store level 0.
//!
//! Only step 2 costs more than a few nanoseconds: some 25 microseconds, if that core runs a
//! thread of this process at the moment. Where the kernel can't do it, there are no stocks.
//!
//! The level 0 between `discard_stale` and `fill` is needed: a thread with an old mark in a
//! register, stopped before its pop, would else find the old word above places that an aborted
//! `fill` has written, and pop an ID that the filling thread still has.
//!
//! # Recalls (S4)
//!
//! A pop takes an ID only if the stock's mark is the count of recalls that it has read. A take
//! that begins after `invalidate` has returned reads a later count than the mark of any stock
//! filled from before: see `fill::recall`, where a handle's stock is argued in the same way.
//!
//! # Forks
//!
//! The stocks lie in memory that a child reads as zero: mark 0 and level 0. A child that was
//! forked by a signal handler returns into a section that was aborted (K1).
//!
//! # Progress
//!
//! A pop is about 15 instructions and has no loop: an abort makes it return `None`, and its
//! caller takes from the ring. So a thread that a debugger steps through, which is aborted each
//! time, goes on.
//!
//! # Unloading
//!
//! The kernel reads the section's descriptor when it next interrupts the thread, unless the
//! thread's pointer to it was cleared. Each section clears it at its end, so nothing points into
//! this library when it is unloaded.

#[cfg_attr(all(loom, feature = "loom"), path = "stocks/model.rs")]
mod section;
#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::env;
use std::fmt;
#[cfg(not(all(loom, feature = "loom")))]
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use self::section::Areas;
#[cfg(not(all(loom, feature = "loom")))]
use super::CORES;
use super::allowed_cores;
use crate::events;
#[cfg(not(all(loom, feature = "loom")))]
use crate::fork::WipeOnFork;
use crate::fork::ZeroIsValid;
use crate::id::Id;
use crate::sync;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU64};

/// The bits of a stock's word that hold its level. A mark has them 0.
pub(crate) const LEVEL_BITS: u32 = 8;

/// The level, in the word.
const LEVEL: u64 = (1 << LEVEL_BITS) - 1;

/// The word of a stock that another core is emptying. No mark has these bits, and no level.
const SEIZED: u64 = u64::MAX;

/// The most IDs in one stock, so that a stock is 1,024 bytes. In a model two.
pub(crate) const CAPACITY: usize = sync::size(127, 2);

/// The stock of one core.
#[repr(C, align(1024))]
struct Stock {
    word: AtomicU64,
    ids: [AtomicU64; CAPACITY],
    /// Held by the thread that is in a section.
    #[cfg(all(loom, feature = "loom"))]
    section: sync::Mutex<()>,
}

// SAFETY: integers, all of them valid as zero bytes.
unsafe impl ZeroIsValid for Stock {}

#[cfg(not(all(loom, feature = "loom")))]
type Memory = WipeOnFork<[Stock]>;
#[cfg(all(loom, feature = "loom"))]
type Memory = Box<[Stock]>;

/// A stock for each core. Clones share the stocks.
#[derive(Clone)]
pub(crate) struct Stocks {
    areas: Areas,
    /// The stock of core 0, in `shared`: spares a pop two pointers to follow.
    first: NonNull<Stock>,
    cores: usize,
    shared: Arc<Shared>,
}

struct Shared {
    stocks: Memory,
    /// Whether a thread is seizing a stock.
    is_seizing: AtomicBool,
}

// SAFETY: the pointer leads to atomic integers that `shared` keeps alive.
unsafe impl Send for Stocks {}
// SAFETY: as above.
unsafe impl Sync for Stocks {}

/// Whether takes of a [`CachedGenerator`](crate::CachedGenerator) use a stock of their core, and
/// if not, why not.
///
/// With stocks a take is a few plain loads and stores. Every 128th one takes a batch from the
/// [stripe](crate::CachedGeneratorBuilder::stripes). Without them each take is a compare-exchange
/// in the stripe, a locked instruction. The environment variable `RINGFLAKE_RSEQ` overrides the
/// choice: `off` on any system, `on` on 64-bit Arm, where no machine has tested them yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CoreStocks {
    /// Takes use them.
    InUse,
    /// `stripes(1)` asks for IDs in order.
    OffForOrder,
    /// A [`max_age`](crate::ScheduledFill::max_age) is set: nothing drops old IDs from stocks.
    OffForMaxAge,
    /// The stocks of all cores would hold more than an eighth of the capacity.
    OffForCapacity {
        /// The smallest capacity with stocks, in slots, for the cores of this process.
        needed: usize,
    },
    /// The system has no restartable sequences: they need Linux 5.10 and glibc 2.35 or newer on
    /// x86-64, and no tunable, seccomp filter or emulator that turns them off.
    Unsupported,
    /// By `RINGFLAKE_RSEQ=off`, or on 64-bit Arm without `RINGFLAKE_RSEQ=on`.
    SwitchedOff,
}

impl fmt::Display for CoreStocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("in use"),
            Self::OffForOrder => f.write_str("off: one stripe, for order"),
            Self::OffForMaxAge => f.write_str("off: max_age is set"),
            Self::OffForCapacity { needed } => write!(f, "off: capacity is below {needed}"),
            Self::Unsupported => f.write_str("off: no restartable sequences"),
            Self::SwitchedOff => f.write_str("off: RINGFLAKE_RSEQ"),
        }
    }
}

impl CoreStocks {
    /// What the system, the environment and the slots of all stripes allow.
    pub(crate) fn for_capacity(slots: usize) -> Self {
        let forced = forced();
        if !forced.unwrap_or(section::ON_BY_DEFAULT) {
            return Self::SwitchedOff;
        }
        if !section::can_be_had() {
            return Self::Unsupported;
        }
        let held = allowed_cores().len().max(1) * CAPACITY;
        match (8 * held).checked_next_power_of_two() {
            Some(needed) if slots < needed => Self::OffForCapacity { needed },
            _ => Self::InUse,
        }
    }
}

/// What the environment asks for.
fn forced() -> Option<bool> {
    const VARIABLE: &str = "RINGFLAKE_RSEQ";

    let value = env::var_os(VARIABLE)?;
    match value.to_str() {
        Some("off") => Some(false),
        Some("on") => Some(true),
        _ => {
            events::unknown_rseq_setting(&value);
            None
        }
    }
}

impl Stocks {
    /// Empty stocks, one for each core that the process may run on.
    ///
    /// `None` if the system has no restartable sequences.
    ///
    /// # Errors
    ///
    /// The operating system's, if it has no memory.
    #[cfg(not(all(loom, feature = "loom")))]
    pub(crate) fn new() -> io::Result<Option<Self>> {
        // By number, so that a core's stock needs no table. A thread that comes to a core beyond
        // these takes from the stripes.
        let last = allowed_cores().into_iter().max().unwrap_or(0);
        let memory = Memory::zeroed(last.min(CORES - 1) + 1)?;
        Ok(section::set_up().map(|areas| Self::of(areas, memory)))
    }

    /// No builder makes stocks in a model.
    #[cfg(all(loom, feature = "loom"))]
    pub(crate) fn new() -> std::io::Result<Option<Self>> {
        Ok(None)
    }

    /// In a model, whose threads say which core they run on.
    #[cfg(all(loom, feature = "loom"))]
    pub(crate) fn in_a_model(cores: usize) -> Self {
        let stock = |_| Stock {
            word: AtomicU64::new(0),
            ids: std::array::from_fn(|_| AtomicU64::new(0)),
            section: sync::Mutex::new(()),
        };
        Self::of(Areas, (0..cores).map(stock).collect())
    }

    fn of(areas: Areas, stocks: Memory) -> Self {
        Self {
            areas,
            first: NonNull::from(&stocks[0]),
            cores: stocks.len(),
            shared: Arc::new(Shared {
                stocks,
                is_seizing: AtomicBool::new(false),
            }),
        }
    }

    #[inline]
    fn all(&self) -> &[Stock] {
        // SAFETY: so many stocks begin there, in `shared`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.cores) }
    }

    /// Takes an ID from this core's stock. `None` if the stock is empty or its mark is not
    /// `mark`, and where the thread was interrupted.
    #[inline(always)]
    pub(crate) fn pop(&self, mark: u64) -> Option<Id> {
        section::pop(self.areas, self.all(), mark).map(Id::from_u64)
    }

    /// Puts `ids` into this core's stock, to be taken from the front, if that is empty. `false`
    /// if it is not, and where the thread was interrupted.
    pub(crate) fn fill(&self, mark: u64, ids: &[Id]) -> bool {
        debug_assert!(ids.len() <= CAPACITY && mark & LEVEL == 0);
        !ids.is_empty() && section::fill(self.areas, self.all(), ids, mark | ids.len() as u64)
    }

    /// Whether the core that this thread runs on at the moment has a stock that can be filled. It
    /// has none if the process was allowed more cores since the stocks were made, if something
    /// has unregistered the thread's rseq area, or while another core seizes it.
    pub(crate) fn has_one_here(&self) -> bool {
        let stock = self.all().get(self.areas.exact_number());
        // Relaxed: a hint, which the section looks at again.
        stock.is_some_and(|stock| stock.word.load(Relaxed) != SEIZED)
    }

    /// Empties this core's stock if it has another mark than `mark`, and returns how many IDs
    /// were in there.
    pub(crate) fn discard_stale(&self, mark: u64) -> usize {
        // Relaxed: only what the section finds again counts.
        let Some(stock) = self.all().get(self.areas.exact_number()) else {
            return 0;
        };
        let word = stock.word.load(Relaxed);
        let level = word & LEVEL;
        let is_stale = level > 0 && word != SEIZED && word - level != mark;
        // If the thread has come to another core since: a stock with the same word is as stale.
        let emptied = is_stale && section::replace(self.areas, self.all(), word, word - level);
        if emptied { level as usize } else { 0 }
    }

    /// Takes all IDs of one stock that has any, whichever core it belongs to, and returns its
    /// mark and how many there were. `None` if all are empty, and while another thread does this.
    ///
    /// About 25 microseconds, if that core runs a thread of this process; a system call.
    pub(crate) fn seize(&self, out: &mut [Id; CAPACITY]) -> Option<(u64, usize)> {
        let Shared { stocks, is_seizing } = &*self.shared;
        // Acquire, and Release below: what one thread seizes after the other is in that order.
        if is_seizing.swap(true, Acquire) {
            return None;
        }
        let seized = stocks.iter().enumerate().find_map(|(core, stock)| {
            let word = section::seize(self.areas, stock, core)?;
            let level = word & LEVEL;
            let places = stock.ids[..level as usize].iter().rev();
            for (place, id) in places.zip(&mut *out) {
                *id = Id::from_u64(place.load(Relaxed));
            }
            // Release: the core's next section writes the places after they were read.
            stock.word.store(word - level, Release);
            (level > 0).then_some((word - level, level as usize))
        });
        is_seizing.store(false, Release);
        seized
    }

    /// IDs in all stocks, each counted at its own moment.
    pub(crate) fn level(&self) -> usize {
        // Relaxed: a figure for people.
        let words = self
            .shared
            .stocks
            .iter()
            .map(|stock| stock.word.load(Relaxed));
        let levels = words
            .filter(|&word| word != SEIZED)
            .map(|word| word & LEVEL);
        levels.sum::<u64>() as usize
    }
}

impl fmt::Debug for Stocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stocks")
            .field("level", &self.level())
            .field("cores", &self.cores)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod placement {
    use super::*;
    use crate::placement::LINE;

    /// Stocks of two cores share no line.
    #[test]
    fn a_stock() {
        assert_eq!(size_of::<Stock>(), 1024);
        assert_eq!(align_of::<Stock>() % LINE, 0);
    }
}

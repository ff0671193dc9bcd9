//! A stock of IDs for each core, from which a take pops without a locked instruction.
//!
//! A locked instruction orders a take against every other core. A stock belongs to one core,
//! so a take has to be ordered only against the other threads of that core, and against
//! signal handlers of its own thread. A *restartable sequence* does that: a few instructions
//! that the kernel aborts if it interrupts the thread in them (`rseq(2)`). Below, a *section*.
//!
//! # State
//!
//! A stock is one word and [`CAPACITY`] places. The word has two fields: a *mark*, the count of
//! recalls before the IDs were taken (`fill::recall`), and in its low 8 bits the *level* `n`: the
//! IDs are at places 1 to `n`. No mark is 0.
//!
//! ```text
//!                fill with mark m: copy IDs to places 1 to n, store (m, n)
//!   (_, 0) ----------------------------------------------------------------> (m, n)
//!     ^                                                                        |
//!     |   discard_stale: store (m, 0), if m is not the current mark            |
//!     +------------------------------------------------------------------------+
//!     |   pop with the current mark, if that is m: read place n, store (m, n - 1)
//!     +------------------------------------------------------------------------+
//!
//!   0: wiped, in a forked child. Only a build leads out of it, to (1, 0).
//!   (ticket, 255): another core is seizing the stock. No section leads out of it.
//! ```
//!
//! Each transition is one section, and its store of the word, the *commit*, is the last
//! instruction of it. A section that finds a state that its transition does not start from
//! leaves without a commit.
//!
//! # What the kernel guarantees
//!
//! * **K1.** A thread that is preempted, migrated or interrupted by a signal between the first
//!   and the last instruction of a section continues at the section's abort handler. A signal
//!   handler runs after that decision.
//! * **K2.** In a section the field `cpu_id` is the number of the core on which the section
//!   runs. It is at least 2^31 where the thread has no registered rseq area. The exception is a
//!   child of `vfork` or `clone(CLONE_VM)`, which has no area and reads its parent's: it must
//!   not take before `exec`.
//! * **K3.** A core that switches from one thread to another executes the second one's loads
//!   and stores as if they came after the first one's in one program.
//! * **K4.** `membarrier(2)` with `PRIVATE_EXPEDITED_RSEQ` aborts the section that runs on the
//!   given core. The caller's next loads see what was committed there before, and sections that
//!   start there later see what the caller stored before.
//!
//! # No ID twice, none lost (R1)
//!
//! *Sections of one core do not overlap.* Threads run on one core in turns. A turn that ends
//! inside a section aborts it before the commit (K1). So from the first instruction of a
//! committed section to its commit, no other section ran on this core; and no section of another
//! core touches this stock, since its address follows from `cpu_id` (K2). A section reads what
//! the one before it stored (K3).
//!
//! *An aborted section changed nothing that counts.* Only `fill` writes anything before its
//! commit: the places, while the level is 0. Nobody reads a place above the level. This is why
//! `discard_stale` and `fill` are two sections. If `fill` replaced a stale word, an aborted one
//! could leave new IDs below that word's level. A thread that had read the old mark before it
//! was preempted would pop one of them, though the filling thread puts it elsewhere.
//!
//! So each transition happens as a whole or not at all, in one order for each stock. A `fill`
//! starts from level 0, so its IDs replace none. A pop that commits lowers the level below the
//! place that it has read, so no later pop reads it again before the next `fill`.
//!
//! *Another core seizes a stock* when a take would otherwise fail or wait: it finds all stripes
//! empty, and no ID can be made.
//!
//! 1. Exchange the word `(m, n)` for `(ticket, 255)`. No two seizures have the same ticket. A
//!    section that starts after that leaves.
//! 2. Abort what is in a section on that core (K4).
//! 3. Read the word. If it is the ticket, no section has committed since the exchange, and none
//!    will: places 1 to `n` belong to the seizing thread. Otherwise a section that had read the
//!    word before the exchange has committed over it, and perhaps another thread has seized that:
//!    back to 1, unless the stock is empty or seized by then.
//! 4. Copy the IDs, and exchange the ticket for `(m, 0)`.
//!
//! Step 2 interrupts the core if it runs a thread of this process: some 25 microseconds a call.
//! It is called twice, since kernels without the fix "rseq: Protect event mask against membarrier
//! IPI" can lose a request that meets the core on its way out of the kernel. To lose both, each
//! would have to meet that moment.
//!
//! # Recalls (S4)
//!
//! A pop takes an ID only if the stock's mark is the count of recalls that it has read. A take
//! that begins after `invalidate` has returned reads a later count than the mark of any stock
//! that was filled before. The head of `fill::recall` proves the same for a handle's stock.
//!
//! # Forks
//!
//! The stocks lie in memory that a child reads as zero. After the build a word of 0 stays 0: its
//! mark is nobody's, `fill` leaves, and step 4 fails. So a child that a signal handler has forked
//! gets no ID from a stock, wherever that handler interrupted this code: inside a section (K1)
//! or with IDs in hand. What a take had in hand to give out, both return; see `fork`.
//!
//! # Progress
//!
//! A pop is about 15 instructions and has no loop: an abort makes it return `None`, and its
//! caller takes from the stripe. So a thread that a debugger steps through, which is aborted
//! each time, makes progress. A seizure repeats only if a take has committed meanwhile.
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
use std::ffi::OsStr;
use std::fmt;
#[cfg(not(all(loom, feature = "loom")))]
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, atomic};

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
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Relaxed, Release};

/// The bits of a stock's word that hold its level. A mark has them 0.
pub(crate) const LEVEL_BITS: u32 = 8;

/// The level, in the word.
const LEVEL: u64 = (1 << LEVEL_BITS) - 1;

/// The level of a stock that another core is seizing, whose mark is the seizure's ticket.
const SEIZED: u64 = LEVEL;

/// The word of a new stock.
const EMPTY: u64 = 1 << LEVEL_BITS;

const _: () = assert!(LEVEL.count_ones() == LEVEL_BITS && LEVEL & EMPTY == 0);

/// The most IDs in one stock, so that word and places are 1,024 bytes. In a model two.
pub(crate) const CAPACITY: usize = sync::size(127, 2);

/// The stock of one core, in a page of its own. A core that walks through its stock fetches the
/// lines behind it ahead, as far as the end of the page. If those were the next core's, both
/// would fetch them back and forth: two cores took 1.5 times as many IDs as one, not twice.
#[repr(C, align(4096))]
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
    /// The stock of core 0, in `memory`: spares a pop two pointers to follow.
    first: NonNull<Stock>,
    cores: usize,
    memory: Arc<Memory>,
}

// SAFETY: the pointer leads to atomic integers that `memory` keeps alive.
unsafe impl Send for Stocks {}
// SAFETY: as above.
unsafe impl Sync for Stocks {}

/// Whether takes of a [`CachedGenerator`](crate::CachedGenerator) use a stock of their core, and
/// if not, why not.
///
/// With stocks a take is a few plain loads and stores. Every 128th one takes a batch from the
/// [stripe](crate::CachedGeneratorBuilder::stripes). Without them each take is a compare-exchange
/// in the stripe, a locked instruction. The environment variable `RINGFLAKE_RSEQ` overrides the
/// choice. `off` works everywhere; `on` matters only on 64-bit Arm Linux, where they are off by
/// default because no machine has tested them yet.
///
/// They count the cores that the thread which builds may run on. A take on another core goes to
/// the stripe. A take that would otherwise fail or wait calls `membarrier(2)`: a seccomp filter
/// installed after the build must allow that.
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
        /// The smallest capacity with stocks, in slots, for the cores that this thread may run on.
        needed: usize,
    },
    /// The system has no restartable sequences: they need Linux 5.10 and glibc 2.35 or newer on
    /// x86-64 in a dynamically linked program, and no tunable, seccomp filter or emulator that turns
    /// them off.
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
            Self::SwitchedOff if section::ON_BY_DEFAULT => f.write_str("off: RINGFLAKE_RSEQ=off"),
            Self::SwitchedOff => f.write_str("off: needs RINGFLAKE_RSEQ=on"),
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
        let needed = smallest_capacity(allowed_cores().len().max(1));
        if slots < needed {
            return Self::OffForCapacity { needed };
        }
        Self::InUse
    }
}

/// The smallest capacity, in slots, of which the stocks of this many cores hold at most an eighth.
fn smallest_capacity(cores: usize) -> usize {
    (8 * cores * CAPACITY).next_power_of_two()
}

/// What the environment asks for.
fn forced() -> Option<bool> {
    const VARIABLE: &str = "RINGFLAKE_RSEQ";

    let value = env::var_os(VARIABLE)?;
    let setting = setting(&value);
    if setting.is_none() {
        events::unknown_rseq_setting(&value);
    }
    setting
}

/// `None` if it is unknown.
fn setting(value: &OsStr) -> Option<bool> {
    match value.to_str() {
        Some("off") => Some(false),
        Some("on") => Some(true),
        _ => None,
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

    fn of(areas: Areas, memory: Memory) -> Self {
        for stock in &*memory {
            // Relaxed: published with the generator.
            stock.word.store(EMPTY, Relaxed);
        }
        Self {
            areas,
            first: NonNull::from(&memory[0]),
            cores: memory.len(),
            memory: Arc::new(memory),
        }
    }

    #[inline]
    fn all(&self) -> &[Stock] {
        // SAFETY: so many stocks begin there, in `memory`.
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
        stock.is_some_and(|stock| stock.word.load(Relaxed) & LEVEL != SEIZED)
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
        let is_stale = level > 0 && level != SEIZED && word - level != mark;
        // If the thread has come to another core since: a stock with the same word is as stale.
        let emptied = is_stale && section::replace(self.areas, self.all(), word, word - level);
        if emptied { level as usize } else { 0 }
    }

    /// Takes all IDs of one stock that has any, whichever core it belongs to, and returns its
    /// mark and how many there were. `None` if all are empty, or are being seized by others.
    ///
    /// Three system calls. Two of them interrupt the core if it runs a thread of this process, and
    /// then take about 25 microseconds each.
    pub(crate) fn seize(&self, out: &mut [Id; CAPACITY]) -> Option<(u64, usize)> {
        self.memory.iter().enumerate().find_map(|(core, stock)| {
            let ticket = new_ticket();
            let word = section::seize(self.areas, stock, core, ticket)?;
            let level = word & LEVEL;
            let places = stock.ids[..level as usize].iter().rev();
            for (place, id) in places.zip(&mut *out) {
                *id = Id::from_u64(place.load(Relaxed));
            }
            // Release: the core's next section writes the places after they were read. Fails in
            // a child that a signal handler has forked meanwhile.
            stock
                .word
                .compare_exchange(ticket, word - level, Release, Relaxed)
                .ok()?;
            Some((word - level, level as usize))
        })
    }

    /// Whether any stock has IDs that can be taken with this mark.
    pub(crate) fn has_some(&self, mark: u64) -> bool {
        self.memory.iter().any(|stock| {
            // Relaxed: a hint, which the take looks at again.
            let word = stock.word.load(Relaxed);
            word & !LEVEL == mark && !matches!(word & LEVEL, 0 | SEIZED)
        })
    }

    /// IDs in all stocks, stale ones included, each counted at its own moment.
    pub(crate) fn level(&self) -> usize {
        // Relaxed: a figure for people.
        let levels = self
            .memory
            .iter()
            .map(|stock| stock.word.load(Relaxed) & LEVEL);
        levels.filter(|&level| level != SEIZED).sum::<u64>() as usize
    }
}

/// A word that marks a stock as being seized. No two are the same.
fn new_ticket() -> u64 {
    static COUNT: atomic::AtomicU64 = atomic::AtomicU64::new(0);

    // Relaxed: only the number counts.
    COUNT.fetch_add(1, Relaxed) << LEVEL_BITS | SEIZED
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

    /// No two stocks share a page, beyond which no core fetches ahead.
    #[test]
    fn a_stock() {
        assert_eq!(align_of::<Stock>(), 4096);
        assert_eq!(size_of::<Stock>(), 4096);
    }
}

//! The restartable sections, where there are any.
//!
//! | function | starts from | commits |
//! |---|---|---|
//! | `pop` | level above 0, this mark | the level, one less |
//! | `fill` | level 0, but not a word of 0 | another word, after the IDs |
//! | `replace` | this word | another word |
//!
//! `seize` is for another core: it exchanges the word, and aborts the section in progress.

#[cfg_attr(
    all(
        target_os = "linux",
        target_env = "gnu",
        target_arch = "x86_64",
        target_pointer_width = "64",
        not(miri)
    ),
    path = "section/x86_64.rs"
)]
#[cfg_attr(
    all(
        target_os = "linux",
        target_env = "gnu",
        target_arch = "aarch64",
        target_endian = "little",
        target_pointer_width = "64",
        not(miri)
    ),
    path = "section/aarch64.rs"
)]
mod unsupported;

pub(super) use self::unsupported::{ON_BY_DEFAULT, fill, pop, replace};
use super::{LEVEL, SEIZED, Stock};
pub(super) use crate::per_core::number::rseq::Areas;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Whether sections can be had, and aborted from another core.
pub(super) fn can_be_had() -> bool {
    Areas::find().is_some() && membarrier::are_among(membarrier::commands())
}

/// Makes ready for both; `None` if they can't be had.
pub(super) fn set_up() -> Option<Areas> {
    Areas::find().filter(|_| membarrier::register())
}

/// Takes a stock with IDs away from its core: its word is `ticket` from then on. Returns the word
/// before. `None` if it has no IDs, or another core is seizing it.
pub(super) fn seize(_: Areas, stock: &Stock, core: usize, ticket: u64) -> Option<u64> {
    let has_some = || has_ids(stock.word.load(Relaxed));
    // Tried before anything is changed: a filter of system calls may have come since `set_up`.
    if !has_some() || !membarrier::works() {
        return None;
    }
    seize_by(stock, ticket, || membarrier::abort_section_on(core))
}

/// The same, where `abort` aborts the section of that core, and returns whether it did.
pub(super) fn seize_by(stock: &Stock, ticket: u64, abort: impl Fn() -> bool) -> Option<u64> {
    loop {
        // Relaxed: the exchange decides.
        let word = stock.word.load(Relaxed);
        if !has_ids(word) {
            return None;
        }
        // AcqRel: the places were written before the word; a section that sees the ticket leaves.
        let exchange = stock.word.compare_exchange(word, ticket, AcqRel, Relaxed);
        if exchange.is_err() {
            continue;
        }
        // Twice: the head of `stocks` says why.
        let is_aborted = abort() && abort();
        // Acquire: after the sections that committed before they could be aborted.
        if stock.word.load(Acquire) == ticket {
            // If it failed this time, a section may be about to commit. Nobody may use the IDs.
            return is_aborted.then_some(word);
        }
    }
}

fn has_ids(word: u64) -> bool {
    !matches!(word & LEVEL, 0 | SEIZED)
}

pub(super) mod membarrier {
    use std::ffi::{c_int, c_long, c_uint};

    const QUERY: c_int = 0;
    /// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ` and the command that registers for it, since
    /// Linux 5.10.
    pub(in crate::per_core::stocks) const ABORT: c_int = 1 << 7;
    pub(in crate::per_core::stocks) const REGISTER: c_int = 1 << 8;
    const ON_ONE_CORE: c_uint = 1;

    fn call(command: c_int, flags: c_uint, core: c_int) -> c_long {
        // SAFETY: the call has no pointer, and changes nothing that a program can read.
        #[cfg(all(target_os = "linux", not(miri)))]
        return unsafe { libc::syscall(libc::SYS_membarrier, command, flags, core) };
        #[cfg(not(all(target_os = "linux", not(miri))))]
        {
            _ = (command, flags, core);
            -1
        }
    }

    /// The commands that the kernel has, a bit each; negative if it has no such call.
    pub(super) fn commands() -> c_long {
        call(QUERY, 0, 0)
    }

    /// Whether both are among these commands.
    pub(in crate::per_core::stocks) fn are_among(commands: c_long) -> bool {
        let has = |command| commands & c_long::from(command) != 0;
        commands >= 0 && has(ABORT) && has(REGISTER)
    }

    pub(super) fn register() -> bool {
        call(REGISTER, 0, 0) == 0
    }

    /// Asks for a core that no machine has, which interrupts none.
    pub(super) fn works() -> bool {
        call(ABORT, ON_ONE_CORE, c_int::MAX) == 0
    }

    pub(in crate::per_core::stocks) fn abort_section_on(core: usize) -> bool {
        c_int::try_from(core).is_ok_and(|core| call(ABORT, ON_ONE_CORE, core) == 0)
    }
}

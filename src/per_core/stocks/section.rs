//! The restartable sections, where there are any.
//!
//! | function | starts from | commits |
//! |---|---|---|
//! | `pop` | level above 0, this mark | the level, one less |
//! | `fill` | level 0 | another word, after the IDs |
//! | `replace` | this word | another word |
//!
//! `seize` is for another core: it swaps the word, and aborts the sections that are under way.

#[cfg_attr(
    all(
        target_os = "linux",
        target_env = "gnu",
        target_arch = "x86_64",
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
    Areas::find().is_some() && membarrier::is_there()
}

/// Makes ready for both; `None` if they can't be had.
pub(super) fn set_up() -> Option<Areas> {
    Areas::find().filter(|_| membarrier::register())
}

/// Takes a stock with IDs away from its core, and returns its word. `None` if it has none.
pub(super) fn seize(_: Areas, stock: &Stock, core: usize) -> Option<u64> {
    seize_by(stock, || membarrier::abort_sections_on(core))
}

/// The same, where `abort` aborts the sections of that core, and says whether it did.
pub(super) fn seize_by(stock: &Stock, abort: impl Fn() -> bool) -> Option<u64> {
    // Relaxed: a look, so that the line of an empty stock stays with its core.
    let has_some = || stock.word.load(Relaxed) & LEVEL != 0;
    // Tried before anything is changed: a filter of system calls may have come since `set_up`.
    if !has_some() || !abort() {
        return None;
    }
    while has_some() {
        // AcqRel: the places were written before the word; a section that sees this one leaves.
        let word = stock.word.swap(SEIZED, AcqRel);
        let is_aborted = abort();
        // Acquire: after the sections that committed before they could be aborted.
        if stock.word.load(Acquire) == SEIZED {
            // If it failed this time, the IDs are lost: a section may be about to commit.
            return is_aborted.then_some(word);
        }
    }
    None
}

#[cfg(all(target_os = "linux", not(miri)))]
mod membarrier {
    const QUERY: libc::c_int = 0;
    /// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ` and the command that registers for it, since
    /// Linux 5.10.
    const ABORT: libc::c_int = 1 << 7;
    const REGISTER: libc::c_int = 1 << 8;
    const ON_ONE_CORE: libc::c_uint = 1;

    fn call(command: libc::c_int, flags: libc::c_uint, core: libc::c_int) -> libc::c_long {
        // SAFETY: the call has no pointer, and changes nothing that a program can read.
        unsafe { libc::syscall(libc::SYS_membarrier, command, flags, core) }
    }

    pub(super) fn is_there() -> bool {
        let commands = call(QUERY, 0, 0);
        commands > 0 && commands & libc::c_long::from(ABORT | REGISTER) != 0
    }

    pub(super) fn register() -> bool {
        call(REGISTER, 0, 0) == 0
    }

    pub(super) fn abort_sections_on(core: usize) -> bool {
        libc::c_int::try_from(core).is_ok_and(|core| call(ABORT, ON_ONE_CORE, core) == 0)
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod membarrier {
    pub(super) fn is_there() -> bool {
        false
    }

    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn abort_sections_on(_core: usize) -> bool {
        false
    }
}

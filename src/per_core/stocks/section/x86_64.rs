//! The restartable sections for x86-64.
//!
//! Every section has the same frame:
//!
//! ```text
//!     descriptor of the section -> rseq_cs
//! 71: load cpu_id; leave to 72 if it has no stock
//!     check the word; leave to 72 if the state is another one
//!     ...
//!     store the word                                  the commit
//! 72: 0 -> rseq_cs
//! ```
//!
//! The descriptor names the instructions from 71 up to, not including, 72, and the abort
//! handler 73, which says that nothing was done and goes to 72. Four bytes that glibc gave to
//! the kernel as its signature stand before the handler.

use std::arch::asm;

use super::Areas;
use crate::id::Id;
use crate::per_core::stocks::{CAPACITY, Stock};

pub(in crate::per_core::stocks) const ON_BY_DEFAULT: bool = true;

/// The logarithm of a stock's size, which is an operand of the sections.
const STOCK_SHIFT: u32 = size_of::<Stock>().ilog2();
const _: () = assert!(size_of::<Stock>() == 1 << STOCK_SHIFT);

/// The signature of glibc on x86-64, as the operand of an instruction that is never executed.
macro_rules! abort_handler {
    ($($instruction:literal),+) => {
        concat!(
            ".pushsection __rseq_failure, \"ax\"\n",
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long 0x53053053\n",
            "73:\n",
            $($instruction, "\n",)+
            "jmp 72b\n",
            ".popsection"
        )
    };
}

/// The descriptor of the section from 71 to 72, and the store that announces it.
macro_rules! begin {
    () => {
        concat!(
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "70:\n",
            ".long 0, 0\n",
            ".quad 71f, 72f - 71f, 73f\n",
            ".popsection\n",
            "lea {scratch}, [rip + 70b]\n",
            "mov qword ptr fs:[{area} + 8], {scratch}\n",
            "71:\n",
            "mov {stock:e}, dword ptr fs:[{area} + 4]\n",
            "cmp {stock}, {cores}\n",
            "jae 72f\n",
            "shl {stock}, {shift}\n",
            "add {stock}, {stocks}"
        )
    };
}

/// The end of a section, also for one that was left or aborted.
macro_rules! end {
    () => {
        "72:\nmov qword ptr fs:[{area} + 8], 0"
    };
}

/// Takes the ID at the level, if the mark is `mark`.
#[inline(always)]
pub(in crate::per_core::stocks) fn pop(areas: Areas, stocks: &[Stock], mark: u64) -> Option<u64> {
    let (index, id): (u64, u64);
    // SAFETY: writes this thread's rseq area, and one word of the stock of the core that it runs
    // on, which only sections of this core write. Reads that stock's places.
    unsafe {
        asm!(
            begin!(),
            // The level and the index of the ID, both one less than before. With another mark
            // or level 0 the index is 127 or more.
            "mov {word}, qword ptr [{stock}]",
            "dec {word}",
            "mov {scratch}, {word}",
            "sub {scratch}, {mark}",
            "cmp {scratch}, {capacity}",
            "jae 72f",
            "mov {id}, qword ptr [{stock} + {scratch} * 8 + 8]",
            "mov qword ptr [{stock}], {word}",
            end!(),
            abort_handler!("mov {scratch}, -1"),
            area = in(reg) areas.offset(),
            stocks = in(reg) stocks.as_ptr(),
            cores = in(reg) stocks.len(),
            mark = in(reg) mark,
            stock = out(reg) _,
            word = out(reg) _,
            scratch = out(reg) index,
            id = out(reg) id,
            shift = const STOCK_SHIFT,
            capacity = const CAPACITY,
            options(nostack)
        );
    }
    (index < CAPACITY as u64).then_some(id)
}

/// Copies `ids` to the places, the first to the highest, and stores `word`, if the level is 0 and the
/// stock was not wiped.
pub(in crate::per_core::stocks) fn fill(
    areas: Areas,
    stocks: &[Stock],
    ids: &[Id],
    word: u64,
) -> bool {
    debug_assert!((1..=CAPACITY).contains(&ids.len()));
    let left: usize;
    // SAFETY: as in `pop`, and writes places up to the number of IDs, which is no more than there
    // are places, while the level says that nobody reads them. Reads the IDs.
    unsafe {
        asm!(
            begin!(),
            "mov {scratch}, qword ptr [{stock}]",
            "test {scratch}, {scratch}",
            "jz 72f",
            "test {scratch:l}, {scratch:l}",
            "jnz 72f",
            // From the highest place down, the IDs of a pair in each other's place: one ID if their
            // number is odd, pairs up to a multiple of eight, then four pairs at a time.
            "mov {left}, {count}",
            "test {left}, 1",
            "jz 74f",
            "mov {scratch}, qword ptr [{ids}]",
            "add {ids}, 8",
            "mov qword ptr [{stock} + {left} * 8], {scratch}",
            "dec {left}",
            "74:",
            "test {left}, 6",
            "jz 75f",
            "movups {a}, xmmword ptr [{ids}]",
            "shufps {a}, {a}, 0x4e",
            "add {ids}, 16",
            "movups xmmword ptr [{stock} + {left} * 8 - 8], {a}",
            "sub {left}, 2",
            "jmp 74b",
            "75:",
            "test {left}, {left}",
            "jz 76f",
            "movups {a}, xmmword ptr [{ids}]",
            "movups {b}, xmmword ptr [{ids} + 16]",
            "movups {c}, xmmword ptr [{ids} + 32]",
            "movups {d}, xmmword ptr [{ids} + 48]",
            "shufps {a}, {a}, 0x4e",
            "shufps {b}, {b}, 0x4e",
            "shufps {c}, {c}, 0x4e",
            "shufps {d}, {d}, 0x4e",
            "movups xmmword ptr [{stock} + {left} * 8 - 8], {a}",
            "movups xmmword ptr [{stock} + {left} * 8 - 24], {b}",
            "movups xmmword ptr [{stock} + {left} * 8 - 40], {c}",
            "movups xmmword ptr [{stock} + {left} * 8 - 56], {d}",
            "add {ids}, 64",
            "sub {left}, 8",
            "jmp 75b",
            "76:",
            "mov qword ptr [{stock}], {word}",
            end!(),
            abort_handler!("mov {left}, -1"),
            area = in(reg) areas.offset(),
            stocks = in(reg) stocks.as_ptr(),
            cores = in(reg) stocks.len(),
            count = in(reg) ids.len(),
            word = in(reg) word,
            ids = inout(reg) ids.as_ptr() => _,
            stock = out(reg) _,
            scratch = out(reg) _,
            left = inout(reg) usize::MAX => left,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            shift = const STOCK_SHIFT,
            options(nostack)
        );
    }
    left == 0
}

/// Stores `new` where the word is `old`.
pub(in crate::per_core::stocks) fn replace(
    areas: Areas,
    stocks: &[Stock],
    old: u64,
    new: u64,
) -> bool {
    let done: u64;
    // SAFETY: as in `pop`.
    unsafe {
        asm!(
            begin!(),
            "cmp qword ptr [{stock}], {old}",
            "jne 72f",
            "mov {done:e}, 1",
            "mov qword ptr [{stock}], {new}",
            end!(),
            abort_handler!("mov {done:e}, 0"),
            area = in(reg) areas.offset(),
            stocks = in(reg) stocks.as_ptr(),
            cores = in(reg) stocks.len(),
            old = in(reg) old,
            new = in(reg) new,
            stock = out(reg) _,
            scratch = out(reg) _,
            done = inout(reg) 0_u64 => done,
            shift = const STOCK_SHIFT,
            options(nostack)
        );
    }
    done == 1
}

//! The restartable sections for 64-bit Arm, in the frame of `x86_64.rs`. Compiled, and run on
//! no machine yet: off unless forced.

use std::arch::asm;

use super::Areas;
use crate::id::Id;
use crate::per_core::stocks::{CAPACITY, Stock};

pub(in crate::per_core::stocks) const ON_BY_DEFAULT: bool = false;

/// The logarithm of a stock's size, which is an operand of the sections.
const STOCK_SHIFT: u32 = size_of::<Stock>().ilog2();
const _: () = assert!(size_of::<Stock>() == 1 << STOCK_SHIFT);

/// The signature of glibc on 64-bit Arm, an instruction that is never executed.
macro_rules! abort_handler {
    ($($instruction:literal),+) => {
        concat!(
            ".pushsection __rseq_failure, \"ax\"\n",
            ".balign 4\n",
            ".inst 0xd428bc00\n",
            "73:\n",
            $($instruction, "\n",)+
            "b 72b\n",
            ".popsection"
        )
    };
}

/// The descriptor of the section from 71 to 72, and the store that announces it. The rseq area
/// is `{area}` afterwards.
macro_rules! begin {
    () => {
        concat!(
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "70:\n",
            ".word 0, 0\n",
            ".quad 71f, 72f - 71f, 73f\n",
            ".popsection\n",
            "mrs {scratch}, tpidr_el0\n",
            "add {area}, {area}, {scratch}\n",
            "adrp {scratch}, 70b\n",
            "add {scratch}, {scratch}, :lo12:70b\n",
            "str {scratch}, [{area}, #8]\n",
            "71:\n",
            "ldr {stock:w}, [{area}, #4]\n",
            "cmp {stock}, {cores}\n",
            "b.hs 72f\n",
            "add {stock}, {stocks}, {stock}, lsl #{shift}"
        )
    };
}

/// The end of a section, also for one that was left or aborted.
macro_rules! end {
    () => {
        "72:\nstr xzr, [{area}, #8]"
    };
}

/// Takes the ID at the level, if the mark is `mark`.
#[inline]
pub(in crate::per_core::stocks) fn pop(areas: Areas, stocks: &[Stock], mark: u64) -> Option<u64> {
    let (index, id): (u64, u64);
    // SAFETY: writes this thread's rseq area, and one word of the stock of the core that it runs
    // on, which only sections of this core write. Reads that stock's places.
    unsafe {
        asm!(
            begin!(),
            // The level and the index of the ID, both one less than before. With another mark
            // or level 0 the index is 127 or more.
            "ldr {word}, [{stock}]",
            "sub {word}, {word}, #1",
            "sub {scratch}, {word}, {mark}",
            "cmp {scratch}, #{capacity}",
            "b.hs 72f",
            "add {id}, {stock}, {scratch}, lsl #3",
            "ldr {id}, [{id}, #8]",
            "stlr {word}, [{stock}]",
            end!(),
            abort_handler!("mov {scratch}, #-1"),
            area = inout(reg) areas.offset() => _,
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
            "ldr {scratch}, [{stock}]",
            "cbz {scratch}, 72f",
            "tst {scratch}, #255",
            "b.ne 72f",
            "mov {left}, {count}",
            "74:",
            "ldr {scratch}, [{ids}], #8",
            "str {scratch}, [{stock}, {left}, lsl #3]",
            "subs {left}, {left}, #1",
            "b.ne 74b",
            "stlr {word}, [{stock}]",
            end!(),
            abort_handler!("mov {left}, #-1"),
            area = inout(reg) areas.offset() => _,
            stocks = in(reg) stocks.as_ptr(),
            cores = in(reg) stocks.len(),
            count = in(reg) ids.len(),
            word = in(reg) word,
            ids = inout(reg) ids.as_ptr() => _,
            stock = out(reg) _,
            scratch = out(reg) _,
            left = inout(reg) usize::MAX => left,
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
            "ldr {scratch}, [{stock}]",
            "cmp {scratch}, {old}",
            "b.ne 72f",
            "mov {done}, #1",
            "stlr {new}, [{stock}]",
            end!(),
            abort_handler!("mov {done}, #0"),
            area = inout(reg) areas.offset() => _,
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

//! The sections in a model: a lock of the core that the thread says it runs on.
//!
//! A thread that is to be interrupted in a section, or to have none, is on a core without a
//! stock (`run_on_cores`).

use super::{SEIZED, Stock};
use crate::id::Id;
use crate::per_core::number::CoreNumbers;
use crate::per_core::stocks::LEVEL;
use crate::sync::atomic::Ordering::Relaxed;

/// No builder makes stocks in a model; models make them by themselves.
pub(super) const ON_BY_DEFAULT: bool = false;

#[derive(Clone, Copy)]
pub(super) struct Areas;

pub(super) fn can_be_had() -> bool {
    false
}

impl Areas {
    pub(super) fn exact_number(self) -> usize {
        CoreNumbers.here()
    }
}

/// What `transition` returns, in a section of this thread's core.
fn section<T>(stocks: &[Stock], transition: impl FnOnce(&Stock) -> Option<T>) -> Option<T> {
    let stock = stocks.get(CoreNumbers.here())?;
    let section = stock.section.lock().expect("no section panics");
    let done = transition(stock);
    drop(section);
    done
}

// Relaxed, below: a core sees its own stores in order, which the lock stands for.

pub(super) fn pop(_: Areas, stocks: &[Stock], mark: u64) -> Option<u64> {
    section(stocks, |stock| {
        let word = stock.word.load(Relaxed).wrapping_sub(1);
        let place = stock.ids.get(word.wrapping_sub(mark) as usize)?;
        let id = place.load(Relaxed);
        stock.word.store(word, Relaxed);
        Some(id)
    })
}

pub(super) fn fill(_: Areas, stocks: &[Stock], ids: &[Id], word: u64) -> bool {
    let filled = section(stocks, |stock| {
        let before = stock.word.load(Relaxed);
        if before == 0 || before & LEVEL != 0 {
            return None;
        }
        for (place, id) in stock.ids[..ids.len()].iter().rev().zip(ids) {
            place.store(id.to_u64(), Relaxed);
        }
        stock.word.store(word, Relaxed);
        Some(())
    });
    filled.is_some()
}

pub(super) fn replace(_: Areas, stocks: &[Stock], old: u64, new: u64) -> bool {
    let replaced = section(stocks, |stock| {
        if stock.word.load(Relaxed) != old {
            return None;
        }
        stock.word.store(new, Relaxed);
        Some(())
    });
    replaced.is_some()
}

/// The lock stands for the abort of the section in progress on the core.
pub(super) fn seize(_: Areas, stock: &Stock, _core: usize, ticket: u64) -> Option<u64> {
    let section = stock.section.lock().expect("no section panics");
    let word = stock.word.load(Relaxed);
    let has_some = !matches!(word & LEVEL, 0 | SEIZED);
    if has_some {
        stock.word.store(ticket, Relaxed);
    }
    drop(section);
    has_some.then_some(word)
}

//! A consumer's own stock of IDs.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;
use std::sync::{Mutex, PoisonError};

use super::cached::CachedGenerator;
use super::empty::TakeError;
use super::id_source::{IdSource, fill_one_by_one};
use crate::fill::RecallMark;
use crate::fork::{WipeOnFork, ZeroIsValid};
use crate::id::Id;
use crate::sync;
use crate::timeline::Refused;

/// IDs in one stock. A power of two, so that an index can be masked. In a model
/// four, so that a ring of a few slots is more than a stock.
///
/// Measured, in one run: 908 M IDs/s with 64, 1,106 M with 128, 1,120 M with 256. A stock
/// is a quarter of its page: the rest would hold IDs that nobody takes for longer.
const CHUNK: usize = sync::size(128, 4);

/// A small stock of IDs that one consumer has claimed in one step, from the
/// [stripe](crate::CachedGeneratorBuilder::stripes) of the core that it ran on.
///
/// Made by [`CachedGenerator::handle`]. Not shared: each thread has its own.
/// Dropping it gives the IDs that are left back to the stripes, as far as there is
/// room, unless the oldest would outlive the age limit there; the rest is
/// counted as retired. Keeps its generator alive.
///
/// IDs in a handle are not retired by a scheduled fill: a thread that rests
/// for an hour still has up to 128 that are an hour old.
///
/// # Examples
///
/// ```
/// # use ringflake::{CachedGenerator, Layout, StaticLease};
/// # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..32);
/// # let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
/// let mut handle = ids.handle()?;
/// let (a, b) = (handle.take()?, handle.take()?);
/// assert_ne!(a, b);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Handle {
    generator: CachedGenerator,
    /// Reads as zero in a forked child, where it is therefore used up.
    stock: WipeOnFork<Stock>,
}

#[repr(C)]
struct Stock {
    /// The next one to hand out.
    next: usize,
    /// How many of `ids` are filled.
    filled: usize,
    /// The [`RecallMark`] from before they were taken.
    mark: u64,
    ids: [Id; CHUNK],
}

// SAFETY: three integers and an array of transparent integers, all of them valid
// as zero bytes.
unsafe impl ZeroIsValid for Stock {}

impl CachedGenerator {
    /// A consumer's own small stock, taken from the stripes 128 IDs at a time.
    ///
    /// For a thread that takes often: about a nanosecond a take, without
    /// touching memory that other threads write. Costs a page of memory and a
    /// few system calls to make, so make one a thread, not one a request.
    ///
    /// # Errors
    ///
    /// [`TakeError::NoPage`] if the system gives no page.
    pub fn handle(&self) -> Result<Handle, TakeError> {
        Handle::new(self.clone()).map_err(|error| TakeError::NoPage { kind: error.kind() })
    }
}

impl Handle {
    fn new(generator: CachedGenerator) -> std::io::Result<Self> {
        let stock = WipeOnFork::new(Stock {
            next: 0,
            filled: 0,
            mark: 0,
            ids: [Id::default(); CHUNK],
        })?;
        Ok(Self { generator, stock })
    }

    /// Takes one ID: about a nanosecond, and every 128th time a batch from the stripes.
    ///
    /// Touches nothing that other threads write as long as nothing is recalled,
    /// but for that batch, which is lock-free.
    ///
    /// # Errors
    ///
    /// [`TakeError`] as in [`CachedGenerator::take`], if the stock is used up
    /// and all stripes are empty.
    #[inline]
    pub fn take(&mut self) -> Result<Id, TakeError> {
        let stock = &mut *self.stock;
        // The mask changes nothing where there is one, and saves the bounds check. The ID is read
        // before the mark: if a signal handler forks in between, the child finds no mark.
        let id = stock.ids[stock.next % CHUNK];
        compiler_fence(SeqCst);
        if stock.next < stock.filled
            && self
                .generator
                .filler
                .is_unrecalled(RecallMark::from_word(stock.mark))
        {
            stock.next += 1;
            Ok(id)
        } else {
            self.restock()
        }
    }

    /// Fills `out` from the front and returns how many IDs that were: all of `out`, or fewer
    /// where they ran out, but at least one unless `out` is empty. Each is a
    /// [`take`](Self::take), and costs as much.
    ///
    /// # Errors
    ///
    /// [`TakeError`] as in [`take`](Self::take), if there was not even one.
    pub fn take_batch(&mut self, out: &mut [Id]) -> Result<usize, TakeError> {
        fill_one_by_one(out, || self.take())
    }

    #[cold]
    fn restock(&mut self) -> Result<Id, TakeError> {
        let stock = &mut *self.stock;
        // Recalled IDs are given up; otherwise none are left.
        // Saturating: a child that was forked in a take may have `next` without `filled`.
        self.generator
            .count_dropped(stock.filled.saturating_sub(stock.next));
        // On an error nothing is in stock.
        (stock.next, stock.filled) = (0, 0);
        // Before the take: IDs that are taken during a recall count as old.
        stock.mark = self.generator.filler.recall_mark().to_word();
        // A ring of fewer slots can't give more, and need not be found dry.
        let want = CHUNK.min(self.generator.capacity());
        stock.filled = self.generator.take_batch(&mut stock.ids[..want])?;
        self.generator.filler.prefetch(want);
        stock.next = 1;
        let id = stock.ids[0];
        // A signal handler that has forked meanwhile has left this child without the mark, and
        // perhaps without the IDs.
        compiler_fence(SeqCst);
        if stock.mark == 0 {
            return Err(Refused::Forked.into());
        }
        Ok(id)
    }
}

/// For one thread. A clock or a hook that takes from the same handle, in the middle of a
/// take, panics.
impl IdSource for RefCell<Handle> {
    #[inline]
    fn take(&self) -> Result<Id, TakeError> {
        self.borrow_mut().take()
    }
}

/// For threads that seldom meet. One that panicked in a take has spoiled nothing.
impl IdSource for Mutex<Handle> {
    fn take(&self) -> Result<Id, TakeError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let stock = &*self.stock;
        // None where a signal handler forked this child in a take: `next` may be past `filled`.
        if let Some(left @ [_, ..]) = stock.ids.get(stock.next..stock.filled) {
            self.generator
                .give_back(left, RecallMark::from_word(stock.mark));
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("left", &self.stock.filled.saturating_sub(self.stock.next))
            .finish_non_exhaustive()
    }
}

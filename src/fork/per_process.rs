//! A static that each process has for itself.
//!
//! A forked child inherits its parent's statics, with locks that threads of the parent
//! held and that no thread unlocks any more. So a child makes a value of its own at first
//! use. The parent's value stays allocated, a few hundred bytes a generation, since its
//! readers may still hold references.
//!
//! A mark that the child reads as zero says that it is a child. Process numbers would
//! not do, since they are used again.

use std::io;
use std::ops::Deref;
use std::ptr;

use crossbeam_utils::atomic::AtomicCell;

use super::WipeOnFork;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;

/// A static of this process, and of none that is forked from it.
pub(crate) struct PerProcess<T: 'static> {
    /// The value that was made last: by this process, or by its parent.
    current: AtomicCell<Option<Made<T>>>,
}

/// A value, and whether it is this process's.
#[derive(Debug)]
pub(crate) struct Marked<T> {
    /// 1; a forked child reads 0.
    mark: WipeOnFork<AtomicU64>,
    value: T,
}

/// Equal if it is the very same.
struct Made<T: 'static>(&'static Marked<T>);

impl<T> Clone for Made<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Made<T> {}

impl<T> PartialEq for Made<T> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl<T> Eq for Made<T> {}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        const {
            assert!(
                AtomicCell::<Option<Made<T>>>::is_lock_free(),
                "a lock in here would be one more that a fork can leave locked"
            );
        }
        Self {
            current: AtomicCell::new(None),
        }
    }

    /// This process's value, if it was made.
    #[cfg(all(feature = "sqlite", unix))]
    pub(crate) fn made(&'static self) -> Option<&'static Marked<T>> {
        let Made(marked) = self.current.load()?;
        (!marked.is_inherited()).then_some(marked)
    }

    /// This process's value. At first use it is made from the parent's, if there is one,
    /// which `make` must not lock.
    ///
    /// # Errors
    /// Those of `make`, and the operating system's for the page of memory of the mark.
    pub(crate) fn get(
        &'static self,
        make: impl Fn(Option<&T>) -> io::Result<T>,
    ) -> io::Result<&'static Marked<T>> {
        loop {
            let made = self.current.load();
            if let Some(Made(marked)) = made
                && !marked.is_inherited()
            {
                return Ok(marked);
            }
            let value = make(made.map(|Made(parent)| &parent.value))?;
            let marked: &Marked<T> = Box::leak(Box::new(Marked {
                mark: WipeOnFork::new(AtomicU64::new(1))?,
                value,
            }));
            // If two threads make a value at the same time, one of them does so in vain.
            if self
                .current
                .compare_exchange(made, Some(Made(marked)))
                .is_ok()
            {
                return Ok(marked);
            }
        }
    }
}

impl<T> Marked<T> {
    /// Whether it is that of the process which this one was forked from.
    pub(crate) fn is_inherited(&self) -> bool {
        // Relaxed: written before the value was published, and else only by the fork.
        self.mark.load(Relaxed) == 0
    }
}

impl<T> Deref for Marked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use std::cell::Cell;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    /// As in a child, which finds its parent's value.
    fn inherited() -> &'static PerProcess<u64> {
        let mark = WipeOnFork::new(AtomicU64::new(0)).unwrap();
        let parents = Box::leak(Box::new(Marked { mark, value: 1 }));
        Box::leak(Box::new(PerProcess {
            current: AtomicCell::new(Some(Made(parents))),
        }))
    }

    #[test]
    fn two_first_threads_share_one_static() {
        for number in [Box::leak(Box::new(PerProcess::new())), inherited()] {
            let both = Barrier::new(2);
            let get = || {
                let is_first = Cell::new(true);
                number.get(|_| {
                    // Each makes a value before the other has stored its own.
                    if is_first.take() {
                        both.wait();
                    }
                    Ok(7)
                })
            };
            let (one, other) = thread::scope(|scope| {
                let other = scope.spawn(get);
                (get().unwrap(), other.join().unwrap().unwrap())
            });
            assert!(ptr::eq(one, other));
            assert!(ptr::eq(one, number.get(|_| Ok(8)).unwrap()));
        }
    }
}

//! Memory that a forked child reads as zero.
//!
//! After `fork(2)` parent and child hold the same memory, and with it the same
//! grant. If the child went on from there, it would issue the parent's IDs a
//! second time. So the few words that every take reads anyway live in a
//! [`WipeOnFork`]. The child reads them as zero, which means "nothing left",
//! and the slow path that follows finds out that this is a forked child. The fast path
//! pays nothing for this.
//!
//! # Promise
//! When `fork(2)` returns in the child, every byte of every `WipeOnFork` that
//! the forking thread could reach is zero. The parent's copy is untouched. The
//! same holds for the child's own children.
//!
//! # How it is kept
//! * **By the kernel**, on Linux since 4.14: the value has private anonymous
//!   pages of its own, marked with `madvise(MADV_WIPEONFORK)`. The kernel gives
//!   the child fresh zero pages in their place, whichever call makes the child:
//!   `fork`, `_Fork` or a raw `clone`. There is no moment at which the child
//!   could see the old bytes.
//! * **By a handler**, on other Unix systems and where the kernel refuses the
//!   mark: every live region is in a [registry], and a child handler
//!   registered with `pthread_atfork(3)` writes zeros over each before `fork`
//!   returns in the child.
//!
//! A region is entered before its owner exists and taken out before its pages
//! are unmapped. An owner that the forking thread can reach was published to it, so its
//! entry happened before the fork and is in the child's copy of the registry;
//! an entry in that copy whose owner was being dropped by another thread still
//! covers mapped pages.
//!
//! # Gap
//! `vfork(2)` and `clone` with `CLONE_VM` share memory instead of copying it, so
//! nothing is wiped. Both sides move the same cursors, but such a child must not
//! take before `exec`: the kernel does not restart its sequences
//! (`per_core::stocks`). A take that is in progress when a signal handler forks may
//! return its IDs in both processes. If it waits for a lock that another thread holds, it waits
//! for ever in the child. The handler of `pthread_atfork`, unlike the mark, is
//! not run by `_Fork(3)` nor by a raw `clone` or `fork` system call; a child made in these ways
//! keeps the values.
//! Neither covers a snapshot of the whole machine or process that is resumed twice.
//!
//! # Cost
//! Creating a value is one `mmap` and, on Linux, two calls of `madvise`; it
//! takes at least a page of memory. With the handler it also walks the registry
//! for an unused entry. Access costs no more than that of any pointer.
//!
//! Elsewhere (no Unix, Miri, loom) the value lives on the heap and nothing is
//! wiped. Loom's atomics are handles to state of the model, not plain memory.

use std::alloc::Layout;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::{fmt, io};

use crossbeam_utils::CachePadded;

use crate::sync::atomic;

mod per_process;

pub(crate) use self::per_process::{Marked, PerProcess};

#[cfg(all(unix, not(miri), not(all(loom, feature = "loom"))))]
mod pages;
#[cfg(all(unix, not(miri), not(all(loom, feature = "loom"))))]
mod registry;
#[cfg(all(unix, not(miri), not(all(loom, feature = "loom"))))]
use self::pages::Region;

#[cfg(not(all(unix, not(miri), not(all(loom, feature = "loom")))))]
mod heap;
#[cfg(not(all(unix, not(miri), not(all(loom, feature = "loom")))))]
use self::heap::Region;

/// The largest alignment that every page size satisfies.
const MAX_ALIGN: usize = 4096;

/// Types for which memory full of zero bytes is a valid value.
///
/// # Safety
/// All-zero bytes must be a valid value of the type, and must stay one whatever
/// the value was before: no reference, no `NonNull`, no enum without a zero
/// discriminant. Builds in which nothing is wiped (loom) are exempt.
pub(crate) unsafe trait ZeroIsValid {}

macro_rules! zero_is_valid {
    ($($type:ty),* $(,)?) => {
        $(
            // SAFETY: an integer, a `bool`, or an atomic of the same
            // representation; zero is one of its values.
            unsafe impl ZeroIsValid for $type {}
        )*
    };
}

zero_is_valid!(
    bool,
    u8,
    u16,
    u32,
    u64,
    usize,
    i64,
    atomic::AtomicBool,
    atomic::AtomicU32,
    atomic::AtomicU64,
    atomic::AtomicUsize,
);

// SAFETY: `Cell<T>` has the representation of `T`.
unsafe impl<T: ZeroIsValid> ZeroIsValid for Cell<T> {}
// SAFETY: the padding may hold anything, and the value inside is valid at zero.
unsafe impl<T: ZeroIsValid> ZeroIsValid for CachePadded<T> {}
// SAFETY: every element is valid at zero.
unsafe impl<T: ZeroIsValid, const N: usize> ZeroIsValid for [T; N] {}

/// Owns a value that reads as all-zero bytes in a forked child.
///
/// The value starts at a page boundary where it is wiped. It can be sent and
/// shared as `T` can.
///
/// The wipe is a write that the compiler does not see. A reference to a plain
/// integer in here must not be held across the call to `fork`, since the
/// compiler may keep what it read; take a new one from the owner. Atomics and
/// [`Cell`] have no such restriction.
pub(crate) struct WipeOnFork<T: ?Sized> {
    value: NonNull<T>,
    /// Held for its drop, which frees the memory after the value's drop.
    _region: Region,
}

// SAFETY: the owner is to its value what `Box` is: the only way to it.
unsafe impl<T: Send + ?Sized> Send for WipeOnFork<T> {}
// SAFETY: as above; a shared owner gives out shared references only.
unsafe impl<T: Sync + ?Sized> Sync for WipeOnFork<T> {}

impl<T: ZeroIsValid> WipeOnFork<T> {
    /// Moves `value` into memory of its own.
    ///
    /// # Errors
    /// The operating system's, if it has no memory or can't promise the wipe.
    pub(crate) fn new(value: T) -> io::Result<Self> {
        Self::new_in(Region::map, value)
    }

    fn new_in(map: impl FnOnce(Layout) -> io::Result<Region>, value: T) -> io::Result<Self> {
        const { assert_fits::<T>() };
        let region = map(Layout::new::<T>())?;
        let place = region.start().cast::<T>();
        // SAFETY: the region is ours alone, writable, and was made for the size
        // and alignment of one `T`.
        unsafe { place.write(value) };
        Ok(Self {
            value: place,
            _region: region,
        })
    }
}

// In a model zero bytes are no value, see above.
#[cfg(not(all(loom, feature = "loom")))]
impl<T: ZeroIsValid> WipeOnFork<[T]> {
    /// `len` values of zero bytes. Memory that nobody writes takes no more than its addresses.
    ///
    /// # Errors
    /// As [`new`](WipeOnFork::new).
    pub(crate) fn zeroed(len: usize) -> io::Result<Self> {
        const { assert_fits::<T>() };
        let layout = Layout::array::<T>(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let region = Region::map(layout)?;
        Ok(Self {
            // Zero bytes, which are values by `ZeroIsValid`.
            value: NonNull::slice_from_raw_parts(region.start().cast::<T>(), len),
            _region: region,
        })
    }
}

/// Refuses, when compiled, types that can't be wiped or placed.
const fn assert_fits<T>() {
    assert!(
        align_of::<T>() <= MAX_ALIGN,
        "a value must not be aligned to more than a page"
    );
    // Loom's atomics have drop glue. They are dropped, and never wiped.
    #[cfg(not(all(loom, feature = "loom")))]
    assert!(
        !std::mem::needs_drop::<T>(),
        "a value that is wiped must have nothing to drop"
    );
}

impl<T: ?Sized> Deref for WipeOnFork<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: written when the owner was made, and valid since: a wipe
        // leaves a valid value by `ZeroIsValid`.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for WipeOnFork<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and `&mut self` rules out other references.
        unsafe { self.value.as_mut() }
    }
}

impl<T: ?Sized> Drop for WipeOnFork<T> {
    fn drop(&mut self) {
        // SAFETY: the value is valid, and nobody can reach it any more. The
        // region's own drop comes after this.
        unsafe { self.value.drop_in_place() };
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for WipeOnFork<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WipeOnFork").field(&&**self).finish()
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

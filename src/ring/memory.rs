//! Memory for the slots.
//!
//! A ring of a million slots is 8 MiB. The first touch of that in pages of
//! 4 KiB costs 2,048 page faults, three times as long as filling it takes.
//! So Linux is asked for huge pages before the first touch. Where memory is
//! fragmented, Linux may first put some together, which takes time
//! once. Faulting in small pages ahead of time was measured to gain less.
//!
//! A consumer that will soon read slots can have their cache lines fetched meanwhile.

use super::error::RingError;
use crate::sync::atomic::AtomicU64;

/// `len` words of zero, at least one. The system finds the memory when it is first written,
/// near the core that writes it.
///
/// # Errors
///
/// [`RingError::Memory`] if there is not enough memory.
#[cfg(not(all(loom, feature = "loom")))]
pub(super) fn zeroed(len: usize) -> Result<Box<[AtomicU64]>, RingError> {
    use std::alloc::{Layout, alloc_zeroed};

    let layout = Layout::array::<AtomicU64>(len).map_err(|_| out_of_memory())?;
    assert!(layout.size() > 0, "a ring has slots");
    // SAFETY: the size is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(out_of_memory());
    }
    prefer_huge_pages(start, layout.size());
    let words = std::ptr::slice_from_raw_parts_mut(start.cast::<AtomicU64>(), len);
    // SAFETY: an allocation of ours for this many words, all of them 0.
    Ok(unsafe { Box::from_raw(words) })
}

/// The same in a model, where a word is more than its bits.
#[cfg(all(loom, feature = "loom"))]
pub(super) fn zeroed(len: usize) -> Result<Box<[AtomicU64]>, RingError> {
    Ok((0..len).map(|_| AtomicU64::new(0)).collect())
}

#[cfg(not(all(loom, feature = "loom")))]
fn out_of_memory() -> RingError {
    RingError::Memory(std::io::ErrorKind::OutOfMemory.into())
}

/// Asks for huge pages where `bytes` of memory, not yet touched, hold some.
#[cfg(all(target_os = "linux", not(any(miri, all(loom, feature = "loom")))))]
fn prefer_huge_pages(start: *mut u8, bytes: usize) {
    /// The size of a huge page on x86-64, and on 64-bit Arm with pages of 4 KiB.
    const HUGE: usize = 2 << 20;
    /// A multiple of every page size in use.
    const PAGE: usize = 64 << 10;

    let skip = start.addr().wrapping_neg() % PAGE;
    let whole = bytes.saturating_sub(skip) / PAGE * PAGE;
    if whole < HUGE {
        return;
    }
    let start = start.wrapping_add(skip);
    // An error does not matter: without huge pages it is only slower.
    // SAFETY: whole pages of an allocation of ours, and an advice that changes
    // nothing that can be read.
    let _ = unsafe { libc::madvise(start.cast(), whole, libc::MADV_HUGEPAGE) };
}

#[cfg(not(any(all(target_os = "linux", not(miri)), all(loom, feature = "loom"))))]
fn prefer_huge_pages(_start: *mut u8, _bytes: usize) {}

/// Whether [`prefetch`] does anything: not in a model, whose loads all count.
pub(super) const CAN_PREFETCH: bool = cfg!(all(
    target_arch = "x86_64",
    not(any(miri, all(loom, feature = "loom")))
));

/// Fetches the cache lines of these slots, without a wait for them.
#[inline]
pub(super) fn prefetch(slots: &[AtomicU64]) {
    // One in eight slots, which are as long as a line, and the last one: the first need not begin a
    // line.
    #[cfg(target_arch = "x86_64")]
    for slot in slots.iter().step_by(8).chain(slots.last()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        // SAFETY: a hint, which changes nothing that can be read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(slot).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slots;
}

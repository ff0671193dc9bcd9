//! Memory for the slots.
//!
//! A ring of a million slots is 8 MiB. The first touch of that in pages of
//! 4 KiB costs 2,048 page faults, three times as long as filling it takes.
//! So Linux is asked for huge pages before the first touch. Where memory is
//! fragmented, Linux may first put some together, which takes time
//! once. Faulting in small pages ahead of time was measured to gain less.

use super::error::RingError;
use crate::sync::atomic::AtomicU64;

/// `len` words of zero.
///
/// # Errors
///
/// [`RingError::Memory`] if there is not enough memory.
pub(super) fn zeroed(len: usize) -> Result<Box<[AtomicU64]>, RingError> {
    let mut words: Vec<AtomicU64> = Vec::new();
    words
        .try_reserve_exact(len)
        .map_err(|_| RingError::Memory(std::io::ErrorKind::OutOfMemory.into()))?;
    let spare = words.spare_capacity_mut();
    prefer_huge_pages(spare.as_mut_ptr().cast(), size_of_val(spare));
    words.resize_with(len, || AtomicU64::new(0));
    Ok(words.into_boxed_slice())
}

/// Asks for huge pages where `bytes` of memory, not yet touched, hold some.
#[cfg(all(target_os = "linux", not(miri)))]
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

#[cfg(not(all(target_os = "linux", not(miri))))]
fn prefer_huge_pages(_start: *mut u8, _bytes: usize) {}

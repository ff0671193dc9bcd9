//! Memory from the heap, where nothing can be wiped.

use std::alloc::{self, Layout};
use std::io;
use std::ptr::NonNull;

/// A piece of the heap, freed on drop.
pub(super) struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

impl Region {
    /// Zeroed memory for a value of this layout.
    pub(super) fn map(layout: Layout) -> io::Result<Self> {
        // The allocator must not be asked for 0 bytes.
        let layout = Layout::from_size_align(layout.size().max(1), layout.align())
            .map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) })
            .ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, layout })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: came from `alloc` with this layout, and is given back once.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

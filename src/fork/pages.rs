//! Private anonymous pages that are wiped in a forked child.

use std::alloc::Layout;
use std::io;
use std::ptr::{self, NonNull};

use super::registry::{self, Entry};

/// How a region is wiped in the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// By the kernel, with `MADV_WIPEONFORK`.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "only Linux knows the mark")
    )]
    Mark,
    /// By the child handler of the registry.
    Handler,
}

/// Whole pages of our own, unmapped on drop.
pub(super) struct Region {
    start: NonNull<u8>,
    bytes: usize,
    /// Where the child handler finds the region; none if the kernel wipes it.
    entry: Option<Entry>,
}

impl Region {
    /// Zeroed pages for a value of this layout, wiped by the kernel where it
    /// can and by the handler elsewhere.
    pub(super) fn map(layout: Layout) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        match Self::map_by(Method::Mark, layout) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            done => return done,
        }
        Self::map_by(Method::Handler, layout)
    }

    /// The same, wiped in this way and no other.
    ///
    /// [`io::ErrorKind::Unsupported`] if the kernel doesn't know the mark.
    pub(super) fn map_by(method: Method, layout: Layout) -> io::Result<Self> {
        // The system rounds up to whole pages, but refuses to map none.
        let bytes = layout.size().max(1);
        // SAFETY: asks for new pages at an address of the kernel's choice, so
        // no memory in use is affected.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANON,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // From here on an error unmaps the pages.
        let mut region = Self {
            start,
            bytes,
            entry: None,
        };
        match method {
            Method::Mark => region.mark()?,
            // SAFETY: the pages stay mapped and writable until `Region::drop`,
            // which drops the entry first.
            Method::Handler => region.entry = Some(unsafe { registry::enter(start, bytes) }?),
        }
        Ok(region)
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[cfg(target_os = "linux")]
    fn mark(&self) -> io::Result<()> {
        /// No kernel knows this advice, so all refuse it.
        const NONSENSE: libc::c_int = -1;

        // Emulators of system calls exist that answer "done" to any advice and
        // do nothing. One that accepts nonsense can't be trusted.
        if self.advise(NONSENSE).is_ok() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.advise(libc::MADV_WIPEONFORK)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::EINVAL | libc::ENOSYS) => io::ErrorKind::Unsupported.into(),
                _ => error,
            })
    }

    #[cfg(not(target_os = "linux"))]
    fn mark(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(target_os = "linux")]
    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the pages are ours. Neither advice that is given here changes
        // what this process reads.
        match unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // The entry goes first: a child forked between the two lines must not
        // be told to wipe pages that are gone.
        self.entry = None;
        // SAFETY: the pages are ours, and the owner's value is gone.
        let unmapped = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert_eq!(unmapped, 0, "pages of our own can always be unmapped");
    }
}

//! The regions that a forked child has to wipe by itself.
//!
//! A singly linked list that only grows. The child handler walks it while other
//! threads of the parent may have been stopped at any instruction, so it takes
//! no lock, allocates nothing and frees nothing: a node, once in the list, stays
//! for the life of the process and is used again.
//!
//! # States of a node
//! ```text
//!            enter                enter
//!   FREE ------------> CLAIMED ------------> LIVE
//!    ^   exchange by            `start` and   |
//!    |   one thread             `bytes` set   |
//!    +----------------------------------------+
//!                  drop of the entry
//! ```
//! Only a live node is wiped. `start` and `bytes` are written by the thread that
//! claimed the node, and by nobody while it is live.
//!
//! A thread that was claiming a node at the moment of a fork does not exist in
//! the child. There the node stays claimed for ever: one node lost, no harm.
//!
//! # Why no lock
//! A lock that another thread held at the fork is held for ever in the child.
//! Taking it in a `prepare` handler would keep every `fork` of the process
//! waiting for this crate.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering};

const FREE: u8 = 0;
const CLAIMED: u8 = 1;
const LIVE: u8 = 2;

struct Node {
    state: AtomicU8,
    start: AtomicPtr<u8>,
    bytes: AtomicUsize,
    /// The next older node. Written before the node is in the list, and never
    /// after.
    next: AtomicPtr<Node>,
}

/// The youngest node.
static HEAD: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// Whether the child handler is known to be registered.
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// A region's place in the registry. Leaves it when dropped.
pub(super) struct Entry(&'static Node);

/// Enters a region that a forked child is to wipe.
///
/// Lock-free; walks the list. Its length is the largest number of regions ever live at once.
///
/// # Errors
/// The operating system's, when the handler can't be registered.
///
/// # Safety
/// The region must stay mapped, writable and valid at zero until the entry is
/// dropped.
pub(super) unsafe fn enter(start: NonNull<u8>, bytes: usize) -> io::Result<Entry> {
    register_handler()?;
    let node = claim();
    // Relaxed: published by the store of LIVE below.
    node.start.store(start.as_ptr(), Ordering::Relaxed);
    node.bytes.store(bytes, Ordering::Relaxed);
    // Release: pairs with the Acquire in `wipe_all`, which reads the two above.
    node.state.store(LIVE, Ordering::Release);
    Ok(Entry(node))
}

impl Drop for Entry {
    fn drop(&mut self) {
        // SeqCst: a full barrier before the owner unmaps the region, so that no
        // copy of this memory shows a live node over pages that are gone.
        // Pairs with the Acquire in `claim` as well.
        self.0.state.swap(FREE, Ordering::SeqCst);
    }
}

/// Takes a free node, or adds one.
fn claim() -> &'static Node {
    for node in nodes() {
        // Acquire: pairs with the swap to FREE, so that what its last user
        // wrote can't come after what the new one writes. Relaxed on failure:
        // nothing is read from a node that somebody else has.
        let claimed =
            node.state
                .compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed);
        if claimed.is_ok() {
            return node;
        }
    }
    let node = Box::leak(Box::new(Node {
        state: AtomicU8::new(CLAIMED),
        start: AtomicPtr::new(ptr::null_mut()),
        bytes: AtomicUsize::new(0),
        next: AtomicPtr::new(ptr::null_mut()),
    }));
    // Relaxed: the exchange below publishes whatever head it finds.
    let mut head = HEAD.load(Ordering::Relaxed);
    loop {
        // Relaxed: published by the exchange.
        node.next.store(head, Ordering::Relaxed);
        // Release: pairs with the Acquire loads in `nodes`. Older nodes stay
        // visible through it, since every change of the head is such an
        // exchange. Relaxed on failure: the head is only written down again.
        match HEAD.compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return node,
            Err(seen) => head = seen,
        }
    }
}

/// Every node, the youngest first. No lock, no allocation.
fn nodes() -> impl Iterator<Item = &'static Node> {
    // Acquire: pairs with the Release exchange in `claim`.
    let mut next = HEAD.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: a pointer in the list is null or a leaked node, which is
        // never freed and was initialised before it was published.
        let node = unsafe { next.as_ref() }?;
        // Relaxed: written before the node was published, and never after.
        next = node.next.load(Ordering::Relaxed);
        Some(node)
    })
}

/// Registers the child handler, unless that is known to be done.
///
/// Two threads that come first together both register it, and a child then
/// wipes twice, which does no harm. Having one wait for the other would: in a
/// child forked in between, the wait would never end.
fn register_handler() -> io::Result<()> {
    // Relaxed: the flag stands for nothing but the call itself, and a thread
    // that misses it only repeats the call.
    if REGISTERED.load(Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: the handler is a plain function without captured state that
    // meets the rules for handlers, see there.
    match unsafe { libc::pthread_atfork(None, None, Some(wipe_all)) } {
        0 => {
            REGISTERED.store(true, Ordering::Relaxed);
            Ok(())
        }
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// The child handler: writes zeros over every live region.
///
/// Async-signal-safe, as a handler of a process with threads has to be: loads,
/// and writes to memory that `enter` vouches for.
unsafe extern "C" fn wipe_all() {
    for node in nodes() {
        // Acquire: pairs with the Release in `enter`.
        if node.state.load(Ordering::Acquire) != LIVE {
            continue;
        }
        // Relaxed: written before the node went live.
        let start = node.start.load(Ordering::Relaxed);
        let bytes = node.bytes.load(Ordering::Relaxed);
        // SAFETY: the caller of `enter` vouches for the region, and this is the
        // only thread of the child.
        unsafe { start.write_bytes(0, bytes) };
    }
}

#[cfg(test)]
pub(super) fn len() -> usize {
    nodes().count()
}

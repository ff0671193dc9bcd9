//! A promise of room in the ring, which can be given back.

use std::fmt;

use super::RingBuffer;
use crate::id::Id;
use crate::sync::atomic::Ordering::Relaxed;

/// Room in a [`RingBuffer`] for a number of IDs, to be used once.
///
/// A push with a permit cannot fail, so IDs need only be made when there is room for
/// them. A permit names no slots: while it is held nothing is blocked, and its drop,
/// also by a panic, gives back the room that was not used.
///
/// # Examples
///
/// ```
/// use ringflake::{Id, RingBuffer};
///
/// let ring = RingBuffer::with_capacity(4)?;
/// let permit = ring.reserve(6).expect("an empty ring has room");
/// assert_eq!(permit.len(), 4);
/// assert_eq!(permit.push(&[Id::from_u64(1), Id::from_u64(2)]), 2);
/// assert_eq!(ring.len(), 2);
/// assert_eq!(ring.reserve(6).map(|permit| permit.len()), Some(2));
/// # Ok::<(), ringflake::RingError>(())
/// ```
#[must_use = "a permit that is not used is given back"]
pub struct Permit<'a> {
    ring: &'a RingBuffer,
    count: usize,
}

impl<'a> Permit<'a> {
    pub(super) fn new(ring: &'a RingBuffer, count: usize) -> Self {
        Self { ring, count }
    }

    /// How many IDs there is room for; never 0.
    #[allow(clippy::len_without_is_empty, reason = "a permit is never empty")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Pushes `ids`, cut to [`len`](Self::len), and returns how many that was.
    ///
    /// Lock-free; the room that is left over is given back. A permit that was
    /// carried through `fork(2)` pushes nothing in the child.
    #[must_use = "IDs beyond the permit are still the caller's"]
    pub fn push(mut self, ids: &[Id]) -> usize {
        let pushed = ids.len().min(self.count);
        // Counted down before the slots are reserved: from there on they are the
        // ring's, and none of them may be given back.
        self.count -= pushed;
        if self.ring.fill(&ids[..pushed]) {
            pushed
        } else {
            0
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            // Relaxed: `promised` only counts.
            let promised = &self.ring.counters.promised;
            promised.fetch_sub(self.count as u64, Relaxed);
        }
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("len", &self.len()).finish()
    }
}

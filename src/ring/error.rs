//! Errors of a ring.

use std::fmt;

use crate::id::Id;

/// The largest capacity of a ring, in slots.
pub(super) const MAX_CAPACITY: usize = 1 << 30;

/// The ring was full. Gives back the ID that it did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushError(pub Id);

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the ring is full, or its free slots are reserved: take some IDs, then push this one \
             again",
        )
    }
}

impl std::error::Error for PushError {}

/// Why a ring could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum RingError {
    /// The capacity is not a power of two between 1 and
    /// [`RingBuffer::MAX_CAPACITY`](super::RingBuffer::MAX_CAPACITY).
    Capacity {
        /// The capacity that was asked for, in slots.
        capacity: usize,
    },
    /// The operating system did not give the memory.
    Memory(std::io::Error),
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity { capacity } => write!(
                f,
                "the capacity must be a power of two from 1 to {MAX_CAPACITY}, got {capacity}",
            ),
            Self::Memory(_) => {
                f.write_str("the system refused the memory for the ring: choose a smaller capacity")
            }
        }
    }
}

impl std::error::Error for RingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Capacity { .. } => None,
            Self::Memory(error) => Some(error),
        }
    }
}

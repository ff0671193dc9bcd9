//! Encrypted, unique 64-bit IDs from a lock-free ring buffer.
//!
//! Producer threads fill a ring ahead of time with IDs that are borrowed from
//! future ticks and already encrypted with SPARX-64; consumers take them
//! without waiting. What makes them unique is a [`Lease`]: ownership of a range
//! of nodes over a range of ticks. No clock is part of that proof.
//!

mod cipher;
mod clock;
mod fork;
mod id;
mod layout;
pub mod lease;
mod ring;
mod sync;

pub use self::cipher::{Backend, BackendUnavailable, Cipher, Secret, SecretError};
pub use self::clock::{Clock, ManualClock, SystemClock};
pub use self::id::{Id, ParseIdError};
pub use self::layout::{
    Layout, LayoutBuilder, LayoutError, LayoutField, NodeFields, NodeFieldsError, ParseLayoutError,
    Parts,
};
pub use self::lease::{Lease, LeaseError, LeaseStore, StaticLease};
pub use self::ring::{Permit, PushError, RingBuffer, RingError};

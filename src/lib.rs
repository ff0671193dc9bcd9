//! Encrypted, unique 64-bit IDs from a lock-free ring buffer.

mod cipher;
mod clock;
mod fork;
mod id;
mod layout;
mod ring;
mod sync;

pub use self::cipher::{Backend, BackendUnavailable, Cipher, Secret, SecretError};
pub use self::clock::{Clock, ManualClock, SystemClock};
pub use self::id::{Id, ParseIdError};
pub use self::layout::{
    Layout, LayoutBuilder, LayoutError, LayoutField, NodeFields, NodeFieldsError, ParseLayoutError,
    Parts,
};
pub use self::ring::{Permit, PushError, RingBuffer, RingError};

//! What a backend can do to a slice of blocks.

use super::shared_words::SharedWords;

/// Something to do to blocks.
#[derive(Clone, Copy)]
pub(super) enum Task {
    /// Fill them with the IDs of a section from its beginning; at most as many as it has.
    EncryptRun(SharedWords),
    /// Encrypt each in its place.
    Encrypt,
}

//! The reference algorithm: Randflake 2.1's generator, in miniature.
//!
//! What it does for an ID: read the clock, refuse if it went back, begin the
//! sequence anew if the second is new, refuse if the sequence is used up, and
//! encrypt one block. The original keeps second and sequence in one atomic
//! word; here they are plain fields for a mutex to guard, as a port to most
//! languages would have them.

use std::time::{SystemTime, UNIX_EPOCH};

use ringflake::{Cipher, Id, Layout};

/// A generator for one node.
#[derive(Debug)]
pub(crate) struct Reference {
    layout: Layout,
    cipher: Cipher,
    node: u64,
    /// The tick of the last ID.
    tick: u64,
    /// The next sequence number in it.
    sequence: u64,
}

impl Reference {
    pub(crate) fn new(layout: Layout, cipher: Cipher, node: u64) -> Self {
        Self {
            layout,
            cipher,
            node,
            tick: 0,
            sequence: 0,
        }
    }

    /// The next ID, or `None` if the second is used up or the clock went back.
    pub(crate) fn next_id(&mut self) -> Option<Id> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let now = self.layout.tick_at(now.as_millis() as u64)?;
        if now < self.tick {
            return None;
        }
        if now > self.tick {
            (self.tick, self.sequence) = (now, 0);
        }
        // Fails when the sequence no longer fits its field.
        let raw = self.layout.pack(now, self.node, self.sequence).ok()?;
        self.sequence += 1;
        Some(Id::from_u64(self.cipher.encrypt(raw)))
    }
}

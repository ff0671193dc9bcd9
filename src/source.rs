//! Makes IDs: claims a run of raws from the timeline and encrypts it.

use std::time::Duration;

use crate::cipher::Cipher;
use crate::id::Id;
use crate::timeline::{Refused, Timeline};

/// Makes the IDs of a timeline under one key.
#[derive(Debug)]
pub(crate) struct Source {
    timeline: Timeline,
    cipher: Cipher,
}

impl Source {
    pub(crate) fn new(timeline: Timeline, cipher: Cipher) -> Self {
        Self { timeline, cipher }
    }

    /// Writes new IDs to the front of `out` and returns how many: at least 1, and
    /// fewer than `out.len()` where a run ends. `out` must not be empty.
    ///
    /// Lock-free and without allocation, if the clock is.
    #[inline]
    pub(crate) fn mint(&self, out: &mut [Id]) -> Result<usize, Refused> {
        let run = self.timeline.claim(out.len())?;
        if let [id] = out {
            *id = Id::from_u64(self.cipher.encrypt(run.first));
        } else {
            let ids = Id::as_u64_slice_mut(&mut out[..run.len]);
            self.cipher.encrypt_run(run.first, ids);
        }
        Ok(run.len)
    }

    /// The time from the beginning of the tick of `id` to `now_unix_ms`; zero for a
    /// tick that is borrowed, and so has not begun.
    pub(crate) fn age(&self, id: Id, now_unix_ms: u64) -> Duration {
        let raw = self.cipher.decrypt(id.to_u64());
        let born = match self.timeline.layout().unpack(raw) {
            Ok(parts) => parts.unix_ms,
            // No ID of this layout. The ring holds none of those.
            Err(_) => now_unix_ms,
        };
        Duration::from_millis(now_unix_ms.saturating_sub(born))
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    pub(crate) fn cipher(&self) -> &Cipher {
        &self.cipher
    }
}

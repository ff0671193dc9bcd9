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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::ManualClock;
    use crate::layout::Layout;
    use crate::lease::Lease;
    use crate::timeline::ClaimPolicy;

    const LAYOUT: Layout = Layout::RANDFLAKE;

    fn source() -> Source {
        let lease = Lease::new(LAYOUT, 0..1, 0..10).unwrap();
        let clock = Arc::new(ManualClock::new(LAYOUT.epoch_unix_ms()));
        let policy = ClaimPolicy {
            borrow_limit: 0,
            follows_clock: true,
            serves_the_past: false,
        };
        let timeline = Timeline::new(&lease, 0, clock, policy).unwrap();
        Source::new(timeline, Cipher::plain())
    }

    #[test]
    fn a_mint_says_how_many_it_wrote() {
        let source = source();
        let mut ids = [Id::default(); 200];
        assert_eq!(source.mint(&mut ids[..1]), Ok(1));
        assert_eq!(
            source.mint(&mut ids[1..]),
            Ok(191),
            "up to a multiple of 64"
        );
        assert!(ids[..192].iter().map(|id| id.to_u64()).eq(0..192));
        assert_eq!(ids[192..], [Id::default(); 8]);
    }

    #[test]
    fn an_age_counts_from_the_beginning_of_the_tick() {
        let source = source();
        let id = Id::from_u64(LAYOUT.pack(3, 0, 5).unwrap());
        let at = |ms| source.age(id, LAYOUT.epoch_unix_ms() + ms);
        assert_eq!(at(3_250), Duration::from_millis(250));
        assert_eq!(at(2_000), Duration::ZERO);
    }
}

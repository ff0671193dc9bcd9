//! IDs that wait to be checked.
//!
//! Checking one takes longer than taking it, so under a load it is put off to
//! the next pause. They are kept in chunks that are used again and again: a
//! vector that grows would be copied in the midst of a burst.

use std::collections::VecDeque;

use ringflake::Id;

/// IDs in a chunk: 32 KiB.
const CHUNK: usize = 4096;

/// IDs, first in, first out.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Never empty but for the last one.
    full: VecDeque<Vec<Id>>,
    /// How many of the first chunk are gone.
    gone: usize,
    /// Chunks to be used again.
    spare: Vec<Vec<Id>>,
}

impl Backlog {
    /// How many chunks of IDs are waiting, the last one not counted.
    pub(super) fn chunks(&self) -> usize {
        self.full.len().saturating_sub(1)
    }

    pub(super) fn push(&mut self, mut ids: &[Id]) {
        while !ids.is_empty() {
            let room = self.full.back().map_or(0, |chunk| CHUNK - chunk.len());
            if room == 0 {
                let chunk = self.spare.pop();
                self.full
                    .push_back(chunk.unwrap_or_else(|| Vec::with_capacity(CHUNK)));
            }
            let Some(chunk) = self.full.back_mut() else {
                return;
            };
            let (now, later) = ids.split_at(ids.len().min(CHUNK - chunk.len()));
            chunk.extend_from_slice(now);
            ids = later;
        }
    }

    /// The oldest, at most `most` of them; none if there is none.
    pub(super) fn take(&mut self, most: usize) -> &[Id] {
        // A chunk that is used up is put away one call later: until then its
        // IDs are being read.
        if self.full.front().is_some_and(|it| it.len() == self.gone)
            && let Some(mut chunk) = self.full.pop_front()
        {
            chunk.clear();
            self.spare.push(chunk);
            self.gone = 0;
        }
        let Some(chunk) = self.full.front() else {
            return &[];
        };
        let from = self.gone;
        self.gone = chunk.len().min(from.saturating_add(most));
        &chunk[from..self.gone]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out_in_order(
            steps in prop::collection::vec((0..3 * CHUNK, 0..2 * CHUNK), 1..20),
        ) {
            let mut backlog = Backlog::default();
            let (mut pushed, mut taken) = (0, 0);
            let mut check = |ids: &[Id], pushed: u64| {
                for id in ids {
                    assert_eq!(id.to_u64(), taken);
                    taken += 1;
                }
                assert!(taken <= pushed);
                taken
            };
            for (push, take) in steps {
                let ids: Vec<_> = (pushed..pushed + push as u64).map(Id::from_u64).collect();
                backlog.push(&ids);
                pushed += push as u64;
                let ids = backlog.take(take);
                prop_assert!(ids.len() <= take);
                check(ids, pushed);
            }
            loop {
                let ids = backlog.take(100);
                if ids.is_empty() {
                    break;
                }
                check(ids, pushed);
            }
            prop_assert_eq!(check(&[], pushed), pushed);
        }
    }

    #[test]
    fn chunks_are_used_again() {
        let mut backlog = Backlog::default();
        let ids = [Id::default(); CHUNK];
        for _ in 0..10 {
            backlog.push(&ids);
            assert_eq!(backlog.take(CHUNK).len(), CHUNK);
        }
        assert!(backlog.full.len() + backlog.spare.len() <= 2);
    }
}

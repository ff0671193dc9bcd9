//! Methods of both generators: takes of an exact number of IDs, and what describes a generator
//! or an ID.

use super::cached::CachedGenerator;
use super::direct::DirectGenerator;
use super::empty::TakeError;
use super::id_source::Iter;
use super::inspector::Inspector;
use crate::id::Id;
use crate::layout::{Layout, LayoutError, Parts};
use crate::lease::protocol::LeaseStatus;
use crate::unwind::Undo;

/// For a generator with `take_batch`, `take_all`, `source` and `shared.leases`.
macro_rules! common {
    ($generator:ident, $left:literal) => {
        impl $generator {
            /// Takes exactly `N` IDs into an array, without allocating.
            ///
            /// Costs what [`take_batch`](Self::take_batch) does, and waits or makes the rest
            /// where that gives fewer: a wait of [`OnEmpty::Wait`](crate::OnEmpty::Wait) for
            /// each batch.
            #[doc = $left]
            ///
            /// # Errors
            ///
            /// [`TakeError`] as in [`take`](Self::take), if there were not as many.
            pub fn take_array<const N: usize>(&self) -> Result<[Id; N], TakeError> {
                let mut ids = [Id::default(); N];
                self.take_all(&mut ids)?;
                Ok(ids)
            }

            /// Takes exactly `count` IDs into a new vector.
            ///
            /// Allocates 8 bytes for each before it takes any. Otherwise it is
            /// [`take_array`](Self::take_array). Bound a `count` that comes from outside.
            ///
            /// # Panics
            ///
            /// As `Vec` does, if so much memory can't be had.
            ///
            /// # Errors
            ///
            /// [`TakeError`] as in [`take`](Self::take), if there were not as many.
            #[doc(alias = "take_many")]
            pub fn take_vec(&self, count: usize) -> Result<Vec<Id>, TakeError> {
                let mut ids = vec![Id::default(); count];
                self.take_all(&mut ids)?;
                Ok(ids)
            }

            /// IDs one after the other, without end: each step is a [`take`](Self::take).
            pub fn iter(&self) -> Iter<'_, Self> {
                Iter::new(self)
            }

            /// The tick, node and sequence of `id`; see [`Inspector::inspect`].
            ///
            /// # Errors
            ///
            /// [`LayoutError`] if the ID was not made with this layout and secret, as
            /// far as that shows.
            #[doc(alias = "decode")]
            pub fn inspect(&self, id: Id) -> Result<Parts, LayoutError> {
                self.inspector().inspect(id)
            }

            /// The layout of the IDs.
            pub fn layout(&self) -> &Layout {
                self.source().timeline().layout()
            }

            /// An inspector for this generator's IDs, for use elsewhere.
            pub fn inspector(&self) -> Inspector {
                Inspector::new(*self.layout(), self.source().cipher().clone())
            }

            /// The status of the leases from a store; none if the lease was given.
            pub fn lease_status(&self) -> Option<LeaseStatus> {
                // A child has a copy of the renewal state's lock, but nobody to unlock it.
                if self.is_forked() {
                    None
                } else {
                    self.shared.leases.status()
                }
            }

            /// Whether this is a forked child of the process that built it.
            pub(crate) fn is_forked(&self) -> bool {
                self.source().timeline().is_forked()
            }
        }

        impl<'a> IntoIterator for &'a $generator {
            type Item = Result<Id, TakeError>;
            type IntoIter = Iter<'a, $generator>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }
    };
}

common!(
    CachedGenerator,
    "Where it fails half-way, the IDs that it had go back into the rings, as far as there is room and none is too old."
);
common!(
    DirectGenerator,
    "Where it fails half-way, the IDs that it had are lost, and never issued again."
);

impl CachedGenerator {
    fn take_all(&self, out: &mut [Id]) -> Result<(), TakeError> {
        // Before the first take, for IDs that may have to go back.
        let mut mark = self.filler.recall_mark();
        let mut done = 0;
        while done < out.len() {
            let (had, rest) = out.split_at_mut(done);
            // They also go back if a clock or a hook panics.
            let taken = Undo(move || self.give_back(had, mark));
            let count = self.take_batch(rest)?;
            taken.keep();
            let had = done;
            done += count;
            // It may have waited. What it had by then, and an invalidation recalled, a copy of
            // this process may have too.
            if had > 0 && !self.filler.is_unrecalled(mark) {
                self.count_dropped(done);
                mark = self.filler.recall_mark();
                done = 0;
            }
        }
        Ok(())
    }
}

impl DirectGenerator {
    fn take_all(&self, out: &mut [Id]) -> Result<(), TakeError> {
        let mut done = 0;
        // One bound for all of its sleeps.
        let mut waits_since = None;
        while done < out.len() {
            done += self.mint(&mut out[done..], &mut waits_since)?;
        }
        Ok(())
    }
}

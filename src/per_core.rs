//! One of each for every core, so that threads on different cores share no cache line.
//!
//! A thread uses the item of the core that it runs on at that moment. So two threads meet
//! at an item only where one was moved, or was interrupted, in the middle of its work.
//! There may be fewer items than cores; then some cores share one.
//!
//! `stocks` is for what only one core touches at all.

#[cfg_attr(all(loom, feature = "loom"), path = "per_core/model.rs")]
mod number;
pub(crate) mod stocks;
#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::Index;
use std::sync::Arc;
use std::thread;

use crossbeam_utils::CachePadded;

use self::number::{CoreNumbers, allowed_cores};
#[cfg(feature = "loom")]
pub use self::number::{run_on_core, run_on_cores};

/// The most items there can be: a set of them fits into a word of bits.
pub(crate) const MAX_ITEMS: usize = 64;

/// Numbers of cores that have a place of their own; higher ones wrap around.
const CORES: usize = 1024;

/// An item for each core, or for each of some groups of cores. Clones share the items, and
/// spare their holder a pointer to follow.
#[derive(Debug)]
pub(crate) struct PerCore<T> {
    items: Arc<[CachePadded<T>]>,
    /// By the number of a core, the place of its item; none where that is the number
    /// itself, but for its upper bits.
    places: Option<Arc<[u8; CORES]>>,
    numbers: CoreNumbers,
}

impl<T> PerCore<T> {
    /// Makes `count` items: a power of two up to [`MAX_ITEMS`].
    pub(crate) fn try_new<E>(
        count: usize,
        item: impl FnMut(usize) -> Result<T, E>,
    ) -> Result<Self, E> {
        debug_assert!(count.is_power_of_two() && count <= MAX_ITEMS);
        let items: Result<Vec<T>, E> = (0..count).map(item).collect();
        Ok(Self {
            items: items?.into_iter().map(CachePadded::new).collect(),
            places: places(count, &allowed_cores()).map(Arc::new),
            numbers: CoreNumbers::find(),
        })
    }

    /// The same where an item can always be made.
    pub(crate) fn new(count: usize, mut item: impl FnMut(usize) -> T) -> Self {
        let made = Self::try_new(count, |place| Ok::<_, Infallible>(item(place)));
        made.unwrap_or_else(|impossible| match impossible {})
    }

    /// The place of the item of the core that this thread runs on.
    #[inline]
    pub(crate) fn here(&self) -> usize {
        self.place_of(self.numbers.here())
    }

    /// The same, where that takes no call; else `None`.
    #[inline]
    pub(crate) fn here_at_once(&self) -> Option<usize> {
        self.numbers.here_at_once().map(|core| self.place_of(core))
    }

    #[inline]
    fn place_of(&self, core: usize) -> usize {
        let place = match &self.places {
            None => core,
            Some(places) => usize::from(places[core % CORES]),
        };
        // Changes nothing but a number, and says that the place is there.
        place & (self.items.len() - 1)
    }

    /// How many items there are.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|item| &**item)
    }

    /// All places, from `first` on and round.
    pub(crate) fn places_from(&self, first: usize) -> impl Iterator<Item = usize> + use<T> {
        let count = self.items.len();
        (0..count).map(move |step| (first + step) % count)
    }
}

impl<T> Clone for PerCore<T> {
    fn clone(&self) -> Self {
        Self {
            items: Arc::clone(&self.items),
            places: self.places.clone(),
            numbers: self.numbers,
        }
    }
}

impl<T> Index<usize> for PerCore<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        &self.items[place]
    }
}

/// The number of cores that the process may use at the same time, by its affinity and by
/// its quota of processor time; 1 if the system does not say.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The place of each core: those that the process may run on take turns, so that no two of
/// them share an item while another has none. `None` if their numbers do that by themselves.
fn places(count: usize, allowed: &[usize]) -> Option<[u8; CORES]> {
    let turns = || {
        allowed
            .iter()
            .enumerate()
            .map(|(rank, &core)| (core, rank % count))
    };
    if turns().all(|(core, place)| core % count == place) {
        return None;
    }
    let mut places: [u8; CORES] = std::array::from_fn(|core| (core % count) as u8);
    for (core, place) in turns() {
        places[core % CORES] = place as u8;
    }
    Some(places)
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod placement {
    use std::collections::BTreeSet;
    use std::convert::identity;

    use super::*;
    use crate::placement::{LINE, assert_begins_a_line};

    #[test]
    fn items() {
        for count in [1, 2, 64] {
            let items = PerCore::new(count, identity);
            for item in items.iter() {
                assert_begins_a_line("an item", item);
            }
            let lines: BTreeSet<usize> = items
                .iter()
                .map(|item| std::ptr::from_ref(item).addr() / LINE)
                .collect();
            assert_eq!(lines.len(), count, "no two share a line");
        }
    }
}

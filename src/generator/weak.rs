//! References that don't keep a generator alive.

use std::fmt;
use std::sync::{Arc, Weak};

use super::cached::{CachedGenerator, Shared};
use crate::fill::Filler;

/// A [`CachedGenerator`] that this reference does not keep alive: for a monitor or a cache
/// that outlives the service.
///
/// Made by [`CachedGenerator::downgrade`].
#[derive(Clone)]
pub struct WeakGenerator {
    filler: Weak<Filler>,
    shared: Weak<Shared>,
}

impl WeakGenerator {
    /// The generator, if a clone of it or one of its handles is still there.
    ///
    /// The returned generator counts as a clone: a [`shutdown`](CachedGenerator::shutdown)
    /// meanwhile finds the generator in use, and dropping it last ends the generator.
    pub fn upgrade(&self) -> Option<CachedGenerator> {
        // The filler outlives what is shared, whose end joins threads. So where this finds
        // nothing there is nothing to join here.
        let filler = self.filler.upgrade()?;
        let shared = self.shared.upgrade()?;
        Some(CachedGenerator::of(filler, shared))
    }
}

impl fmt::Debug for WeakGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakGenerator").finish_non_exhaustive()
    }
}

impl CachedGenerator {
    /// A reference that does not keep the generator alive.
    ///
    /// # Examples
    ///
    /// ```
    /// # use ringflake::{CachedGenerator, Layout, StaticLease};
    /// # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 96..128);
    /// # let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
    /// let weak = ids.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(ids);
    /// assert!(weak.upgrade().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn downgrade(&self) -> WeakGenerator {
        WeakGenerator {
            filler: Arc::downgrade(&self.filler),
            shared: Arc::downgrade(&self.shared),
        }
    }
}

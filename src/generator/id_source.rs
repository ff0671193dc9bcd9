//! The trait for sources of IDs.

use std::fmt;
use std::iter::FusedIterator;
use std::rc::Rc;
use std::sync::Arc;

use super::cached::CachedGenerator;
use super::direct::DirectGenerator;
use super::empty::TakeError;
use crate::id::Id;
use crate::timeline::Refused;

/// A source of unique IDs: what a service asks for that should also run without a ring.
///
/// [`CachedGenerator`] is one, and so what `local` returns; [`DirectGenerator`]
/// is one, and a [`Handle`](crate::Handle) in a `RefCell` or a `Mutex`, since its takes need it
/// alone.
///
/// The trait can be made into an object, `Arc<dyn IdSource + Send + Sync>`. `Send` and `Sync`
/// have to be named, because a `RefCell<Handle>` is a source, too, of one thread. A call through
/// the object costs a nanosecond or two more than one of the generator itself.
///
/// # Examples
///
/// ```
/// use ringflake::{CachedGenerator, Id, IdSource, Layout, StaticLease, TakeError};
///
/// fn open_account(ids: &dyn IdSource, name: &str) -> Result<(Id, String), TakeError> {
///     Ok((ids.take()?, name.to_owned()))
/// }
///
/// let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 4_000..4_032);
/// let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
/// assert_ne!(open_account(&ids, "a")?.0, open_account(&ids, "b")?.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A test of that service can use a source of its own, which counts or fails:
///
/// ```
/// use std::cell::Cell;
/// use ringflake::{Id, IdSource, TakeError};
///
/// struct Counter(Cell<u64>);
///
/// impl IdSource for Counter {
///     fn take(&self) -> Result<Id, TakeError> {
///         let next = self.0.get().checked_add(1).ok_or(TakeError::Empty)?;
///         self.0.set(next);
///         Ok(Id::from_u64(next))
///     }
/// }
///
/// assert_eq!(Counter(Cell::new(0)).take(), Ok(Id::from_u64(1)));
/// assert_eq!(Counter(Cell::new(u64::MAX)).take(), Err(TakeError::Empty));
/// ```
pub trait IdSource {
    /// Takes one ID.
    ///
    /// # Errors
    ///
    /// [`TakeError`] if there is none to be had; [`TakeError::retry_after`] says whether
    /// another call may help.
    fn take(&self) -> Result<Id, TakeError>;

    /// Fills `out` from the front and returns how many IDs that were: all of `out`, or fewer
    /// where they ran out, but at least one unless `out` is empty.
    ///
    /// # Errors
    ///
    /// [`TakeError`] if there was not even one.
    fn take_batch(&self, out: &mut [Id]) -> Result<usize, TakeError> {
        fill_one_by_one(out, || self.take())
    }
}

/// Fills `out` from the front with what `take` returns, and returns how many IDs that were.
pub(super) fn fill_one_by_one(
    out: &mut [Id],
    mut take: impl FnMut() -> Result<Id, TakeError>,
) -> Result<usize, TakeError> {
    for (done, id) in out.iter_mut().enumerate() {
        match take() {
            Ok(taken) => *id = taken,
            // IDs from before a clock or a hook forked belong to the parent.
            Err(error @ TakeError::Refused(Refused::Forked)) => return Err(error),
            Err(error) if done == 0 => return Err(error),
            Err(_) => return Ok(done),
        }
    }
    Ok(out.len())
}

impl IdSource for CachedGenerator {
    #[inline]
    fn take(&self) -> Result<Id, TakeError> {
        self.take()
    }

    #[inline]
    fn take_batch(&self, out: &mut [Id]) -> Result<usize, TakeError> {
        self.take_batch(out)
    }
}

impl IdSource for DirectGenerator {
    #[inline]
    fn take(&self) -> Result<Id, TakeError> {
        self.take()
    }

    #[inline]
    fn take_batch(&self, out: &mut [Id]) -> Result<usize, TakeError> {
        self.take_batch(out)
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {
        $(impl<S: IdSource + ?Sized> IdSource for $pointer {
            #[inline]
            fn take(&self) -> Result<Id, TakeError> {
                (**self).take()
            }

            #[inline]
            fn take_batch(&self, out: &mut [Id]) -> Result<usize, TakeError> {
                (**self).take_batch(out)
            }
        })*
    };
}

forward!(&S, Box<S>, Rc<S>, Arc<S>);

/// IDs of a source one after the other, without end: each is a [`take`](IdSource::take).
///
/// Made by [`CachedGenerator::iter`] and [`DirectGenerator::iter`]. It goes on after an
/// error, so a loop that does not end at one may spin.
pub struct Iter<'a, S: ?Sized> {
    source: &'a S,
}

impl<'a, S: IdSource + ?Sized> Iter<'a, S> {
    pub(super) fn new(source: &'a S) -> Self {
        Self { source }
    }
}

impl<S: IdSource + ?Sized> Iterator for Iter<'_, S> {
    type Item = Result<Id, TakeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.source.take())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

// It never ends, and so never begins again.
impl<S: IdSource + ?Sized> FusedIterator for Iter<'_, S> {}

impl<S: ?Sized> Clone for Iter<'_, S> {
    fn clone(&self) -> Self {
        Self {
            source: self.source,
        }
    }
}

impl<S: ?Sized> fmt::Debug for Iter<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}

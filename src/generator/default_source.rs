//! The one source of a process.

use std::error::Error;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::empty::TakeError;
use super::id_source::IdSource;
use crate::id::Id;

type Shared = Box<dyn IdSource + Send + Sync>;

static DEFAULT: OnceLock<Shared> = OnceLock::new();

/// Makes `source` the one that [`id`] takes from, for the rest of the process.
///
/// For a program, early in `main`; a library takes an [`IdSource`] from its caller instead.
/// Any source will do: a generator, or in a test a source of its own.
///
/// A static is never dropped. So leases from a store are not released when the process
/// ends, and their nodes are free once the leases run out. A program that wants to
/// [`shutdown`](crate::CachedGenerator::shutdown) keeps its generator in a variable. One
/// that forks calls this in each child, after the fork, and not in the parent.
///
/// # Errors
///
/// [`AlreadyInitialised`] at the second call, with the source that was not taken.
///
/// # Examples
///
/// ```
/// use ringflake::{CachedGenerator, Layout, StaticLease, TakeError};
///
/// assert_eq!(ringflake::id(), Err(TakeError::NotInitialised));
///
/// let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 4_032..4_064);
/// let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
/// ringflake::init(ids)?;
/// assert_ne!(ringflake::id()?, ringflake::id()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn init<S>(source: S) -> Result<(), AlreadyInitialised<S>>
where
    S: IdSource + Send + Sync + 'static,
{
    /// One call at a time. It guards nothing that a panic could spoil.
    static CALLS: Mutex<()> = Mutex::new(());

    let _only = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    if DEFAULT.get().is_some() {
        return Err(AlreadyInitialised { source });
    }
    DEFAULT.get_or_init(|| Box::new(source));
    Ok(())
}

/// Takes an ID from the process's one source, the one that [`init`] was given.
///
/// Lock-free as that source is; a nanosecond or two more than its own `take`.
///
/// # Errors
///
/// [`TakeError::NotInitialised`] before [`init`], and then as the source's.
#[inline]
pub fn id() -> Result<Id, TakeError> {
    DEFAULT.get().ok_or(TakeError::NotInitialised)?.take()
}

/// A second [`init`]: the process has a source already.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlreadyInitialised<S> {
    /// The source that was not taken.
    pub source: S,
}

impl<S> fmt::Debug for AlreadyInitialised<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlreadyInitialised").finish_non_exhaustive()
    }
}

impl<S> fmt::Display for AlreadyInitialised<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the default source of IDs is already set, and stays: call ringflake::init once, early \
             in main; in a program that forks, call it in each child and not in the parent",
        )
    }
}

impl<S> Error for AlreadyInitialised<S> {}

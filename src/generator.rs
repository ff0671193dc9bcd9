//! The generators, and their parts.

mod backfill;
mod backfill_builder;
mod backing;
mod builder;
mod cached;
mod check;
mod common;
mod counters;
mod default_source;
mod direct;
mod direct_builder;
mod dry;
mod empty;
mod error;
mod figures;
#[cfg(feature = "sqlite")]
mod from_local;
mod grant_lanes;
mod handle;
mod id_source;
mod inspector;
mod lease_hold;
mod lease_options;
mod options;
mod setup;
mod stats;
mod take_async;
mod when_ready;

pub use self::backfill::{BackfillError, BackfillGenerator};
pub use self::backfill_builder::BackfillGeneratorBuilder;
pub use self::builder::CachedGeneratorBuilder;
pub use self::cached::{CachedGenerator, WeakGenerator};
pub use self::check::{BuildCheck, LeaseCheck};
pub use self::default_source::{AlreadyInitialised, id, init};
pub use self::direct::{ClockPolicy, DirectGenerator};
pub use self::direct_builder::DirectGeneratorBuilder;
pub use self::empty::{OnEmpty, RingEmpty, TakeError};
pub use self::error::BuildError;
#[cfg(feature = "sqlite")]
pub use self::from_local::{local, local_in};
pub use self::handle::Handle;
pub use self::id_source::{IdSource, Iter};
pub use self::inspector::Inspector;
pub use self::lease_hold::Shutdown;
pub use self::lease_options::LeaseSource;
pub use self::stats::{FillCounts, Stats, TakeFailures};
pub use self::take_async::{TakeAsync, TakeBatchAsync};
pub use self::when_ready::WhenReady;

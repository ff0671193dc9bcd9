//! The generators, and what they are built from.

mod builder;
mod cached;
mod counters;
mod direct;
mod empty;
#[cfg(feature = "sqlite")]
mod from_local;
mod handle;
mod inspector;
mod options;
mod setup;
mod shutdown;
mod stats;
mod tenancy;

pub use self::builder::CachedGeneratorBuilder;
pub use self::cached::CachedGenerator;
pub use self::direct::{ClockPolicy, DirectGenerator, DirectGeneratorBuilder};
pub use self::empty::{OnEmpty, RingEmpty, TakeError};
pub use self::handle::Handle;
pub use self::inspector::Inspector;
pub use self::setup::{BuildError, LeaseSource};
pub use self::shutdown::Shutdown;
pub use self::stats::{FillCounts, Stats};

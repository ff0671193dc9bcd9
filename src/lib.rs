//! Encrypted, unique 64-bit IDs from a lock-free ring buffer.
//!
//! A *node* is a number that one process owns. A *tick* is the layout's unit of time, one second
//! by default. To *borrow* is to issue IDs of ticks that lie ahead of the clock. A *namespace* is
//! a set of IDs that never collide: one layout, one secret, one record of leases.
//!
//! Producer threads fill rings ahead of time with IDs that are borrowed from future ticks and
//! already encrypted with SPARX-64. Consumers take them without waiting, each core from a ring
//! of its own. A [`Lease`] grants exclusive use of a range of nodes over a range of ticks. While
//! the store of leases keeps its records, that makes the IDs unique, whatever any clock shows.
//!
//! ```no_run
//! # #[cfg(feature = "sqlite")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // With the feature `sqlite`. Until ringflake is on crates.io, with a checkout beside your
//! // program: `cargo add --path ../ringflake --features sqlite`.
//! let ids = ringflake::local("orders")?;
//!
//! let id = ids.take()?;
//! println!("{id}, {}", id.to_i64());
//! assert_eq!(id.to_string().parse(), Ok(id));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sqlite"))]
//! # fn main() {}
//! ```
//!
//! Up to 4,096 processes of one user can do that at the same time, and can be killed and restarted
//! without duplicates. Processes on several machines share a [store](lease::open) and a secret. A
//! process whose nodes are assigned by other means uses a [`StaticLease`].
//!
//! # What is here
//!
//! | you want | use |
//! |---|---|
//! | **To make IDs** | |
//! | on one machine without any set-up | the function [`local()`][local-fn]; for more choice the builder [`Local`][local-type] |
//! | in a few nanoseconds, from any thread | [`CachedGenerator::take`]; from a task: [`take_async`](CachedGenerator::take_async) |
//! | many at once | [`CachedGenerator::take_batch`] |
//! | at the least cost, in a thread that takes often | [`CachedGenerator::handle`] |
//! | without threads or a ring, each ID with the time of its take | [`DirectGenerator`] |
//! | of past moments, for an import | [`BackfillGenerator`] |
//! | in generic code, from any kind of generator | [`IdSource`] |
//! | from one global generator | [`init()`], [`id()`] |
//! | from a configuration that is checked first | [`CachedGeneratorBuilder::check`] |
//! | **To read and write IDs** | |
//! | as text, and as a signed number | [`Id`] |
//! | as text that sorts as the number does | [`FixedText`] |
//! | as text with the name of their kind, `user_3ip9iuvinajdb` | [`TypedId`] |
//! | taken apart into time, node and sequence | [`Inspector`] |
//! | as bounds of a query, to select rows by the time in their ID | [`Layout::ids_between`], for plain IDs |
//! | with other widths, ticks or epoch | [`Layout`]; `ringflake layout` finds one |
//! | under your own key | [`Secret`], [`Cipher`] |
//! | shown outside, while plain or auto-increment keys stay inside | [`Facade`] |
//! | positive as signed numbers, or exact in JavaScript | [`IdWidth`] |
//! | **To own nodes** | |
//! | from a database that all processes share | [`lease::open`], [`lease_store`](CachedGeneratorBuilder::lease_store) |
//! | from a store of your own | [`LeaseStore`], [`lease`] |
//! | without a store, on your own guarantee | [`StaticLease`] |
//! | **To shape the ring** | |
//! | when it is filled | [`PaddingFill`], [`ThresholdFill`], [`ScheduledFill`] |
//! | whether takes help to fill one that is nearly empty | [`AssistFill`] |
//! | how many rings there are, and in which order IDs come | [`stripes`](CachedGeneratorBuilder::stripes) |
//! | whether each core has a small buffer in front of its ring, so that most takes need no locked instruction | [`CoreStocks`] |
//! | what a take does when the ring is empty | [`OnEmpty`] |
//! | how full and busy it is | [`Stats`] |
//! | how large it has to be for a load, and how many nodes | [`plan::capacity_for`], [`plan::nodes_for`] |
//! | the ring alone, for IDs of your own | [`RingBuffer`] |
//! | **When something is refused** | |
//! | when a generator is built | [`BuildError`] |
//! | at a take | [`TakeError`], [`Refused`] |
//!
//! # Guides
//!
//! | guide | answers |
//! |---|---|
//! | [`lease::guide::promises`] | what is promised, and on which conditions |
//! | [`lease::guide::lease_sizing`] | how to choose the number of blocks, the lease duration and the horizon |
//! | [`lease::guide::tier`] | how processes start while the store is down |
//! | [`lease::guide::runbook`] | what to do when something is wrong, with a page for each store |
//! | [`guide::production`] | a service with readiness, metrics and an orderly shutdown |
//! | [`guide::async_code`] | what to call in tasks |
//! | [`guide::keys`] | which kind of ID to use where, and the cost of keys in a B-tree |
//! | [`guide::loom`] | how to model threads of your own |
//! | [`guide::tuning`] | which ring and how many nodes a load needs |
//! | [`guide::monitoring`] | what to monitor, and when to wake somebody |
//! | [`guide::serve`] | how to run and size the server, `ringflake serve`, and how to write clients |
//!
//! # How it works
//!
//! A *raw* is `tick | node | sequence`, high to low, as its [`Layout`] says. The *timeline* moves
//! one cursor forward over a lease's raws, and claims them in *runs* of one tick and node. A
//! raw is claimed once, whatever the clock does. A [`Cipher`] turns raws into IDs one to one.
//! A *stripe* is a [`RingBuffer`] for the takes of one core. Fill policies decide when producer
//! threads fill stripes. [`OnEmpty`] decides what a take does when all stripes are empty.
//!
//! ```text
//!          Clock                        fill policies
//!            |                                |
//!            v                                v
//! Lease -> timeline -runs-> Cipher -IDs-> producer threads -IDs-> stripes -take-> Id
//! ```
//!
//! A take reads another stripe only if its own is empty. While none is empty, takes on different
//! cores write to no shared cache line. IDs are not ordered across stripes.
//!
//! A lease of N nodes has N x 2^sequence_bits IDs for each tick. That is the sustained ceiling:
//! 131,072 IDs a second for each node with [`Layout::RANDFLAKE`]. Full stripes give bursts far above it,
//! borrowed from future ticks up to the borrow limit.
//!
//! # Features
//!
//! All features are off by default and additive:
//!
//! | feature | adds |
//! |---|---|
//! | `sqlite` | [`local()`][local-fn], and the [store of leases](lease::open) in a file |
//! | `postgres`, `mysql`, `redis`, `etcd` | a [store of leases](lease::open) each, with its driver |
//! | `conformance` | the suite for a store of your own |
//! | `sqlx`, `sqlx-postgres`, `diesel`, `postgres-types`, `rusqlite` | [`Id`] and [`TypedId`] in queries, as `BIGINT` |
//! | `serde` | serialization of [`Id`], [`TypedId`], [`Layout`], [`Parts`], [`Stats`]; and the module `serde`, by which a field chooses text or a number |
//! | `getrandom` | [`Secret`] from the operating system's random source |
//! | `js-safe` | [`IdWidth::JsSafe`] |
//! | `metrics` | [`Stats`] and lease figures, published through the crate `metrics` |
//! | `loom` | only with `--cfg loom`: [models](guide::loom) of your own code with a generator in it |
//!
//! Don't write `use ringflake::*`: its modules `serde` and `metrics` make the crates of those names
//! ambiguous, which then have to be written `::serde` and `::metrics`.
//!
//! # Unsafe
//!
//! | module | what for |
//! |---|---|
//! | `fork`, `ring`, `generator` | pages that a forked child reads as zero, and the types stored there |
//! | `ring::memory` | to ask for huge pages |
//! | `per_core` | the core that a thread runs on, and restartable sequences |
//! | `clock` | to read the coarse clock |
//! | `id` | to view IDs as numbers in place |
//! | `cipher` | the vector backends |
//! | `cipher::secret`, private files of `lease` | the user that this process runs as |
//! | the stores of `lease` for SQLite and MySQL | a file's identity, a file in memory, options of a socket |
//!
#![cfg_attr(feature = "sqlite", doc = "[local-fn]: local()\n[local-type]: Local")]
#![cfg_attr(
    not(feature = "sqlite"),
    doc = "[local-fn]: #features\n[local-type]: #features"
)]
// docs.rs says beside each item which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cipher;
mod clock;
mod describe;
mod events;
mod facade;
mod fill;
mod fork;
mod generator;
pub mod guide;
mod id;
mod interop;
mod layout;
pub mod lease;
#[cfg(feature = "sqlite")]
pub mod local;
#[cfg(all(test, feature = "sqlite"))]
mod message_tests;
#[cfg(feature = "metrics")]
pub mod metrics;
mod per_core;
#[cfg(test)]
mod placement;
pub mod plan;
mod ring;
#[cfg(feature = "serde")]
pub mod serde;
mod source;
mod sync;
mod timeline;
mod typed_id;
mod unwind;
mod wakers;

#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

#[doc(hidden)]
pub use self::cipher::shell_quoted;
pub use self::cipher::{
    Backend, BackendUnavailable, Cipher, IdWidth, IdWidthUnavailable, Secret, SecretError,
};
pub use self::clock::{Clock, ManualClock, SystemClock};
pub use self::facade::{Facade, FacadeError, PublicId};
#[cfg(feature = "loom")]
#[doc(hidden)]
pub use self::fill::model::{Stripes, StripesReady, StripesTake, WaitingFuture, WaitingRoom};
pub use self::fill::{
    AssistFill, PaddingFill, PolicyError, RingFull, ScheduledFill, ThresholdFill,
};
pub use self::generator::{
    AlreadyInitialised, BackfillError, BackfillGenerator, BackfillGeneratorBuilder, BuildCheck,
    BuildError, CachedGenerator, CachedGeneratorBuilder, ClockPolicy, DirectGenerator,
    DirectGeneratorBuilder, FillCounts, Handle, IdSource, Inspector, Iter, LeaseCheck, LeaseSource,
    OnEmpty, RingEmpty, Shutdown, Stats, TakeAsync, TakeBatchAsync, TakeError, TakeFailures,
    WeakGenerator, WhenReady, id, init,
};
#[cfg(feature = "sqlite")]
pub use self::generator::{local, local_in};
pub use self::id::{FixedText, Id, IdLike, ParseIdError};
pub use self::layout::{Layout, LayoutBuilder, LayoutError, LayoutField, ParseLayoutError, Parts};
pub use self::lease::{Lease, LeaseError, LeaseStore, StaticLease};
#[cfg(feature = "sqlite")]
pub use self::local::{Local, LocalError};
pub use self::per_core::stocks::CoreStocks;
#[cfg(feature = "loom")]
#[doc(hidden)]
pub use self::per_core::{run_on_core, run_on_cores};
pub use self::ring::{Permit, PushError, RingBuffer, RingError};
#[cfg(feature = "loom")]
#[doc(hidden)]
pub use self::timeline::model::{LeaseTimeline, ModelLane};
pub use self::timeline::{RefusalCounts, Refused};
pub use self::typed_id::{IdKind, ParseTypedIdError, TypedId};

//! Leases: the right to issue certain IDs.
//!
//! A lease is ownership of a rectangle of ID space: a range of nodes times a
//! half-open interval of ticks. It is no promise about time. Its holder may
//! issue every ID whose node and tick lie inside, at any moment. So borrowing
//! IDs from the future is safe as long as the rectangle reaches that far, and a
//! wrong clock can't make a duplicate.
//!
//! A [`Lease`] comes from one of two places:
//! * [`StaticLease`], where the caller vouches that nobody else uses the nodes, and
//!   the process checks the part of it that is its own;
//! * a [`LeaseStore`], which hands out disjoint rectangles to any number of
//!   processes and machines.
//!
//! # The protocol of a store
//! Nodes are leased in aligned [`Block`]s of 2^b. For each block the store keeps
//! a high-water mark, `hwm_end`: the end of the last interval that it gave away.
//! It persists the mark before it answers, and a generator serves below it; the
//! timestamp oracles of Percolator and of TiDB's placement driver work in this
//! way. These rules make the rectangles disjoint:
//!
//! | | rule |
//! |---|---|
//! | S1 | A block's next grant starts at or after the end of the one before. Its mark never decreases, not even at a release. |
//! | S2 | An ID is issued only from a rectangle whose positive reply arrived. A lost or ambiguous reply grants nothing. |
//! | S3 | One forward-only cursor walks each grant. |
//! | S4 | One live copy of the process memory uses a grant. |
//! | S5 | A namespace has one layout and one secret for ever; see [`Fingerprint`]. |
//! | S6 | The store is linearizable, and durable before it answers. |
//! | S7 | No grant and no renewal ends later than the store's time plus the horizon. |
//! | S8 | A store that knows less than it has confirmed grants nothing until the floor lies above all that it may have forgotten. |
//!
//! S1 to S6 need no assumption on clocks. S7 is for the day on which S6 is
//! broken: a backup is restored, or a replica takes over that lacks the latest
//! writes. The store then shows another [`Incarnation`] than the one on record,
//! and before anything is granted the namespace's floor rises above every
//! interval that a lost grant can reach; see [`StoreLimits`]. A copy, beside which the original may
//! still grant, grants nothing until somebody adopts it.
//!
//! Rows that were put back in a running server show no such change. But the processes
//! know what the store confirmed to them. Each request for blocks carries that, as
//! [`Confirmed`]. A store that finds less on record raises the floor in that very step,
//! and answers [`HistoryLost`](StoreError::HistoryLost). This needs a process that was
//! confirmed something since the lost state, that lives, and whose request takes effect
//! first. A process that is granted a block before is not protected.
//!
//! A block is [`Quarantined`] if no store can have written its record: it is not granted
//! until [`repair`](LeaseStore::repair) has put its mark above all that can have been
//! granted of it. The other blocks go on.
//!
//! A request can also be for ticks that are over, [`Acquire::past`]: for an import, whose IDs
//! carry the time of its rows. Its grant keeps the same rules. It is given of blocks whose mark
//! lies before it, and not below the floor, and moves the mark; so nothing on record
//! distinguishes it. A grant of the present that a store has lost is overtaken by time; one of
//! the past is not, and the floor must stay above it for ever.
//!
//! A [`TierStore`] stands between the processes of a machine and a store. It adds one
//! rule:
//!
//! | | rule |
//! |---|---|
//! | S9 | A sub-grant lies inside one upstream grant whose reply was durable before; marks never go back on either side. |
//!
//! # Where to read on
//! This module has what a lease is. The private module `client` has the side of a process: the
//! [`protocol`] says what it asks of a store, and when. `store` has the side of a store: its
//! records and rules, the [`table`] that a backend implements, and the backends.
//!
//! The rules themselves are methods of [`StoreRecord`], so that every store decides in the
//! same way. [`Leases`] has all operations of a store over any [`Table`](store::table::Table); the
//! head of [`table`] proves that S1 to S8 follow from compare-and-swap. [`MemoryStore`] is the reference.

mod block;
mod claim;
mod client;
mod confirmed;
mod error;
mod events;
mod fingerprint;
mod fixed;
mod grant;
pub mod guide;
mod holder;
mod namespace;
mod rectangle;
mod registry;
mod store;

pub use self::block::{Block, BlockState, Epoch};
pub(crate) use self::claim::{Claimed, Denied, Position};
pub(crate) use self::client::failure::StoreHealth;
pub use self::client::failure::{StoreFailure, StoreFailureKind};
#[doc(inline)]
pub use self::client::protocol;
#[doc(inline)]
pub use self::client::protocol::{
    FenceCounts, GrantState, GrantStatus, LeaseCounts, LeaseHealth, LeasePlan, LeaseStatus,
    PlanError, RenewalCounts,
};
pub(crate) use self::client::renewal::{
    FirstLease, GrantSink, RenewalStartError, RenewalThread, WaitHook, may_succeed_later,
};
pub use self::confirmed::Confirmed;
pub use self::error::{Fence, StoreError};
pub use self::fingerprint::Fingerprint;
pub use self::fixed::StaticLease;
pub use self::grant::Grant;
pub use self::holder::Holder;
pub use self::namespace::{Namespace, NamespaceError};
pub use self::rectangle::{Lease, LeaseError};
pub(crate) use self::registry::{Conflict, Rectangle, Space};
#[cfg(feature = "etcd")]
pub use self::store::backends::etcd::EtcdStore;
pub use self::store::backends::memory::MemoryStore;
#[cfg(feature = "mysql")]
pub use self::store::backends::mysql::MysqlStore;
pub use self::store::backends::open::open;
#[cfg(feature = "postgres")]
pub use self::store::backends::postgres::PostgresStore;
#[cfg(feature = "redis")]
pub use self::store::backends::redis::RedisStore;
#[cfg(feature = "sqlite")]
pub use self::store::backends::sqlite::SqliteStore;
#[cfg(feature = "sqlite")]
pub(crate) use self::store::backends::sqlite::past;
pub use self::store::backends::tier::{MemoryTier, TierSnapshot, TierStore};
#[cfg(feature = "conformance")]
#[doc(inline)]
pub use self::store::conformance;
#[doc(hidden)]
pub use self::store::connect::private_file::read as read_private_file;
pub use self::store::key::StoreKey;
pub use self::store::lease_store::LeaseStore;
pub use self::store::leases::Leases;
pub use self::store::limits::StoreLimits;
pub use self::store::obstacle::Obstacle;
pub use self::store::options::{OpenError, OpenOptions};
pub use self::store::quarantine::Quarantined;
#[cfg(all(test, feature = "sqlite"))]
pub(crate) use self::store::quarantine::fault;
pub use self::store::record::{Incarnation, LowestMarks, MarkWindow, StoreRecord};
pub use self::store::report::{Durability, Listing, StoreReport};
pub use self::store::request::{Acquire, Floor, History, Init, MAX_ACQUIRE, Renew};
#[doc(inline)]
pub use self::store::table;
pub use self::store::table::memory::MemorySnapshot;
#[cfg(feature = "sqlite")]
#[doc(hidden)]
pub use self::store::table::sqlite::location::refuse_foreign;
#[cfg(feature = "sqlite")]
pub(crate) use self::store::table::sqlite::location::sync;

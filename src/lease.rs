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
//! interval that a lost grant can reach; see [`StoreLimits`].
//!
//! Rows that were put back in a running server show no such change. But the processes
//! know what the store confirmed to them. Each request for blocks carries that, as
//! [`Confirmed`]. A store that finds less on record raises the floor in that very step,
//! and answers [`HistoryLost`](StoreError::HistoryLost). This needs a process that was
//! confirmed something since the lost state, that lives, and whose request comes first. A
//! process that asks before it is not protected.
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
//! The rules themselves are methods of [`StoreRecord`], so that every store decides in the
//! same way. [`Leases`] has all operations of a store over any [`Table`](table::Table); the
//! head of [`table`] proves that S1 to S8 follow from compare-and-swap. [`MemoryStore`] is the reference.

mod batch;
mod block;
mod claim;
mod confirmed;
#[cfg(feature = "conformance")]
pub mod conformance;
#[allow(dead_code, reason = "used by the stores that are features")]
mod connect;
mod error;
mod events;
mod failure;
mod fingerprint;
mod fixed;
mod format;
mod grant;
pub mod guide;
mod holder;
mod key;
mod leases;
mod limits;
mod namespace;
mod obstacle;
mod options;
pub mod protocol;
mod quarantine;
mod random;
mod record;
mod rectangle;
mod registry;
mod renewal;
mod report;
mod request;
mod show;
mod store;
mod stores;
pub mod table;
mod voucher;

pub use self::block::{Block, BlockState, Epoch};
pub(crate) use self::claim::{Claimed, Denied, Position};
pub use self::confirmed::Confirmed;
#[doc(hidden)]
pub use self::connect::private_file::read as read_private_file;
pub use self::error::{Fence, StoreError};
pub(crate) use self::failure::StoreHealth;
pub use self::failure::{StoreFailure, StoreFailureKind};
pub use self::fingerprint::Fingerprint;
pub use self::fixed::StaticLease;
pub use self::grant::Grant;
pub use self::holder::Holder;
pub use self::key::StoreKey;
pub use self::leases::Leases;
pub use self::limits::StoreLimits;
pub use self::namespace::{Namespace, NamespaceError};
pub use self::obstacle::Obstacle;
pub use self::options::{OpenError, OpenOptions};
#[doc(inline)]
pub use self::protocol::{
    ClockOffset, Expiry, FenceCounts, GrantState, GrantStatus, LeaseCounts, LeaseHealth, LeasePlan,
    LeaseStatus, PlanError, RenewalCounts, RenewalOutcome,
};
pub use self::quarantine::Quarantined;
pub use self::record::{Incarnation, LowestMarks, MarkWindow, StoreRecord};
pub use self::rectangle::{Lease, LeaseError};
pub(crate) use self::registry::{Conflict, Rectangle, Space};
pub use self::renewal::Renewal;
pub(crate) use self::renewal::{
    FirstLease, GrantSink, RenewalStartError, RenewalThread, WaitHook, may_succeed_later,
};
pub use self::report::{Durability, Listing, StoreReport};
pub use self::request::{Acquire, Floor, History, Init, MAX_ACQUIRE, Renew};
pub use self::store::LeaseStore;
#[cfg(feature = "etcd")]
pub use self::stores::etcd::EtcdStore;
pub use self::stores::memory::MemoryStore;
#[cfg(feature = "mysql")]
pub use self::stores::mysql::MysqlStore;
pub use self::stores::open::open;
#[cfg(feature = "postgres")]
pub use self::stores::postgres::PostgresStore;
#[cfg(feature = "redis")]
pub use self::stores::redis::RedisStore;
#[cfg(feature = "sqlite")]
pub use self::stores::sqlite::SqliteStore;
#[cfg(feature = "sqlite")]
pub(crate) use self::stores::sqlite::past;
pub use self::stores::tier::{MemoryTier, TierSnapshot, TierStore};
pub use self::table::memory::MemorySnapshot;
#[cfg(feature = "sqlite")]
pub(crate) use self::table::sqlite::location::{refuse_foreign, sync};

//! The store that keeps everything in this process.

use std::sync::Arc;

use crate::clock::Clock;
use crate::lease::block::Block;
use crate::lease::namespace::Namespace;
use crate::lease::store::leases::Leases;
use crate::lease::store::record::Incarnation;
use crate::lease::store::table::Key;
use crate::lease::store::table::memory::{MemorySnapshot, MemoryTable};

/// A store in the memory of one process: the reference for all others, and what
/// tests use.
///
/// Clones share one server, as connections to a database do. It forgets
/// everything with the last of them, so it keeps the generators of one process
/// apart and no more.
///
/// For tests of failures, the server's clock is given from outside, its
/// incarnation can be changed, and its state can be copied and put back: an
/// older state put back is a stale replica that took over, and the same state in
/// another server is the primary that it superseded.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use ringflake::{Layout, ManualClock};
/// use ringflake::lease::{
///     Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, Renew,
/// };
///
/// let now = 1_760_000_000_000;
/// let mut store = MemoryStore::new(Arc::new(ManualClock::new(now)));
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// store.init(&orders, &Init::new(History::New, now))?;
///
/// // One block of 32 nodes, for 600 ticks of one second.
/// let grants = store.acquire(&orders, &Acquire::new(1, 600, now))?;
/// let lease = grants[0].to_lease(&orders)?;
/// assert_eq!(lease.nodes(), 0..32);
/// assert_eq!(lease.ticks(), 30_000_000..30_000_600);
///
/// // Half a minute later: let it reach 600 ticks ahead again.
/// let end = store.renew(&orders, &Renew::new(&grants[0], 30_000_630, now + 30_000))?;
/// assert_eq!(end, 30_000_630);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type MemoryStore = Leases<MemoryTable>;

impl MemoryStore {
    /// An empty store whose server has this clock. Blocks are granted in order, the lowest
    /// free one first.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::in_order(MemoryTable::new(clock))
    }

    /// Changes the server's incarnation, as a restart from other data would.
    pub fn set_incarnation(&self, incarnation: Incarnation) {
        self.table().set_incarnation(incarnation);
    }

    /// Copies the contents of the server: every namespace with its record and blocks,
    /// but not the server's own incarnation and clock.
    pub fn snapshot(&self) -> MemorySnapshot {
        self.table().snapshot()
    }

    /// Puts back a copy of a server's contents. Later changes are forgotten.
    ///
    /// The server's incarnation stays as it is. Real servers change it at such a
    /// moment; call [`set_incarnation`](Self::set_incarnation) for that.
    pub fn restore(&self, snapshot: &MemorySnapshot) {
        self.table().restore(snapshot);
    }

    /// Replaces the record of a block by something that no rule writes, as a hand or a
    /// bad disk may; false where the block was never granted.
    pub fn damage(&self, namespace: &Namespace, block: Block) -> bool {
        self.table().damage(&Key::block(namespace.name(), block))
    }
}

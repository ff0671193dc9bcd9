//! Blocks of nodes, and their state in a store.

use std::fmt;

use crate::lease::holder::Holder;

/// The index of an aligned block of nodes: block `i` of size 2^b holds the nodes
/// `i * 2^b` up to `(i + 1) * 2^b`, the last not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(u64);

impl Block {
    /// The block with this index, from 0.
    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    /// The index.
    pub const fn index(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// How often a block was granted: 1 at the first grant, one more at each that
/// follows. Renewals leave it.
///
/// A store whose history was lost may use a number again. It alone does not
/// identify a grant; together with the interval's end it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of a block's first grant.
    pub const FIRST: Self = Self(1);

    /// The epoch with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The epoch of the grant that follows.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The state in a store of a block that was granted at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockState {
    /// The block.
    pub block: Block,
    /// The epoch of its last grant.
    pub epoch: Epoch,
    /// The end of the last interval given away, in ticks since the layout's
    /// epoch: the high-water mark, which never decreases.
    pub hwm_end: u64,
    /// Whether the last holder said that it is done. It makes the block a
    /// candidate for the next grant, which still starts at `hwm_end`.
    pub released: bool,
    /// The first tick of its last grant, if the store knows. No rule depends on it.
    pub start: Option<u64>,
    /// When it was last granted, in milliseconds since 1970, if the store knows.
    pub granted_unix_ms: Option<u64>,
    /// The holder that the last request named, if it named one.
    pub holder: Option<Holder>,
}

impl BlockState {
    /// A block that is held, with no holder named.
    pub const fn new(block: Block, epoch: Epoch, hwm_end: u64) -> Self {
        Self {
            block,
            epoch,
            hwm_end,
            released: false,
            start: None,
            granted_unix_ms: None,
            holder: None,
        }
    }

    /// A block that was never granted.
    pub const fn never_granted(block: Block) -> Self {
        Self::new(block, Epoch::new(0), 0)
    }

    /// Whether somebody holds it at tick `now`: its mark lies ahead, and it was not
    /// released.
    pub const fn is_held(&self, now: u64) -> bool {
        self.hwm_end > now && !self.released
    }
}

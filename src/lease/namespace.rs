//! Namespaces: one ID space, which all holders of its leases agree on.

use std::fmt;
use std::ops::Range;

use crate::describe::describe;
use crate::layout::Layout;
use crate::lease::block::Block;
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;

/// One ID space that a store divides: a name, a layout, a block size and the
/// secret's fingerprint.
///
/// Every call to a [`LeaseStore`](crate::lease::LeaseStore) names the namespace, and
/// the store compares all of it with its record. All processes of a fleet must
/// agree on it for ever: two layouts, or two secrets, would give the same ID to
/// different rectangles.
///
/// # Examples
/// ```
/// use ringflake::{Layout, lease::{Fingerprint, Namespace}};
///
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// assert_eq!(orders.block_nodes(), 32);
/// assert_eq!(orders.blocks(), 4096);
/// # Ok::<(), ringflake::lease::NamespaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespace {
    name: String,
    layout: Layout,
    block_bits: u32,
    fingerprint: Fingerprint,
}

impl Namespace {
    /// The longest name, in bytes.
    pub const MAX_NAME: usize = 64;

    /// Blocks hold 2^5 nodes unless [`with_block_bits`](Self::with_block_bits)
    /// says otherwise, or all nodes of the layout if it has fewer.
    pub const BLOCK_BITS: u32 = 5;

    /// A namespace with blocks of 2^5 nodes.
    ///
    /// The name has 1 to [`MAX_NAME`](Self::MAX_NAME) characters out of `a-z`,
    /// `0-9`, `-`, `_` and `.`, and starts with a letter or a digit: a name that
    /// can stand in a key or a table of every store.
    ///
    /// # Errors
    /// When the name is empty, too long, or holds another character.
    pub fn new(
        name: impl Into<String>,
        layout: &Layout,
        fingerprint: Fingerprint,
    ) -> Result<Self, NamespaceError> {
        let name = name.into();
        if name.is_empty() || name.len() > Self::MAX_NAME {
            return Err(NamespaceError::NameLength { bytes: name.len() });
        }
        let stray = name.char_indices().find(|&(at, c)| match c {
            'a'..='z' | '0'..='9' => false,
            '-' | '_' | '.' => at == 0,
            _ => true,
        });
        if let Some((at, found)) = stray {
            return Err(NamespaceError::NameCharacter { at, found });
        }
        Ok(Self {
            name,
            layout: *layout,
            block_bits: Self::BLOCK_BITS.min(node_bits(layout)),
            fingerprint,
        })
    }

    /// Leases nodes in blocks of 2^`block_bits`, from 0 to the layout's node
    /// bits.
    ///
    /// A process takes at least one block, so the number of blocks bounds the
    /// number of processes. The size of a block bounds the rate of each without
    /// borrowing: `2^block_bits * layout.sequences()` IDs a tick for each
    /// block.
    ///
    /// # Errors
    /// When a block would hold more nodes than the layout has.
    pub fn with_block_bits(mut self, block_bits: u32) -> Result<Self, NamespaceError> {
        let max = node_bits(&self.layout);
        if block_bits > max {
            return Err(NamespaceError::BlockBits { block_bits, max });
        }
        self.block_bits = block_bits;
        Ok(self)
    }

    /// The same namespace with another fingerprint.
    #[cfg(feature = "sqlite")]
    pub(crate) fn with_fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = fingerprint;
        self
    }

    /// Compares this namespace, which is on record, with the one that a client
    /// names.
    pub(crate) fn verify(&self, offered: &Self) -> Result<(), StoreError> {
        let name = || self.name.clone();
        if (&self.layout, self.block_bits) != (&offered.layout, offered.block_bits) {
            return Err(StoreError::LayoutMismatch {
                namespace: name(),
                recorded: self.shape(),
                offered: offered.shape(),
            });
        }
        if self.fingerprint != offered.fingerprint {
            return Err(StoreError::FingerprintMismatch {
                namespace: name(),
                recorded: self.fingerprint,
                offered: offered.fingerprint,
            });
        }
        Ok(())
    }

    /// The fingerprints that no other namespace may have: its own first, and those of
    /// `same_secret`; none for plain IDs.
    pub(super) fn claims(&self, same_secret: &[Fingerprint]) -> Vec<Fingerprint> {
        let own = self.fingerprint;
        if own == Fingerprint::PLAIN {
            return Vec::new();
        }
        let others = same_secret.iter().copied();
        let others = others.filter(|&other| other != own && other != Fingerprint::PLAIN);
        std::iter::once(own).chain(others).collect()
    }

    /// Refuses this namespace's secret where the one named `owner` has `claimed`, one of
    /// its [claims](Self::claims). Its own may be on record under its own name; one of
    /// another width under that name is what a lost record has left, and IDs of both widths
    /// meet.
    pub(super) fn check_secret(
        &self,
        claimed: Fingerprint,
        owner: Option<&str>,
    ) -> Result<(), StoreError> {
        let is_free = |owner: &str| claimed == self.fingerprint && owner == self.name;
        match owner {
            Some(owner) if !is_free(owner) => Err(StoreError::SecretInUse {
                namespace: self.name.clone(),
                other: owner.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// The answer of a store that has no record of it.
    pub(super) fn not_initialised(&self) -> StoreError {
        StoreError::NotInitialised {
            namespace: self.name.clone(),
        }
    }

    /// The answer of a store that has no record of it, and may have lost it.
    pub(super) fn history_unknown(&self, reason: impl Into<String>) -> StoreError {
        StoreError::HistoryUnknown {
            namespace: self.name.clone(),
            reason: reason.into(),
        }
    }

    /// The answer to a request to make its record, which is there.
    pub(super) fn already_initialised(&self) -> StoreError {
        StoreError::AlreadyInitialised {
            namespace: self.name.clone(),
        }
    }

    /// The layout and the block size, for errors.
    pub(crate) fn shape(&self) -> String {
        format!(
            "{} in blocks of {} nodes",
            self.layout(),
            self.block_nodes()
        )
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The layout of the IDs.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The secret's fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The binary logarithm of [`block_nodes`](Self::block_nodes).
    pub fn block_bits(&self) -> u32 {
        self.block_bits
    }

    /// How many nodes a block holds.
    pub fn block_nodes(&self) -> u64 {
        1 << self.block_bits
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.layout.nodes() >> self.block_bits
    }

    /// The nodes of a block, whether the layout has them or not.
    pub fn nodes_of(&self, block: Block) -> Range<u64> {
        let start = block.index().saturating_mul(self.block_nodes());
        start..start.saturating_add(self.block_nodes())
    }

    /// The block that a node belongs to.
    pub fn block_of(&self, node: u64) -> Block {
        Block::new(node >> self.block_bits)
    }
}

fn node_bits(layout: &Layout) -> u32 {
    layout.nodes().ilog2()
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (layout {}, blocks of {} nodes)",
            self.name,
            self.layout,
            self.block_nodes()
        )
    }
}

/// Why a [`Namespace`] can't be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The name is empty or too long.
    NameLength {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The name holds a character that it must not hold, or not there.
    NameCharacter {
        /// Where, in bytes from the start.
        at: usize,
        /// The character.
        found: char,
    },
    /// A block would hold more nodes than the layout has.
    BlockBits {
        /// The bits asked for.
        block_bits: u32,
        /// The layout's node bits.
        max: u32,
    },
}

describe! {
    NamespaceError;

    Self::NameLength { bytes } => (
        "the namespace's name must have 1 to {} bytes, got {bytes}", Namespace::MAX_NAME);
    Self::NameCharacter { at, found } =>
        "the namespace's name has {found:?} at byte {at}: use a-z, 0-9, and after the first \
         character also '-', '_' and '.'";
    Self::BlockBits { block_bits, max } =>
        "block bits must be 0 to {max}, the layout's node bits, got {block_bits}";
}

impl std::error::Error for NamespaceError {}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout::RANDFLAKE;

    fn named(name: &str) -> Result<Namespace, NamespaceError> {
        Namespace::new(name, &LAYOUT, Fingerprint::PLAIN)
    }

    #[test]
    fn names_are_plain() {
        for good in ["a", "0", "orders", "eu-1.orders_v2", &"x".repeat(64)] {
            assert_eq!(named(good).unwrap().name(), good);
        }
        for bytes in [0, 65] {
            assert_eq!(
                named(&"x".repeat(bytes)),
                Err(NamespaceError::NameLength { bytes })
            );
        }
        for (bad, at, found) in [
            ("Orders", 0, 'O'),
            (".orders", 0, '.'),
            ("or ders", 2, ' '),
            ("or/ders", 2, '/'),
            ("ordér", 3, 'é'),
            ("a{b}", 1, '{'),
        ] {
            assert_eq!(named(bad), Err(NamespaceError::NameCharacter { at, found }));
        }
    }

    #[test]
    fn blocks_tile_the_nodes() {
        for block_bits in [0, 5, 17] {
            let space = named("a").unwrap().with_block_bits(block_bits).unwrap();
            assert_eq!(space.blocks() * space.block_nodes(), LAYOUT.nodes());
            let last = Block::new(space.blocks() - 1);
            assert_eq!(space.nodes_of(last).end, LAYOUT.nodes());
            assert_eq!(space.block_of(LAYOUT.nodes() - 1), last);
            assert_eq!(space.nodes_of(Block::new(0)).start, 0);
        }
        assert_eq!(
            named("a").unwrap().with_block_bits(18),
            Err(NamespaceError::BlockBits {
                block_bits: 18,
                max: 17
            })
        );
    }
}

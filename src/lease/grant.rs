//! What a store gives out.

use std::fmt;
use std::ops::Range;

use crate::lease::claim::Claim;
use crate::lease::namespace::Namespace;
use crate::lease::rectangle::{Lease, LeaseError};

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

/// A block for an interval of ticks: a store's positive reply.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Grant {
    /// The block.
    pub block: Block,
    /// Which of the block's grants this is. A renewal must name it.
    pub epoch: Epoch,
    /// The ticks since the layout's epoch, half-open. A renewal must name the
    /// end, and moves it.
    pub ticks: Range<u64>,
    claim: Claim,
}

impl Grant {
    /// The grant of `block` for `ticks`.
    pub fn new(block: Block, epoch: Epoch, ticks: Range<u64>) -> Self {
        Self {
            block,
            epoch,
            ticks,
            claim: Claim::default(),
        }
    }

    /// The rectangle that it makes the holder's. All leases of one grant and of
    /// its clones count as one, which serves one generator at a time.
    ///
    /// # Errors
    /// When the block or the ticks are not of this namespace. A grant that a
    /// store gave for the namespace never fails.
    pub fn to_lease(&self, namespace: &Namespace) -> Result<Lease, LeaseError> {
        Lease::new(
            *namespace.layout(),
            namespace.nodes_of(self.block),
            self.ticks.clone(),
        )
        .map(|lease| lease.with_claim(self.claim.clone()))
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "block {} epoch {} ticks {:?}",
            self.block, self.epoch, self.ticks
        )
    }
}

/// Who asked for a block, for those who read a listing. No rule depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    host: String,
    instance: String,
}

impl Holder {
    /// The longest name of a host or of an instance, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// A process: the machine or pod that it runs on, and what tells it from
    /// others there, such as a port or a process number.
    ///
    /// Each is cut to [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn new(host: impl Into<String>, instance: impl Into<String>) -> Self {
        fn cut(mut text: String) -> String {
            // A text that is shorter has its last boundary at its end.
            let end = (0..=Holder::MAX_BYTES).rfind(|&end| text.is_char_boundary(end));
            text.truncate(end.unwrap_or(0));
            text
        }
        Self {
            host: cut(host.into()),
            instance: cut(instance.into()),
        }
    }

    /// The machine or pod.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What tells the process from others there.
    pub fn instance(&self) -> &str {
        &self.instance
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.instance)
    }
}

/// What a store knows of a block that was granted at least once.
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
    /// When it was last granted, in milliseconds since 1970, if the store knows.
    pub granted_unix_ms: Option<u64>,
    /// Who asked for it last, if they said.
    pub holder: Option<Holder>,
}

impl BlockState {
    /// A block that is held, by nobody in particular.
    pub const fn new(block: Block, epoch: Epoch, hwm_end: u64) -> Self {
        Self {
            block,
            epoch,
            hwm_end,
            released: false,
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

#[cfg(test)]
mod tests {
    use super::super::Fingerprint;
    use super::*;
    use crate::layout::Layout;

    #[test]
    fn a_grant_is_a_rectangle() {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let lease = Grant::new(Block::new(3), Epoch::FIRST, 10..20)
            .to_lease(&space)
            .unwrap();
        assert_eq!((lease.nodes(), lease.ticks()), (96..128, 10..20));

        // The second is where the first node's number wraps around to 0.
        for beyond in [space.blocks(), 1 << 59, u64::MAX] {
            let grant = Grant::new(Block::new(beyond), Epoch::FIRST, 10..20);
            assert!(grant.to_lease(&space).is_err(), "{beyond}");
        }
    }

    #[test]
    fn long_names_of_holders_are_cut_between_characters() {
        let holder = Holder::new("é".repeat(40), format!("x{}", "é".repeat(40)));
        assert_eq!(holder.host(), "é".repeat(32));
        assert_eq!(holder.instance(), format!("x{}", "é".repeat(31)));
    }
}

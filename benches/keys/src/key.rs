//! The keys.

use std::error::Error;

use ringflake::{CachedGenerator, DirectGenerator, Id, Layout, Secret, StaticLease};
use uuid::Uuid;

/// A kind of primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sorted,
    Encrypted,
    UuidV7,
    UuidV4,
}

/// A primary key, as its column takes it.
#[derive(Clone, Copy, Debug)]
pub enum Key {
    Number(i64),
    Uuid(Uuid),
}

impl Kind {
    /// The yardstick first.
    pub const ALL: [Self; 4] = [Self::Sorted, Self::Encrypted, Self::UuidV7, Self::UuidV4];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sorted => "ringflake, plain",
            Self::Encrypted => "ringflake, encrypted",
            Self::UuidV7 => "UUID v7",
            Self::UuidV4 => "UUID v4",
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Self::Sorted | Self::Encrypted)
    }

    /// As many keys of this kind.
    pub fn make(self, rows: usize) -> Result<Vec<Key>, Box<dyn Error>> {
        let layout = Layout::RANDFLAKE;
        let keys = match self {
            Self::Sorted => {
                let lease = StaticLease::assume_unique(layout, 0..32);
                // Each is greater than all before it. From a ring, those of two takes at
                // once may change places.
                let ids = DirectGenerator::builder(layout).plain().lease(lease);
                numbers(ids.build()?.take_vec(rows)?)
            }
            Self::Encrypted => {
                let lease = StaticLease::assume_unique(layout, 32..64);
                let secret = Secret::from_bytes(*b"keys of a B-tree");
                let ids = CachedGenerator::builder(layout).secret(&secret);
                numbers(ids.lease(lease).build()?.take_vec(rows)?)
            }
            Self::UuidV7 => (0..rows).map(|_| Key::Uuid(Uuid::now_v7())).collect(),
            Self::UuidV4 => (0..rows).map(|_| Key::Uuid(Uuid::new_v4())).collect(),
        };
        Ok(keys)
    }
}

fn numbers(ids: Vec<Id>) -> Vec<Key> {
    ids.into_iter().map(|id| Key::Number(id.to_i64())).collect()
}

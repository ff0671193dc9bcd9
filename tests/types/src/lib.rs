//! What every test here writes and reads again.

use ringflake::{Id, IdKind, TypedId};

#[derive(Debug)]
pub enum User {}

impl IdKind for User {
    const PREFIX: &'static str = "user";
}

/// The least and the greatest number, signed and not, and one from nowhere near them.
pub const IDS: [Id; 6] = [
    Id::from_u64(0),
    Id::from_u64(1),
    Id::from_u64(i64::MAX as u64),
    Id::from_u64(1 << 63),
    Id::from_u64(12_037_510_499_902_272_547),
    Id::from_u64(u64::MAX),
];

/// A row for each, every other one without an owner.
pub fn rows() -> Vec<(Id, Option<TypedId<User>>)> {
    let owner = |at| (at % 2 == 1).then(|| TypedId::from_id(IDS[IDS.len() - 1 - at]));
    IDS.iter()
        .enumerate()
        .map(|(at, id)| (*id, owner(at)))
        .collect()
}

/// The IDs in the order of a database with signed numbers.
pub fn in_signed_order() -> Vec<Id> {
    let mut ids = IDS.to_vec();
    ids.sort_by_key(|id| id.to_i64());
    ids
}

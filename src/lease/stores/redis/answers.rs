//! The answers that several scripts give.

use super::block;
use super::script::{self, Answer};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::namespace::Namespace;

/// The error for a secret that another namespace has, by one of these fingerprints.
pub(super) fn in_use(namespace: &Namespace, claims: &[Fingerprint], answer: &Answer) -> StoreError {
    let (owner, found) = match (answer.text(0), answer.text(1)) {
        (Ok(owner), Ok(found)) => (owner, found),
        (Err(error), _) | (_, Err(error)) => return error,
    };
    let claimed = claims.iter().find(|claimed| claimed.to_string() == found);
    let refused = claimed.and_then(|&claimed| namespace.check_secret(claimed, Some(owner)).err());
    refused.unwrap_or_else(disagreement)
}

/// The refusal to touch the grant of a block that is quarantined.
pub(super) fn fence_of(answer: &Answer, namespace: &Namespace, block: Block) -> StoreError {
    match block::quarantined(answer, 0, namespace) {
        Ok(mut found) => found
            .pop()
            .map_or_else(disagreement, |found| found.fence(namespace, block)),
        Err(error) => error,
    }
}

/// The block's epoch and mark, at this place of the answer and the next.
pub(super) fn block_at(
    answer: &Answer,
    at: usize,
    block: Block,
) -> Result<Option<BlockState>, StoreError> {
    let epoch = answer.number(at)?.unwrap_or(0);
    let mark = answer.number(at + 1)?;
    Ok(mark.map(|mark| BlockState::new(block, Epoch::new(epoch), mark)))
}

/// The error where a script and the rules disagree: one of them refuses what the other
/// allows.
pub(super) fn disagreement() -> StoreError {
    script::unexpected("no reason that this version knows")
}

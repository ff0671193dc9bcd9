//! Several renewals by the transactions of a store that has some.
//!
//! ```text
//! those in range, one a block --> a step for each 128 --+--> answered
//!                                     |        |        `--> left as it was --.
//!                                     |        `-- taken back ----------------> one by one
//!                                     `-- no connection, or in doubt: all of the step
//! ```
//! A step is one transaction. Some stores have one for each namespace.
//!
//! * **None is sent again that may have been done.** Alone is renewed what a transaction
//!   left as it was and has said so, or what was taken back with the whole transaction:
//!   a step that fails otherwise than by silence has not been committed.
//! * **One costs no other.** What one renewal meets, a constraint of the database or a
//!   record that can't be true, may fail its step. So all of that step are then renewed
//!   alone, and it alone is refused.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use super::super::{Block, Namespace, Renew, StoreError};
use super::{Answers, Asking, Renewals};

/// The most renewals that one transaction holds: what they lock is locked until it is
/// durable.
const MOST: usize = 128;

/// What a step answers for each of its renewals, none for those that it left as they were.
pub(in crate::lease) type Outcome = Result<Vec<Option<Result<u64, StoreError>>>, StoreError>;

/// How a store renews.
pub(in crate::lease) trait Steps {
    /// Whether renewals of these two can be of one step.
    fn go_together(a: &Namespace, b: &Namespace) -> bool;

    /// Renews these in one transaction, no two of one block. Unless the error says that
    /// the store can't be asked, or that it is in doubt, nothing was done then.
    fn step(&mut self, renewals: &Renewals<'_>) -> Outcome;

    /// Renews one.
    fn alone(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError>;
}

/// Renews all, in as few steps as that takes.
pub(in crate::lease) fn in_steps<S: Steps>(store: &mut S, renewals: &Renewals<'_>) -> Answers {
    let out_of_range = |(_, renew): &(_, &Renew)| renew.validate().err().map(Err);
    let mut answers: Vec<_> = renewals.iter().map(out_of_range).collect();
    let space = |index: usize| renewals[index].0;
    // The second of a block compares with what the first has left.
    let mut blocks: BTreeSet<(&str, Block)> = BTreeSet::new();
    let mut together: Vec<usize> = (0..renewals.len()).collect();
    together.retain(|&index| {
        let (namespace, renew) = renewals[index];
        answers[index].is_none() && blocks.insert((namespace.name(), renew.block))
    });
    together.sort_by_key(|&index| space(index).name());
    let steps = together
        .chunk_by(|&a, &b| S::go_together(space(a), space(b)))
        .flat_map(|steps| steps.chunks(MOST));

    let mut asking = Asking::default();
    for step in steps.filter(|step| step.len() > 1) {
        let batch: Vec<_> = step.iter().map(|index| renewals[*index]).collect();
        match store.step(&batch) {
            Ok(outcomes) => {
                for (index, outcome) in step.iter().zip(outcomes) {
                    answers[*index] = outcome;
                }
            }
            Err(error) if asking.heed(&error) => {
                for (index, error) in step.iter().zip(repeated(error)) {
                    answers[*index] = Some(Err(error));
                }
                break;
            }
            // Taken back: alone, each is told what is wrong with it.
            Err(_) => {}
        }
    }
    let finish = |(answer, &(namespace, renew)): (Option<_>, &(&Namespace, &Renew))| {
        answer.unwrap_or_else(|| asking.ask(|| store.alone(namespace, renew)))
    };
    answers.into_iter().zip(renewals).map(finish).collect()
}

/// The same error for one after the other.
fn repeated(error: StoreError) -> impl Iterator<Item = StoreError> {
    type Source = Arc<dyn Error + Send + Sync>;
    let (source, again): (Source, fn(Source) -> StoreError) = match error {
        StoreError::Denied { source } => (source.into(), |source| StoreError::Denied {
            source: Box::new(source),
        }),
        StoreError::Ambiguous { source, .. } => (source.into(), |source| StoreError::Ambiguous {
            operation: "renew",
            source: Box::new(source),
        }),
        StoreError::Unavailable { source } => (source.into(), unavailable),
        other => (Arc::new(other), unavailable),
    };
    std::iter::repeat_with(move || again(Arc::clone(&source)))
}

fn unavailable(source: Arc<dyn Error + Send + Sync>) -> StoreError {
    StoreError::Unavailable {
        source: Box::new(source),
    }
}

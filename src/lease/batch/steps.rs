//! Several renewals in the transactions of a store that has them.
//!
//! ```text
//! those in range, one a block --> a step for each 128 --+--> answered
//!                                     |        |        `--> left as it was --.
//!                                     |        `-- taken back ----------------> one by one
//!                                     `-- no connection, or in doubt: all of the step
//! ```
//! A step is one transaction. Some stores have one for each namespace.
//!
//! * **No renewal is sent again that may have been carried out.** A renewal is sent
//!   alone if its transaction reported that it left it unchanged, or if the whole
//!   transaction was rolled back: a step that fails other than by silence has not been
//!   committed.
//! * **No renewal costs another.** One renewal can fail its step, by a constraint of
//!   the database or a record that can't be true. Then all of that step are renewed
//!   alone, and only that one is refused.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use super::super::{Block, Namespace, Renew, StoreError};
use super::{Answers, Asking, Renewals};

/// The maximum of renewals in one transaction: their locks are held until it is
/// durable.
const MAX: usize = 128;

/// The answer of a step to each of its renewals, none for those that it left as they were.
pub(in crate::lease) type Outcome = Result<Vec<Option<Result<u64, StoreError>>>, StoreError>;

/// How a store renews.
pub(in crate::lease) trait Steps {
    /// Whether renewals of these two namespaces can share a step.
    fn go_together(a: &Namespace, b: &Namespace) -> bool;

    /// Renews these in one transaction, no two of one block. On an error nothing was
    /// done, unless the error says that the store can't be reached, or that the outcome
    /// is unknown.
    fn step(&mut self, renewals: &Renewals<'_>) -> Outcome;

    /// Renews one grant.
    fn alone(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError>;
}

/// Renews all, in as few steps as that takes.
pub(in crate::lease) fn in_steps<S: Steps>(store: &mut S, renewals: &Renewals<'_>) -> Answers {
    let out_of_range = |(_, renew): &(_, &Renew)| renew.validate().err().map(Err);
    let mut answers: Vec<_> = renewals.iter().map(out_of_range).collect();
    let space = |index: usize| renewals[index].0;
    // The second renewal of a block compares with the result of the first.
    let mut blocks: BTreeSet<(&str, Block)> = BTreeSet::new();
    let mut together: Vec<usize> = (0..renewals.len()).collect();
    together.retain(|&index| {
        let (namespace, renew) = renewals[index];
        answers[index].is_none() && blocks.insert((namespace.name(), renew.block))
    });
    together.sort_by_key(|&index| space(index).name());
    let steps = together
        .chunk_by(|&a, &b| S::go_together(space(a), space(b)))
        .flat_map(|steps| steps.chunks(MAX));

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
            // Rolled back: sent alone, each gets an error of its own.
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

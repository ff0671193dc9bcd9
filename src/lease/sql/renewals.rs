//! Several renewals at once.
//!
//! ```text
//! those in range, one a block --> a step for each 128 --+--> moved
//!                                     |        |        `--> not moved --.
//!                                     |        `-- taken back ----------> one by one
//!                                     `-- no connection, or in doubt: all of the step
//! ```
//! A step is one transaction of guarded updates, each of which finds its row or does not.
//!
//! * **None is sent again that may have been done.** Alone is renewed what a transaction
//!   left as it was and has said so, or what the server has taken back with the whole
//!   transaction: after a statement that it refused there is nothing to commit.
//! * **One costs no other.** A row that a constraint of the database protects fails the
//!   whole statement. So all of that step are then renewed alone, and it alone is refused.
//! * **Nobody waits for many.** A step passes over rows that others have locked. Alone,
//!   each is waited for by a transaction that has no other.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use super::super::renewals::{Answers, Asking, Renewals};
use super::super::{Block, Namespace, StoreError};
use super::{Client, Session};

/// The most renewals that one transaction holds: their rows are locked until it is durable.
const MOST: usize = 128;

impl<S: Session> Client<S> {
    pub(in crate::lease) fn renew_all(&mut self, renewals: &Renewals<'_>) -> Answers {
        let out_of_range = |(_, renew): &(_, &super::Renew)| renew.validate().err().map(Err);
        let mut answers: Vec<_> = renewals.iter().map(out_of_range).collect();
        let mut asking = Asking::default();
        // The second of a block compares with what the first has left.
        let mut blocks: BTreeSet<(&str, Block)> = BTreeSet::new();
        let mut together = Vec::new();
        for (index, (namespace, renew)) in renewals.iter().enumerate() {
            if answers[index].is_none() && blocks.insert((namespace.name(), renew.block)) {
                together.push(index);
            }
        }
        for step in together.chunks(MOST).filter(|step| step.len() > 1) {
            let batch: Vec<_> = step.iter().map(|index| renewals[*index]).collect();
            let (namespace, _) = batch[0];
            match self.run(namespace, "renew", |session| session.extend_all(&batch)) {
                Ok(ends) => {
                    for (index, end) in step.iter().zip(ends) {
                        answers[*index] = end.map(Ok);
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
        let alone = |(answer, &(namespace, renew)): (Option<_>, &(&Namespace, _))| {
            answer.unwrap_or_else(|| asking.ask(|| self.renew(namespace, renew)))
        };
        answers.into_iter().zip(renewals).map(alone).collect()
    }
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

//! Several renewals at once.
//!
//! A step is one transaction of guarded updates, of any namespaces. A step that the
//! server refuses is taken back: after that there is nothing to commit.
//!
//! **Nobody waits for many.** A step passes over rows that others have locked. Alone, each
//! is waited for by a transaction that has no other.

use super::{Client, Session};
use crate::lease::batch::{Answers, Outcome, Renewals, Steps, in_steps};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::request::Renew;

impl<S: Session> Client<S> {
    pub(in crate::lease::stores) fn renew_all(&mut self, renewals: &Renewals<'_>) -> Answers {
        in_steps(self, renewals)
    }
}

impl<S: Session> Steps for Client<S> {
    fn go_together(_: &Namespace, _: &Namespace) -> bool {
        true
    }

    fn step(&mut self, renewals: &Renewals<'_>) -> Outcome {
        let Some((namespace, _)) = renewals.first() else {
            return Ok(Vec::new());
        };
        let ends = self.run(namespace, "renew", |session| session.extend_all(renewals))?;
        Ok(ends.into_iter().map(|end| end.map(Ok)).collect())
    }

    fn alone(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        self.renew(namespace, renew)
    }
}

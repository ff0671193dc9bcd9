//! Asking the upstream store, and writing its replies down.

use super::TierStore;
use super::operation::Operation;
use super::requests::{DueRequests, describe};
use crate::lease::error::{Fence, StoreError};
use crate::lease::events;
use crate::lease::grant::Grant;
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::store::lease_store::LeaseStore;
use crate::lease::store::request::Acquire;

impl TierStore {
    /// Sends the requests that are due, and writes each reply down before the next.
    pub(super) fn run(&mut self, namespace: &Namespace, due: DueRequests) {
        let outcome = self.try_run(namespace, due);
        let failing = outcome.as_ref().err();
        let before = self
            .storage
            .change(Operation::UPSTREAM_REPLY, namespace, |log, at| {
                let before = log.upstream_state.failing.clone();
                log.upstream_state.end(at.unix_ms, failing.map(describe));
                Ok(before)
            });
        match (failing, before) {
            (Some(error), _) => self.log_failure(error),
            (None, Ok(Some(before))) => events::upstream_recovered(before.since_unix_ms),
            (None, _) => {}
        }
    }

    fn try_run(&mut self, namespace: &Namespace, due: DueRequests) -> Result<(), StoreError> {
        if due.is_probe {
            self.upstream.check(namespace, self.storage.unix_ms())?;
        }
        for renew in due.renewals {
            let answer = self.upstream.renew(namespace, &renew);
            self.storage
                .change(Operation::UPSTREAM_REPLY, namespace, |log, _| {
                    log.renewed(&renew, &answer);
                    Ok(())
                })?;
            match answer {
                Err(StoreError::Fenced {
                    fence: Fence::Floor { .. } | Fence::Incarnation,
                    ..
                }) => events::upstream_history_lost(&self.failures),
                Ok(_) | Err(StoreError::Fenced { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        match due.spares {
            Some(spares) => {
                let grants = self.ask(namespace, spares, None)?;
                self.storage
                    .change(Operation::UPSTREAM_REPLY, namespace, |log, _| {
                        log.adopt(&grants)
                    })
            }
            None => Ok(()),
        }
    }

    /// Asks the upstream store for blocks.
    pub(super) fn ask(
        &mut self,
        namespace: &Namespace,
        request: Acquire,
        process: Option<&Holder>,
    ) -> Result<Vec<Grant>, StoreError> {
        let machine = process.map_or_else(|| self.storage.name(), |it| it.host().to_owned());
        let request = request.held_by(Holder::new(machine, "tier"));
        self.upstream.acquire(namespace, &request)
    }

    pub(super) fn log_failure(&self, error: &StoreError) {
        if let StoreError::HistoryLost { .. } = error {
            events::history_lost(None);
        }
        events::upstream_failed(&self.failures, error);
    }
}

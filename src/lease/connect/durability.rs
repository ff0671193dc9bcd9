//! Stores that can lose what they have confirmed: the one place that decides whether
//! they are used, logs it and reports it.

use crate::lease::error::StoreError;
use crate::lease::events;
use crate::lease::report::Durability;

/// A store's name and weakness, and whether a store that can lose what it has confirmed
/// was accepted.
#[derive(Debug)]
pub(crate) struct DurabilityGate {
    store: String,
    accepts_best_effort: bool,
    /// Why the store can lose what it has confirmed, if it can.
    weakness: Option<String>,
}

impl DurabilityGate {
    /// A gate for `store`, which is a name without credentials.
    pub(crate) fn new(store: String, accepts_best_effort: bool) -> Self {
        Self {
            store,
            accepts_best_effort,
            weakness: None,
        }
    }

    /// Refuses the store because it can lose what it has confirmed, unless that was
    /// accepted. An accepted reason is logged once.
    ///
    /// # Errors
    /// [`StoreError::NotDurable`].
    pub(crate) fn admit(&mut self, weakness: impl Into<Option<String>>) -> Result<(), StoreError> {
        match self.refusal(weakness) {
            None => Ok(()),
            Some(reason) => Err(StoreError::NotDurable {
                store: self.store.clone(),
                reason,
            }),
        }
    }

    /// As [`admit`](Self::admit); returns the reason for a refusal.
    pub(crate) fn refusal(&mut self, weakness: impl Into<Option<String>>) -> Option<String> {
        let reason = weakness.into()?;
        if !self.accepts_best_effort {
            return Some(reason);
        }
        if self.weakness.as_ref() != Some(&reason) {
            events::best_effort_store(&self.store, &reason);
            self.weakness = Some(reason);
        }
        None
    }

    /// As [`admit`](Self::admit), for several reasons at once.
    pub(crate) fn admit_all(&mut self, weaknesses: &[String]) -> Result<(), StoreError> {
        self.admit(all(weaknesses))
    }

    /// As [`refusal`](Self::refusal), for several reasons at once.
    pub(crate) fn refusal_for(&mut self, weaknesses: &[String]) -> Option<String> {
        self.refusal(all(weaknesses))
    }

    /// Whether a store that can lose what it has confirmed is accepted.
    pub(crate) fn accepts_best_effort(&self) -> bool {
        self.accepts_best_effort
    }

    /// The store's durability, for its report.
    pub(crate) fn durability(&self) -> Durability {
        Durability::of(self.weakness.as_deref())
    }

    /// The store's name.
    pub(crate) fn store(&self) -> &str {
        &self.store
    }
}

fn all(weaknesses: &[String]) -> Option<String> {
    (!weaknesses.is_empty()).then(|| weaknesses.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weak_store_is_refused_unless_that_was_accepted() {
        let weak = || Some("fsync is off".to_owned());
        let refused = DurabilityGate::new("db".to_owned(), false).admit(weak());
        assert!(
            matches!(&refused, Err(StoreError::NotDurable { store, reason })
                if store == "db" && reason == "fsync is off"),
            "{refused:?}"
        );

        let mut gate = DurabilityGate::new("db".to_owned(), true);
        gate.admit_all(&[]).unwrap();
        assert_eq!(gate.durability(), Durability::Durable);
        gate.admit_all(&["a".to_owned(), "b".to_owned()]).unwrap();
        let reason = "a; b".to_owned();
        assert_eq!(gate.durability(), Durability::BestEffort { reason });
    }
}

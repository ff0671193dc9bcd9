//! Stores that can lose what they have confirmed: the one place that decides whether
//! they are used, logs it and reports it.

use crate::lease::events::LoggedOnce;
use crate::lease::store::report::Durability;

/// Stores with their weaknesses, as they were logged: a store that can't be opened is tried
/// again and again, each time by a new gate.
static LOGGED: LoggedOnce<(String, String)> = LoggedOnce::new();

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

    /// The reason to refuse a store that can lose what it has confirmed, for these reasons,
    /// unless that was accepted. This process logs each accepted reason once for each store.
    pub(crate) fn refusal(&mut self, weaknesses: &[String]) -> Option<String> {
        if weaknesses.is_empty() {
            return None;
        }
        let reason = weaknesses.join("; ");
        if !self.accepts_best_effort {
            return Some(reason);
        }
        if self.weakness.as_ref() != Some(&reason)
            && LOGGED.is_new((self.store.clone(), reason.clone()))
        {
            tracing::warn!(
                target: "ringflake",
                store = self.store,
                reason,
                "store not durable: what it confirms can be lost, and IDs issued twice"
            );
        }
        self.weakness = Some(reason);
        None
    }

    /// Whether a store that can lose what it has confirmed is accepted.
    pub(crate) fn accepts_best_effort(&self) -> bool {
        self.accepts_best_effort
    }

    /// The store's durability, for its report.
    pub(crate) fn durability(&self) -> Durability {
        Durability::of(self.weakness.as_deref())
    }

    pub(crate) fn store(&self) -> &str {
        &self.store
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weak_store_is_refused_unless_that_was_accepted() {
        let weak = ["a".to_owned(), "b".to_owned()];
        let mut strict = DurabilityGate::new("db".to_owned(), false);
        assert_eq!(strict.refusal(&weak).as_deref(), Some("a; b"));

        let mut gate = DurabilityGate::new("db".to_owned(), true);
        assert_eq!(gate.refusal(&[]), None);
        assert_eq!(gate.durability(), Durability::Durable);
        assert_eq!(gate.refusal(&weak), None);
        let reason = "a; b".to_owned();
        assert_eq!(gate.durability(), Durability::BestEffort { reason });
    }

    #[test]
    fn an_accepted_weakness_is_logged_once_by_all_gates_of_its_store() {
        let logged = ringflake_kit::events::warnings(|| {
            for (store, weakness) in [("one", "a"), ("one", "a"), ("two", "a"), ("one", "b")] {
                DurabilityGate::new(store.to_owned(), true).refusal(&[weakness.to_owned()]);
            }
        });
        assert_eq!(logged.len(), 3, "{logged:?}");
    }
}

//! The source of the claim that a namespace has no history.

use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::report::Durability;
use crate::lease::request::{History, Init};

/// The source of a namespace's declared history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voucher {
    /// A person who knows this namespace, once.
    Person,
    /// A program that declares the same at each of its starts.
    Program,
}

/// What is left of a namespace whose record is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trace {
    /// The note of its secret.
    Secret,
    /// Blocks that were granted.
    Blocks,
}

impl Voucher {
    /// Whether it claims that there is no history, which the store must compare with all
    /// that it finds.
    pub(super) fn is_doubtful(self, init: &Init) -> bool {
        self == Self::Program && init.history != History::Unknown
    }

    /// The refusal of a program's claim that there is no history, where the store has no
    /// record of the namespace but something else of it.
    pub(super) fn refusal(namespace: &Namespace, found: Trace) -> StoreError {
        StoreError::HistoryUnknown {
            namespace: namespace.name().to_owned(),
            reason: match found {
                Trace::Secret => "its secret is noted as its own, though its record is missing",
                Trace::Blocks => "there are blocks of it, though its record is missing",
            }
            .to_owned(),
        }
    }

    /// Refuses a program's claim that there is no history, if the store may
    /// have lost it.
    pub(super) fn check(
        self,
        namespace: &Namespace,
        init: &Init,
        durability: Durability,
    ) -> Result<(), StoreError> {
        match (self, init.history, durability) {
            (Self::Person, ..) | (_, History::Unknown, _) | (_, _, Durability::Durable) => Ok(()),
            (Self::Program, History::New | History::Unused, durability) => {
                Err(StoreError::HistoryUnknown {
                    namespace: namespace.name().to_owned(),
                    reason: match durability {
                        Durability::BestEffort { reason } => {
                            format!("it is kept at best effort, since {reason}")
                        }
                        _ => "it is kept in memory, and forgotten with each process".to_owned(),
                    },
                })
            }
        }
    }
}

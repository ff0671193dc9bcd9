//! The source of the claim that a namespace has no history.

use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::store::report::Durability;
use crate::lease::store::request::{History, Init};

/// The source of a namespace's declared history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease) enum Voucher {
    /// A person who knows this namespace, once.
    Person,
    /// A program that declares the same at each of its starts.
    Program,
}

impl Voucher {
    /// Whether it claims that there is no history, which the store must compare with all
    /// that it finds.
    pub(in crate::lease) fn is_doubtful(self, init: &Init) -> bool {
        self == Self::Program && init.history != History::Unknown
    }

    /// Refuses a program's claim that there is no history, if the store may
    /// have lost it.
    pub(in crate::lease) fn check(
        self,
        namespace: &Namespace,
        init: &Init,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let reason = match durability {
            _ if !self.is_doubtful(init) => return Ok(()),
            Durability::Durable => return Ok(()),
            Durability::BestEffort { reason } => {
                format!("it is kept at best effort, since {reason}")
            }
            Durability::Volatile => {
                "it is kept in memory, and forgotten with each process".to_owned()
            }
        };
        Err(namespace.history_unknown(reason))
    }
}

//! Leases out of a store: where a run has its nodes and ticks from.
//!
//! ```text
//! command line -> Place: a namespace of a store, and its key
//!              -> Terms: how much of it the run has use for
//!              -> Supply: both together, which a generator is built on
//!
//! generator's keeper -> RunStore: the terms, and a Ledger of what is confirmed
//!                    -> LocalStore: the library's, in the data directory
//!                       or any other store
//! ```

mod ledger;
mod patience;
mod place;
mod run_store;
mod supply;
mod terms;

pub(crate) use self::ledger::{Extent, Ledger};
pub(crate) use self::patience::Patience;
pub(crate) use self::place::Place;
pub(crate) use self::supply::{Lull, Supply};
pub(crate) use self::terms::Appetite;

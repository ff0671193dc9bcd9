//! The lease manager in a simulated world.

mod dice;
mod errors;
mod fleet;
mod ledger;
mod met;
mod mutations;
mod oracle;
mod process;
mod schedules;
mod service;
mod table;
mod tiers;
mod weather;
mod world;

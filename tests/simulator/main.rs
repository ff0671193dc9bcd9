//! The lease manager in a simulated world.

mod coverage;
mod errors;
mod exhaustive;
mod flawed_store;
mod fleet;
mod mutations;
mod oracle;
mod process;
mod scenario;
mod schedules;
mod service;
mod table;
mod tiers;
mod world;

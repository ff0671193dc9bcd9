//! IDs without a store: layouts, the cipher, the ring, the fills, and generators over one
//! lease.

mod backfill;
mod cipher;
mod config;
mod deploy;
mod direct;
mod facade;
mod fills;
mod first_guesses;
mod house;
mod id;
mod interop;
mod layout;
mod ring;
#[cfg(feature = "serde")]
mod serde_forms;
mod several;
mod sharding;
mod typed_id;
mod uniqueness;
mod widths;

#[derive(Debug)]
enum User {}

impl ringflake::IdKind for User {
    const PREFIX: &'static str = "user";
}

//! The command line, run as its users run it.

#![cfg(unix)]

mod bench;
#[path = "../../../tests/common/eventually.rs"]
mod eventually;
mod first_use;
mod generate;
mod home;
mod inspect;
mod local;
mod nodes;
mod pages;
#[path = "../../../tests/data/randflake.rs"]
mod randflake;
mod runs;
mod secret;
mod statuses;
mod store;
mod tune;
mod verify;

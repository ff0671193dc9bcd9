//! The command line, run as its users run it.

#![cfg(unix)]

#[cfg(feature = "stores")]
#[macro_use]
extern crate ringflake_kit;

mod bench;
mod commands;
mod first_use;
mod generate;
mod home;
mod inspect;
mod layout_sql;
mod local;
mod nodes;
mod pages;
mod runs;
mod secret;
#[cfg(feature = "serve")]
mod serve;
mod store;
#[cfg(feature = "stores")]
mod store_pages;
mod tune;
mod verify;
mod widths;

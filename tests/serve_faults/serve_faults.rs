//! `ringflake serve` as a process, and everything that can go wrong around it: it is killed
//! under load, its store goes away, its clock is set, it reloads or ends, its clients send
//! garbage.
//!
//! Clients of both protocols keep every ID that they have read. In the end all of them are
//! decrypted: each is of the namespace and its time, and none came twice.
//!
//! `RINGFLAKE_LONG=1` does more of each.

#![cfg(target_os = "linux")]

mod clocks;
mod kills;
mod load;
mod marks;
mod process;
mod reloads;
mod stores;
mod strangers;

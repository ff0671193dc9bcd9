//! The server, `ringflake serve`: beside a service or for everybody, how large, and how
//! clients of each language use it. This module holds only text.
//!
//! | you | read |
//! |---|---|
//! | write a client | [`clients`] |
//! | run it on the machine, or in the pod, of a service | [`beside`] |
//! | run it for a network | [`network`] |
//! | put nginx or haproxy in front of it | [`proxy`] |
//! | choose its numbers | [`sizing`] |
//! | are woken by one of its alerts | [`metrics`](super::metrics#when-to-wake-somebody) |
//!
//! Its settings are in the documentation of
//! [`ringflake-server`](https://docs.rs/ringflake-server), and `ringflake serve --help`.

#[doc = include_str!("serve/clients.md")]
pub mod clients {}

#[doc = include_str!("serve/beside.md")]
pub mod beside {}

#[doc = include_str!("serve/network.md")]
pub mod network {}

#[doc = include_str!("serve/proxy.md")]
pub mod proxy {}

#[doc = include_str!("serve/sizing.md")]
pub mod sizing {}

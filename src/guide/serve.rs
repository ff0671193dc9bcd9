//! The server, `ringflake serve`: beside a service or for everybody, how large, and how
//! clients of each language use it. This module holds only text.
//!
//! | you | read |
//! |---|---|
//! | write a client | [`clients`] |
//! | run it on the machine, or in the pod, of a service | [`beside`] |
//! | run it for a network | [`network`] |
//! | put nginx or haproxy in front of it | [`proxy`] |
//! | choose its numbers | [`server_sizing`] |
//! | look up a key of its configuration | [`settings`] |
//! | are woken by one of its alerts | [`monitoring`](super::monitoring#when-to-wake-somebody) |
//!
//! `ringflake serve --help` lists its options.

#[doc = include_str!("serve/clients.md")]
pub mod clients {}

#[doc = include_str!("links.md")]
#[doc = include_str!("serve/beside.md")]
pub mod beside {}

#[doc = include_str!("links.md")]
#[doc = include_str!("serve/network.md")]
pub mod network {}

#[doc = include_str!("serve/proxy.md")]
pub mod proxy {}

#[doc = include_str!("links.md")]
#[doc = include_str!("serve/server_sizing.md")]
pub mod server_sizing {}

#[doc = include_str!("serve/settings.md")]
pub mod settings {}

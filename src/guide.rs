//! Which ID to use where: in a database, in JavaScript, in a URL, in async code; a service in
//! production, and what to monitor. This module holds only text.
//!
//! | you | read |
//! |---|---|
//! | choose the shape, type and text of an ID | [`keys`] |
//! | embed IDs in a service | [`production`] |
//! | write async code | [`async_code`] |
//! | model threads of your own with loom | [`loom`] |
//! | monitor generators and their leases | [`monitoring`] |
//! | choose the lease and the ring for a load | [`tuning`] |
//! | run the server, `ringflake serve`, or write a client of it | [`serve`] |
//!
//! More pages are beside what they are about: [leases](crate::lease::guide).

// Each page can be read in the repository, too: the links at its end lead to files there. Of two
// definitions the first one counts, here the item of `links.md`, or the picture itself, since
// rustdoc copies no files. Programs follow their pages; packages of their own build them.
#[doc = include_str!("guide/pictures.md")]
#[doc = include_str!("guide/keys.md")]
pub mod keys {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("guide/production.md")]
#[doc = "```rust,ignore"]
#[doc = include_str!("guide/production.rs")]
#[doc = "```"]
pub mod production {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("guide/async_code.md")]
pub mod async_code {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("guide/loom.md")]
#[doc = "```rust,ignore"]
#[doc = include_str!("guide/embedder.rs")]
#[doc = "```"]
pub mod loom {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("guide/monitoring.md")]
pub mod monitoring {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("guide/tuning.md")]
pub mod tuning {}

pub mod serve;

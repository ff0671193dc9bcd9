//! Which ID to use where: in a database, in JavaScript, in a URL, in async code; and what to monitor.
//! This module holds only text.
//!
//! | you | read |
//! |---|---|
//! | choose the shape, type and text of an ID | [`keys`] |
//! | write async code | [`async_code`] |
//! | monitor generators and their leases | [`metrics`] |
//! | run the server, `ringflake serve`, or write a client of it | [`serve`] |
//!
//! More pages are beside what they are about: [leases](crate::lease::guide), and
//! [the lease and the ring for a load](crate::plan::guide).

// Of two definitions of a picture the first one counts: here the picture itself, since
// rustdoc copies no files. Who reads the page in the repository has those.
#[doc = include_str!("guide/pictures.md")]
#[doc = include_str!("guide/keys.md")]
pub mod keys {}

#[doc = include_str!("guide/async_code.md")]
pub mod async_code {}

#[doc = include_str!("guide/metrics.md")]
pub mod metrics {}

pub mod serve;

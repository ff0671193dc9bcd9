//! The HTTP front: axum on a runtime of its own.
//!
//! ```text
//! listen ----> connection ----> call --------> routes -----> take, inspect, health, ...
//! a place      handshake,       a deadline,    axum          a body whose parts are made
//! in Clients   Activity         the head's                   when the client has read those
//!                               size                         before (stream)
//! ```
//!
//! # Bounds
//!
//! | of | by | then |
//! |---|---|---|
//! | open connections, all and of one client | `Clients` | 503, and the connection is closed |
//! | a handshake, a request's head | `Limits::request_time`, `Activity` | the connection is closed |
//! | a request's body, in time | `Limits::request_time` | 408 |
//! | its head and its body, in bytes | `HEAD_BYTES`, `Limits::request_bytes` | 431 or 414, and 413 |
//! | an answer, in time | `Limits::request_time`, and a second more for each MiB | the connection is closed |
//! | an answer that nobody reads | `Limits::request_time` | the connection is closed |
//! | silence between requests | `Limits::idle_time` | the connection is closed, with GOAWAY in HTTP/2 |
//! | requests at once on a connection of HTTP/2 | `STREAMS` | they are refused by HTTP/2 |
//! | IDs of a request | `Limits::count`, and `BINARY_FACTOR` times that in binary | 422 |
//! | long answers at once, all and of one client | `Bulk`, whose queues are fair | they wait, then 503 |
//!
//! A client that trickles bytes is closed as well as one that sends none: a deadline is that
//! of the whole head, body or answer, and no byte moves it. The one task of a connection
//! looks at its deadlines, and needs one timer for all of them.
//!
//! # Fairness
//!
//! An answer of more than `AT_ONCE` IDs is long: it is made in parts of `PART_BYTES`, and
//! each part is a turn of its own in the runtime's queue, so that a short request waits for
//! one part of each long answer at most. A client never has more than half of the places for
//! long answers, whatever number of connections it opens.
//!
//! # No ID twice
//!
//! A take moves an ID out of its generator, and from there it goes into one body, of one
//! answer. If the client is gone by then, or the answer ends early, the ID is lost. Nothing is
//! given back and nothing is kept for a retry. Caches are kept from repeating an answer by
//! `Cache-Control: no-store`, and because only POST takes.
//!
//! # The end
//!
//! When the server drains, listeners are closed first. Then each connection is asked to end:
//! HTTP/1 by `Connection: close` in its last answer, HTTP/2 by GOAWAY. Requests that were
//! begun are answered. [`Front::join`] waits for that until its deadline, closes what is
//! left, and returns when no task has a generator any more.

mod activity;
mod auth;
mod bulk;
mod clients;
mod format;
mod negotiate;
mod order;
mod problem;
mod watched;

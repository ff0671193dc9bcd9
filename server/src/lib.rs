//! A server of unique 64-bit IDs for every language: the Redis protocol and HTTP, on TCP and
//! on Unix sockets.
//!
//! ```text
//! Config --> Server: listeners, Namespaces (a generator each), Access
//!
//!   resp: a thread and an event loop for each core --+
//!                                                    +--> Namespaces --> take --> bytes
//!   http: axum on a runtime of its own --------------+
//! ```
//!
//! A connection belongs to one protocol, and the protocols know nothing of each other. Both ask
//! `Namespaces` for a generator by name, and `Access` for what a client may do. `Server` decides
//! where sockets come from, when it is ready and how it ends; protocols see the end in `Drain`.
//!
//! An ID is unique because the generator of its namespace has leases that nobody else has;
//! nothing here adds to that proof, and nothing here takes from it: an ID that was taken and
//! could not be sent is lost, never sent to another.
//!
//! On Unix only: on other systems the crate is empty.

#![cfg(unix)]

mod access;
mod buffer_budget;
mod clients;
mod config;
mod counters;
mod descriptors;
mod drain;
mod factory;
mod handshake;
mod http;
mod listener;
mod lock;
mod log_limit;
#[cfg(test)]
mod message_tests;
mod named;
mod namespaces;
mod plan;
mod proxy_protocol;
mod rate;
mod readiness;
mod resp;
mod server;
mod setup;
#[cfg(test)]
mod socket_tests;
mod status;
mod tls;
mod tokens;
mod watched_files;
mod wording;

pub use self::config::{
    Config, ConfigError, LimitSettings, LogFormat, LogLevel, LogSettings, NamespaceSettings,
    Protocol, ProtocolSettings, Settings, StoreUrl, TlsSettings, TokenSettings, parse_address,
    parse_addresses, parse_hosts, parse_mode, parse_time,
};
pub use self::listener::Address;
pub use self::namespaces::OpenError;
pub use self::plan::{Plan, PlannedNamespace, PlannedSocket};
pub use self::readiness::Obstacle;
pub use self::server::{Inherited, Server, StartError, Stopped};

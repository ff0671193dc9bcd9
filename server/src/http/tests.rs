//! The front over sockets, each test with one of its own.

mod cross_origin;
mod curl;
mod drain;
mod errors;
mod health;
mod http2;
mod leases;
mod limits;
mod proxied;
mod quiet;
mod rates;
mod served;
mod slow;
mod takes;
mod wire;

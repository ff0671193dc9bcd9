//! The server over sockets, each test with one of its own.

mod cross_origin;
mod drain;
mod errors;
mod health;
mod limits;
mod proxied;
mod rates;
mod served;
mod slow;
mod takes;
mod wire;

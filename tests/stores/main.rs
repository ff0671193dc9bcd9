//! Each store through the suite that all must pass, and through what is its own,
//! on real servers and files.

#![cfg(unix)]

#[macro_use]
extern crate ringflake_kit;

mod etcd;
mod impostor;
mod kit;
mod lost;
mod mysql;
mod postgres;
mod redis;
mod served;
mod sql;
mod sqlite;
mod tier;
mod ways;

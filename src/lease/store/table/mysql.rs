//! A table in a MySQL or MariaDB database. ARCHITECTURE.md shows how it keeps T1 to T5.
//!
//! Entries that are compared and not written have a shared lock. Where they must be absent, the
//! gap is locked, in `REPEATABLE READ`; otherwise transactions are `READ COMMITTED`.

mod errno;
mod flavour;
mod server;
mod session;
mod socket;
mod statements;

use self::session::MySession;
use super::session::ServerTable;

/// The table of a [`MysqlStore`](crate::lease::MysqlStore).
pub type MysqlTable = ServerTable<MySession>;

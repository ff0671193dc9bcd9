//! A table in a MySQL or MariaDB database.
//!
//! | promise | by |
//! |---|---|
//! | T1 | one guarded update, or a transaction that locks, compares and counts ([`statements`]) |
//! | T2 | one statement, which reads one snapshot |
//! | T3 | `SYSDATE()`, in a commit read after the locks |
//! | T4 | `server_uuid`, or of MariaDB `server_id`, host name and data directory; the database |
//! | T5 | `errno`: a commit that was sent and has no definite reply is unknown |
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

//! A table in a PostgreSQL database.
//!
//! | promise | by |
//! |---|---|
//! | T1 | one guarded statement in a transaction ([`lock`], [`statements`]) |
//! | T2 | a transaction that reads one snapshot |
//! | T3 | `clock_timestamp()`, in a commit read after the locks |
//! | T4 | system identifier, the numbers of database, schema and table, timeline |
//! | T5 | `sqlstate`: a commit that was sent and has no definite reply is unknown |
//!
//! Each is one round trip: the statements of a transaction are pipelined, and a guarded
//! statement whose conditions do not hold writes nothing.

mod guard;
mod lock;
mod server;
mod session;
mod sqlstate;
mod statements;
mod tls;
mod wire;

use self::session::PgSession;
use super::session::ServerTable;

/// The table of a [`PostgresStore`](crate::lease::PostgresStore).
pub type PostgresTable = ServerTable<PgSession>;

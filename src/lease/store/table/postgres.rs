//! A table in a PostgreSQL database. ARCHITECTURE.md shows how it keeps T1 to T5.
//!
//! Each operation is one round trip: the statements of a transaction are pipelined, and a guarded
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

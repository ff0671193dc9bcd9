//! A service of any number of processes, on any number of machines, that leases
//! its nodes from PostgreSQL. Start it several times at once.
//!
//! ```sh
//! cargo run --release --features postgres --example cluster_postgres -- \
//!     --init postgres://user:password@localhost/database
//! ```
//!
//! Stop the database while it runs, and start it again: the IDs go on. Without a
//! database at hand, `.ci/with-postgres` runs the command with one of its own.

#[path = "cluster/service.rs"]
mod service;

use std::error::Error;
use std::time::Duration;

use ringflake::lease::{OpenOptions, PostgresStore};

use crate::service::Arguments;

fn main() -> Result<(), Box<dyn Error>> {
    let form = "postgres://USER:PASSWORD@HOST:PORT/DATABASE";
    let arguments = Arguments::read("cluster_postgres", "DATABASE_URL", form);
    // Nothing is connected yet, so this fails for a wrong URL only. TLS and more
    // are parameters of the URL, such as ?ca=FILE.
    let options = OpenOptions::new().timeout(Duration::from_secs(10));
    let store = PostgresStore::from_url(&arguments.url, &options)?;
    service::run(store, &arguments)
}

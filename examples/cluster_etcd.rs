//! A service of any number of processes, on any number of machines, that leases
//! its nodes from an etcd cluster. Start it several times at once.
//!
//! ```sh
//! cargo run --release --features etcd --example cluster_etcd -- \
//!     --init etcd://localhost:2379
//! ```
//!
//! Stop the leader while it runs: the IDs go on. Without a cluster at hand,
//! `.ci/with-etcd` runs the command with a member of its own.

#[path = "cluster/service.rs"]
mod service;

use std::error::Error;
use std::time::Duration;

use ringflake::lease::{EtcdStore, OpenOptions};

use crate::service::Arguments;

fn main() -> Result<(), Box<dyn Error>> {
    let form = "etcd://HOST:PORT,HOST:PORT,...";
    let arguments = Arguments::read("cluster_etcd", "ETCD_URL", form);
    // Name every member: each is tried in turn. Nothing is connected yet, so this
    // fails for a wrong URL only.
    let options = OpenOptions::new().timeout(Duration::from_secs(10));
    let store = EtcdStore::from_url(&arguments.url, &options)?;
    service::run(store, &arguments)
}

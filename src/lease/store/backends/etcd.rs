//! The store that keeps its records in an etcd cluster.

use crate::lease::store::leases::Leases;
use crate::lease::store::options::{OpenError, OpenOptions};
use crate::lease::store::table::etcd::EtcdTable;

/// Leases in an etcd cluster, version 3.4 or later. The
/// [runbook](crate::lease::guide::runbook_etcd) says how to set it up, what its keys, its clock and
/// its incarnation are, what operations cost, and how to restore a snapshot.
///
/// # What is promised
/// Reads and transactions of etcd are linearizable, and a majority of the members has a
/// write on disk before it is confirmed. So a cluster keeps every
/// [rule of leases](crate::lease), through the loss of any minority of its members.
///
/// etcd syncs every write unless it runs with `--unsafe-no-fsync`. A client can't see that
/// option: don't use it here. The store never uses etcd's own leases, since their time starts
/// anew whenever the leader changes.
///
/// # URL
/// `etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][?PARAMETERS]`, or
/// `etcds://` for TLS. The port is 2379 by default. Name all members: one that
/// does not answer is passed over.
///
/// The parameters `tls`, `ca`, `cert`, `key` and `password_file` are
/// [those of every store](crate::lease::open), and `etcds://` is `tls=required`.
/// `ETCDCTL_PASSWORD` is the variable for a password.
///
/// In plain the password is sent as it is. The files of certificates are read before each
/// operation. A client certificate proves that the client may connect, but not which user it is:
/// users log in by password.
///
/// # Examples
/// ```no_run
/// use ringflake::Layout;
/// use ringflake::lease::{EtcdStore, Fingerprint, LeaseStore, Namespace, OpenOptions};
///
/// let url = "etcds://10.0.0.1,10.0.0.2,10.0.0.3";
/// let mut store = EtcdStore::from_url(url, &OpenOptions::new())?;
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// println!("{:?}", store.list(&orders)?.blocks);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type EtcdStore = Leases<EtcdTable>;

impl EtcdStore {
    /// The store at `url`; see there for its form. Connects to nothing yet.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] for another scheme, a parameter that does not
    /// exist, and a file that can't be read.
    pub fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let table = EtcdTable::from_url(url, options)?;
        Ok(Self::over(table).with_patience(options.operation_timeout()))
    }
}

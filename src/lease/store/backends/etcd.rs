//! The store that keeps its records in an etcd cluster.

use crate::lease::store::leases::Leases;
use crate::lease::store::options::{OpenError, OpenOptions};
use crate::lease::store::table::etcd::EtcdTable;

/// Leases in an etcd cluster, version 3.4 or later. The
/// [runbook](crate::lease::guide::runbook_etcd) says how to set it up, and how to restore a
/// snapshot.
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
/// ## The clock
/// etcd's interface has no clock. The store takes the `Date` of each HTTP reply, and so the
/// member's clock, to the second. A client whose clock differs from it by more than the
/// [skew limit](crate::lease::StoreLimits::with_skew) is granted nothing, as in every other
/// store. Members whose replies have no date can't grant.
///
/// ## Incarnation
/// `CLUSTER/REVISION`: the cluster's ID, and the revision at which its first namespace was
/// initialised, or at which a loss was noticed. A restored snapshot often has **the same
/// cluster ID** as before. Two more numbers are therefore compared: the raft term, and the last
/// revision that this store has seen. If one of them has fallen, the next
/// [`acquire`](crate::lease::LeaseStore::acquire) of each namespace raises its floor. That notices
/// most restores and not all, so raise the floor by hand after each.
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
/// operation. The store speaks to the JSON
/// gateway that is part of each member unless it is switched off
/// (`--enable-grpc-gateway=false`). There a client certificate proves that the
/// client may connect, but not which user it is: users log in by password.
///
/// # Keys
/// `ringflake/` and the keys of every [table](crate::lease::store::table), with JSON as values:
/// `etcdctl get --prefix ringflake/` shows them. `ringflake/.history` has the incarnation and
/// the highest raft term.
///
/// # Cost
/// A renewal takes one round trip if the store has heard of the cluster's clock within the
/// horizon less the lease's length (a minute by default), and two if not. Other operations
/// take two, and one more for each conflict. An acquisition of one block reads up to 55 keys;
/// where hardly a block is free, all of them. Each round trip blocks up to
/// [`OpenOptions::timeout`].
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

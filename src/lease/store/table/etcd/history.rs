//! Whether an etcd still has the history in which its entries were written.
//!
//! An incarnation is `CLUSTER/REVISION`: the cluster's ID, and the revision at which its
//! first namespace was initialised, or at which a loss was noticed. It is kept under a key of
//! its own, with the highest raft term that was seen.
//!
//! The cluster's ID alone is not enough. `etcdctl snapshot restore` derives it from
//! `--initial-cluster-token` and the members' peer URLs, so a restore with the same ones has
//! the same ID, and every write after the snapshot is gone. Two more numbers of a reply never
//! fall while a history goes on:
//!
//! * the raft term. A restore starts it at 1 again, and each election raises it. A term below
//!   the recorded one is another history. A restored cluster that has seen as many elections as
//!   the lost one goes unnoticed here.
//! * the revision. A restore takes it back to the snapshot's. A table that lives through the
//!   restore compares it with the last one it saw, as long as the recorded incarnation is the
//!   one it knows: another one means that somebody has noticed already.
//!
//! Neither notices a data directory that was copied as files and put back, since its term
//! goes on; nor `--force-new-cluster` from a member that lagged behind. That, and a restore in
//! a cluster as young as above, needs `raise_floor` by hand.

use serde::{Deserialize, Serialize};

use super::wire::Header;
use crate::lease::store::record::Incarnation;

/// The recorded part of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    /// In 16 hexadecimal digits.
    pub(super) cluster: String,
    pub(super) revision: i64,
    /// The highest that was seen.
    pub(super) raft_term: u64,
}

impl History {
    /// One that begins with this header.
    ///
    /// It differs from the recorded one whenever it is compared with it: that was written at a
    /// later revision than the one it names, so every cluster that has it is past that.
    pub(super) fn beginning(header: &Header) -> Self {
        Self {
            cluster: cluster_name(header),
            revision: header.revision,
            raft_term: header.raft_term,
        }
    }

    /// Recorded in each namespace, so its form never changes.
    pub(super) fn incarnation(&self) -> Incarnation {
        Incarnation::new(format!("{}/{}", self.cluster, self.revision))
    }

    /// The history of a cluster with this `header`, where this one is recorded: itself with the
    /// highest term, or a new one. `last` is the last revision that was seen in this history.
    pub(super) fn continued(&self, header: &Header, last: Option<i64>) -> Self {
        let goes_on = self.cluster == cluster_name(header)
            && header.raft_term >= self.raft_term
            && last.is_none_or(|last| header.revision >= last);
        match goes_on {
            true => Self {
                raft_term: header.raft_term,
                ..self.clone()
            },
            false => Self::beginning(header),
        }
    }
}

fn cluster_name(header: &Header) -> String {
    format!("{:016x}", header.cluster_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incarnation_is_the_cluster_and_the_revision_it_began_at() {
        let header = Header {
            cluster_id: 0xabc,
            raft_term: 3,
            revision: 100,
        };
        let incarnation = History::beginning(&header).incarnation();
        assert_eq!(incarnation.to_string(), "0000000000000abc/100");
    }
}

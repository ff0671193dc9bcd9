//! Whether an etcd still has the history that a record belongs to.
//!
//! An incarnation is `CLUSTER/REVISION`: the cluster's ID, and the revision at
//! which the namespace was initialised there or noticed a change. The cluster's
//! ID alone is not enough. `etcdctl snapshot restore` derives it from the
//! `--initial-cluster-token` and the members' peer URLs, so a restore with the
//! same ones yields the same ID, and every write after the snapshot is gone. Two
//! more numbers of a reply never fall while a history goes on:
//!
//! * the raft term, which a restore starts at 1 again, and each election raises.
//!   The record keeps the highest that was seen; a lower one is another history.
//!   A cluster that has had no more elections than the restored one since goes
//!   unnoticed here;
//! * the revision, which a restore takes back to the snapshot's. A store that
//!   lives through the restore remembers the last one it saw. It compares only
//!   while the record has the incarnation that it knows: another one means that
//!   somebody has noticed already, and raised the floor.
//!
//! Neither notices a data directory that was copied as files and put back: its
//! term goes on. That, and a restore that no store lived through in a cluster as
//! young as that, needs `raise_floor` by hand.

use std::collections::HashMap;

use super::wire::Header;
use crate::lease::record::Incarnation;

/// The histories that a store saw, by namespace.
#[derive(Debug, Default)]
pub(super) struct Histories(HashMap<String, Seen>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    incarnation: Incarnation,
    revision: i64,
}

impl Histories {
    /// The incarnation that a cluster with this `header` has for the namespace:
    /// the recorded one while its history goes on, and a new one otherwise.
    /// `raft_term` is the highest on record.
    pub(super) fn incarnation(
        &self,
        namespace: &str,
        header: &Header,
        recorded: &Incarnation,
        raft_term: u64,
    ) -> Incarnation {
        let same_cluster = recorded
            .as_str()
            .split_once('/')
            .is_some_and(|(cluster, _)| cluster == cluster_name(header));
        let fell_back = self
            .0
            .get(namespace)
            .is_some_and(|seen| seen.incarnation == *recorded && header.revision < seen.revision);
        if same_cluster && header.raft_term >= raft_term && !fell_back {
            recorded.clone()
        } else {
            new_incarnation(header)
        }
    }

    /// Remembers that the namespace had this incarnation at this revision.
    pub(super) fn remember(&mut self, namespace: &str, incarnation: &Incarnation, revision: i64) {
        let seen = Seen {
            incarnation: incarnation.clone(),
            revision,
        };
        self.0.insert(namespace.to_owned(), seen);
    }
}

/// The incarnation of a history that begins with this header.
///
/// It differs from the recorded one whenever that is compared with it: the record
/// was written at a later revision than the one that its incarnation names, so
/// every cluster that has the record is past that revision.
pub(super) fn new_incarnation(header: &Header) -> Incarnation {
    Incarnation::new(format!("{}/{}", cluster_name(header), header.revision))
}

fn cluster_name(header: &Header) -> String {
    format!("{:016x}", header.cluster_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(cluster_id: u64, raft_term: u64, revision: i64) -> Header {
        Header {
            cluster_id,
            raft_term,
            revision,
        }
    }

    #[test]
    fn a_history_goes_on_whatever_is_elected() {
        let mut histories = Histories::default();
        let recorded = new_incarnation(&header(7, 2, 100));
        for (term, revision) in [(2, 101), (2, 101), (9, 5000)] {
            let seen = histories.incarnation("a", &header(7, term, revision), &recorded, 2);
            assert_eq!(seen, recorded);
            histories.remember("a", &seen, revision);
        }
    }

    #[test]
    fn another_cluster_is_another_history() {
        let recorded = new_incarnation(&header(7, 2, 100));
        let seen = Histories::default().incarnation("a", &header(8, 2, 101), &recorded, 2);
        assert_eq!(seen.as_str(), "0000000000000008/101");
    }

    #[test]
    fn a_term_that_falls_is_another_history() {
        let recorded = new_incarnation(&header(7, 5, 100));
        let seen = Histories::default().incarnation("a", &header(7, 4, 101), &recorded, 5);
        assert_ne!(seen, recorded);
    }

    #[test]
    fn a_revision_that_falls_is_another_history_until_noticed() {
        let recorded = new_incarnation(&header(7, 2, 100));
        let mut histories = Histories::default();
        histories.remember("a", &recorded, 500);
        let restored = header(7, 2, 400);
        let noticed = histories.incarnation("a", &restored, &recorded, 2);
        assert_ne!(noticed, recorded);
        // Another namespace, or another store, knows nothing of it.
        assert_eq!(
            histories.incarnation("b", &restored, &recorded, 2),
            recorded
        );

        // Somebody else was first.
        let later = header(7, 2, 401);
        assert_eq!(histories.incarnation("a", &later, &noticed, 2), noticed);
        histories.remember("a", &noticed, 401);
        assert_eq!(histories.incarnation("a", &later, &noticed, 2), noticed);
    }
}

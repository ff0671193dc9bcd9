//! The lock that keeps a namespace's record as it is while grants are renewed.
//!
//! A renewal compares with the record, which must not change until it has committed.
//! Row locks would say that, but the server writes them into the row. Each transaction
//! that comes to share one makes a new list of those that do, a multixact, which is
//! kept on disk until vacuum has seen to it. So the lock that renewals share is an
//! advisory one, which is in memory alone.
//!
//! # The locks of each operation, in this order
//! ```text
//!                     this lock   record       blocks, ledger
//! renewal, release    shared      read         one block, its row of the ledger
//! several renewals    shared, by  read         those that are free, their rows of the
//!                     key                      ledger
//! acquisition         -           FOR SHARE    chosen ones
//! change of record    exclusive   FOR UPDATE   chosen ones, if any
//! ```
//! A change of the record is a floor raised by hand, over lost history, or for a new
//! incarnation. Nothing else writes the row after `init`, before which there is no
//! grant, but an upgrade: it changes the format and the fingerprint, and a comparison
//! with the former values is refused.
//!
//! * **A renewal sees every change that was committed before it.** The lock is a
//!   statement of its own: a statement's snapshot is older than the locks that it
//!   waits for, and the next one's, under `READ COMMITTED`, is newer. A transaction
//!   gives up its locks once others see its commit, so what comes after the lock sees
//!   the record as the last change left it.
//! * **No change comes between the comparison and the commit.** The lock is held
//!   until the commit is durable, and seen. If the renewal waits for its block's row,
//!   the server then compares again with the newest version of that row, and still
//!   with the record of the snapshot. That is the record's newest, too.
//! * **An acquisition and a change** exclude each other on the record's row; an
//!   acquisition and a renewal meet on the block's row.
//! * **Nobody waits in a circle.** All take their locks from left to right in the
//!   picture. Several renewals can be of several namespaces, and take these locks in the
//!   order of their keys; nobody else takes more than one. Nobody waits for a block while
//!   it holds another: several renewals pass over those that somebody has. A change is not
//!   starved: who comes later queues behind it.
//!
//! # Programs that change the record without this lock
//! That is a statement by hand, or a version of this crate that renewed with a shared
//! row lock. The renewals of such a version are safe: a change waits for them on the
//! row. Its changes exclude nothing here, so that a renewal that compared before their
//! commit may commit after it. It then counts as made before the change, which reads
//! no mark but under the lock of its row, and so could not have told the difference:
//! * S1 does not rest on the record. The next grant starts at the mark, which it reads
//!   under the block's row lock, and a renewal of a block that was granted meanwhile
//!   finds another epoch.
//! * A floor over lost grants lies the failover time above all that a renewal can
//!   reach at the moment of the change, and a renewal is over, by its time-outs,
//!   sooner than that.
//! * An incarnation that is not the server's was refused before the change as well.
//!
//! # The key
//! Advisory locks belong to the database, so a namespace of the same name in another
//! schema has the same key, and so have names of the same hash. They wait for each
//! other's changes, and no more: a transaction takes each such lock once. It ends with the
//! transaction, so a pooler that hands out connections by transaction may stand in
//! between, and is in the server's list of locks once for each transaction.

/// "rflk" in ASCII. The pairs of numbers are apart from the single ones, of which
/// `init` has one.
const CLASS: i32 = 0x7266_6c6b;

/// The lock of one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordLock {
    object: i32,
}

impl RecordLock {
    /// Every version must come to the same key, or they don't exclude each other.
    pub(super) fn of(namespace: &str) -> Self {
        let [a, b, c, d, ..] = hmac_sha256::Hash::hash(namespace.as_bytes());
        Self {
            object: i32::from_be_bytes([a, b, c, d]),
        }
    }

    /// The statement that waits until nobody changes the record.
    pub(super) fn shared(self) -> String {
        self.statement("pg_advisory_xact_lock_shared")
    }

    /// The statement that waits until nobody renews.
    pub(super) fn exclusive(self) -> String {
        self.statement("pg_advisory_xact_lock")
    }

    fn statement(self, function: &str) -> String {
        format!("SELECT {function}({CLASS}, {})", self.object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_for_ever() {
        // printf orders | sha256sum
        let lock = RecordLock::of("orders");
        assert_eq!(
            lock.shared(),
            "SELECT pg_advisory_xact_lock_shared(1919315051, 471239387)"
        );
        assert_eq!(
            lock.exclusive(),
            "SELECT pg_advisory_xact_lock(1919315051, 471239387)"
        );
        assert_ne!(RecordLock::of("order"), lock);
    }
}

//! The locks of a commit.
//!
//! A renewal compares its namespace's record, which must not change until the renewal has
//! committed. A shared row lock would ensure that, but the server writes it into the row, and
//! each transaction that comes to share one makes a multixact, which is kept on disk until
//! vacuum removes it. So the lock is an advisory one, which is in memory alone.
//!
//! | a commit | advisory lock of the namespace | rows |
//! |---|---|---|
//! | compares the record, writes blocks | shared | its blocks, in the order of their keys |
//! | writes the record | exclusive | the record |
//! | compares another key without writing it | exclusive | those that it writes |
//!
//! `.secret` counts as a namespace of its own.
//!
//! * **A commit sees every change of the record that was committed before it.** The lock is a
//!   statement of its own: a statement's snapshot is older than the locks that it waits for,
//!   and under `READ COMMITTED` the next one's is newer. A transaction gives up its locks
//!   once others see its commit.
//! * **No change comes between the comparison and the commit.** The lock is held until the
//!   commit is durable, and seen. Rows that are written are locked first; if that waits, the
//!   server compares again with their newest version.
//! * **No circle of waiters.** Advisory locks come first, in the order of their numbers, then
//!   rows that are there, then rows that are inserted, both in the order of their keys. A
//!   commit that waits for an exclusive lock is not starved: later ones queue behind it.
//!
//! Statements by hand take no such lock. A floor that is raised by hand while a renewal is
//! under way counts as raised after it.
//!
//! # The key
//! Advisory locks belong to the database. Namespaces of the same name in two schemas, and names
//! with the same hash, have the same lock, and wait for each other's changes of the record. The
//! lock ends with the transaction, so a pooler that assigns connections by transaction is fine.

use std::collections::BTreeMap;

use crate::lease::store::table::{Key, Txn};

/// "rflk" in ASCII. The pairs of numbers are apart from the single ones, of which creating
/// tables has one.
const CLASS: i32 = 0x7266_6c6b;

/// The number of a namespace's lock.
fn number_of(namespace: &str) -> i32 {
    let [a, b, c, d, ..] = hmac_sha256::Hash::hash(namespace.as_bytes());
    i32::from_be_bytes([a, b, c, d])
}

/// The statements that take a commit's locks.
pub(super) fn statements(txn: &Txn) -> Vec<String> {
    let mut locks = BTreeMap::new();
    let written = |key: &Key| txn.puts.iter().any(|put| put.key == *key);
    let compared = txn.compare.iter().map(|(key, _)| (key, written(key)));
    let puts = txn.puts.iter().map(|put| (&put.key, true));
    for (key, is_written) in compared.chain(puts) {
        let namespace = key.as_str().split('/').next().unwrap_or_default();
        let is_record = *key == Key::record(namespace);
        *locks.entry(number_of(namespace)).or_insert(false) |= is_record == is_written;
    }
    // A written block is neither, and shares the lock.
    let statement = |(number, is_exclusive): (i32, bool)| {
        let function = match is_exclusive {
            true => "pg_advisory_xact_lock",
            false => "pg_advisory_xact_lock_shared",
        };
        format!("SELECT {function}({CLASS}, {number})")
    };
    locks.into_iter().map(statement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::block::Block;
    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::store::table::Put;

    fn txn(compared: &[Key], written: &[Key]) -> Txn {
        let put = |key: &Key| Put {
            key: key.clone(),
            value: String::new(),
            rank: None,
        };
        Txn {
            compare: compared.iter().map(|key| (key.clone(), None)).collect(),
            puts: written.iter().map(put).collect(),
            ..Txn::default()
        }
    }

    #[test]
    fn a_record_is_shared_unless_it_is_written() {
        // printf orders | sha256sum
        let shared = "SELECT pg_advisory_xact_lock_shared(1919315051, 471239387)";
        let exclusive = "SELECT pg_advisory_xact_lock(1919315051, 471239387)";
        let record = Key::record("orders");
        let block = Key::block("orders", Block::new(7));
        let both = [record, block.clone()];
        let only = &both[..1];
        let check = Key::check("orders");
        let secrets = [1, 2].map(|byte| Key::secret(Fingerprint::from_bytes([byte; 16])));
        let of_secrets = number_of(".secret");
        let shared_secrets = format!("SELECT pg_advisory_xact_lock_shared({CLASS}, {of_secrets})");
        let other_secrets = format!("SELECT pg_advisory_xact_lock({CLASS}, {of_secrets})");
        for (compared, written, expected) in [
            (&both[..], &[block.clone()][..], shared),
            (only, &[check], shared),
            (only, only, exclusive),
            (&both, only, exclusive),
            (&[block], &[], exclusive),
            // One that must stay absent.
            (&secrets[..1], &secrets[..1], &shared_secrets),
            (&secrets, &secrets[..1], &other_secrets),
        ] {
            assert_eq!(statements(&txn(compared, written)), [expected]);
        }
    }

    #[test]
    fn locks_are_taken_in_one_order() {
        let blocks = |names: &[&str]| -> Vec<_> {
            let block = |name: &&str| Key::block(name, Block::new(0));
            names.iter().map(block).collect()
        };
        let one = statements(&txn(&[], &blocks(&["a", "b", "c"])));
        let other = statements(&txn(&[], &blocks(&["c", "b", "a", "c"])));
        assert_eq!((one.len(), one), (3, other));
    }
}

//! Entries are stored, and compared, byte for byte.

use super::TableSuite;
use super::connection::{all_of, block, guarded, keys, lowest_of, put, written};
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::store::table::{Commit, Key, Query, Txn};

/// Texts that a server may change without anybody asking for it.
fn texts() -> Vec<String> {
    let texts = [
        r#"{"a":"b"}"#,
        r#"{ "b" : 1.0,  "a":[ ],"a":2 }"#,
        r#"'single' "double" `back` ''twice''"#,
        r"\ \\ \n \u0041 \' %s %% $1 ? :name {0} ;--",
        "trailing spaces  ",
        "  leading spaces",
        "inner  spaces\tand a tab",
        "MiXeD CaSe",
        "Ä ä é e\u{301} ß ﬁ ı 日本語 \u{fffd}",
        "😀 👩\u{200d}🚀",
        "null",
        "007",
        "1e3",
        "2024-02-30 24:00:00",
    ];
    let long = ["x".repeat(1_000), "é".repeat(500), "😀".repeat(250)];
    texts.map(str::to_owned).into_iter().chain(long).collect()
}

/// Pairs that some comparisons take for equal.
const PAIRS: &[(&str, &str)] = &[
    ("value", "Value"),
    ("value", "value "),
    ("value", " value"),
    ("value", "valué"),
    ("é", "e\u{301}"),
    ("ß", "ss"),
    ("ﬁ", "fi"),
    ("1", "1.0"),
    ("1", "01"),
    ("0", "-0"),
    (r#"{"a":1}"#, r#"{"a": 1}"#),
    (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
    (r"\\", r"\"),
    ("a%", "ab"),
    ("a_", "ab"),
];

impl TableSuite<'_> {
    pub(super) fn missing_entries_read_as_empty(&self) {
        let mut table = self.connect();
        let name = "table-suite-missing";
        let secret = Key::secret(Fingerprint::from_bytes([0xa5; 16]));
        let names = [Key::record(name), Key::check(name), block(name, 0), secret];
        for query in [keys(&names), all_of(name), lowest_of(name, 5, 0..10)] {
            let snapshot = table.read(&query);
            assert!(snapshot.entries.is_empty(), "{snapshot:?}");
            assert!(snapshot.complete, "no block is left out of {query:?}");
        }
    }

    pub(super) fn creates_makes_the_first_entries(&self) {
        let mut table = self.connect();
        let [before, first] = ["table-suite-plain", "table-suite-creates"].map(Key::record);
        let txn = |key: &Key, creates| Txn {
            creates,
            ..guarded((key, None), put(key, "made"))
        };
        let read = keys([&before]);
        match table.0.commit(&txn(&before, false), &read) {
            Ok(Commit::Done) => {
                assert_eq!(table.value(&before).as_deref(), Some("made"));
            }
            // Without tables.
            Err(StoreError::TableMissing { .. }) => assert_eq!(table.value(&before), None),
            other => panic!("{other:?}, of a commit that creates nothing"),
        }
        table.must_commit(&txn(&first, true));
        assert_eq!(table.value(&first).as_deref(), Some("made"));
        // It creates nothing that is there.
        let conflict = table.must_conflict(&txn(&first, true), &keys([&first]));
        assert_eq!(conflict.entries, written(&[put(&first, "made")]));
        assert_eq!(self.connect().value(&first).as_deref(), Some("made"));
    }

    pub(super) fn values_come_back_byte_for_byte(&self) {
        let mut table = self.connect();
        let name = "table-suite-values";
        let indices = 0..;
        let puts: Vec<_> = indices
            .zip(texts())
            .map(|(index, text)| put(&block(name, index), &text))
            .collect();
        table.write(puts.clone());
        for mut connection in [table, self.connect()] {
            assert_eq!(connection.entries(&all_of(name)), written(&puts));
        }
        let mut table = self.connect();
        for key in [Key::record(name), Key::check(name)] {
            for text in texts() {
                table.write([put(&key, &text)]);
                assert_eq!(table.value(&key), Some(text));
            }
        }
        // The longest name of all.
        let name = format!("table-suite-{}", "n".repeat(52));
        let key = block(&name, u64::MAX);
        table.write([put(&key, "far")]);
        assert_eq!(table.entries(&all_of(&name)), written(&[put(&key, "far")]));
        let secret = Key::secret(Fingerprint::from_bytes([0xa6; 16]));
        table.write([put(&secret, &name)]);
        assert_eq!(table.value(&secret), Some(name));
    }

    pub(super) fn a_put_replaces_the_value(&self) {
        let mut table = self.connect();
        let name = "table-suite-replaces";
        for key in [Key::record(name), Key::check(name), block(name, 7)] {
            for value in ["one", "two", "one", "one", "three"] {
                table.write([put(&key, value)]);
                assert_eq!(table.value(&key).as_deref(), Some(value));
            }
        }
    }

    pub(super) fn a_commit_shows_on_every_connection(&self) {
        let mut tables = [self.connect(), self.connect(), self.connect()];
        let key = Key::record("table-suite-shows");
        for round in 0..30_usize {
            let value = round.to_string();
            tables[round % 3].write([put(&key, &value)]);
            for table in &mut tables {
                assert_eq!(table.value(&key).as_ref(), Some(&value));
            }
        }
    }

    pub(super) fn values_are_compared_byte_by_byte(&self) {
        let mut table = self.connect();
        let name = "table-suite-compared";
        let swapped = PAIRS.iter().map(|(one, other)| (other, one));
        let pairs = PAIRS.iter().map(|(one, other)| (one, other));
        for key in [Key::record(name), block(name, 0)] {
            for (&stored, &other) in pairs.clone().chain(swapped.clone()) {
                table.write([put(&key, stored)]);
                let txn = |expected| guarded((&key, Some(expected)), put(&key, "changed"));
                let read = keys([&key]);
                let conflict = table.must_conflict(&txn(other), &read);
                assert_eq!(conflict.entries, written(&[put(&key, stored)]));
                table.must_commit(&txn(stored));
            }
        }
        for text in texts() {
            let key = Key::record(name);
            table.write([put(&key, &text)]);
            table.must_commit(&guarded((&key, Some(&text)), put(&key, "changed")));
        }
        assert_eq!(table.entries(&Query::default()).len(), 0);
    }
}

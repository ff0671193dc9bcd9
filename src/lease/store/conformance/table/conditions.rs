//! A commit is applied as a whole, and only if all of its conditions hold.

use super::TableSuite;
use super::connection::{block, guarded, keys, lowest_of, marked, put, written};
use crate::lease::fingerprint::Fingerprint;
use crate::lease::store::record::Incarnation;
use crate::lease::store::table::{Key, Put, Query, Txn};

const HOUR_MS: u64 = 3_600_000;

impl TableSuite<'_> {
    pub(super) fn a_commit_needs_every_compared_value(&self) {
        let mut table = self.connect();
        let name = "table-suite-conditions";
        let compared: Vec<_> = (0..5).map(|index| block(name, index)).collect();
        let unrelated = Key::check(name);
        let known: Vec<_> = [0, 1, 3].map(|at| put(&compared[at], "known")).into();
        table.write(known.clone());
        let before = written(&known);
        let matching: Vec<_> = compared
            .iter()
            .map(|key| (key.clone(), before.get(key).cloned()))
            .collect();

        let read = keys(compared.iter().chain([&unrelated]));
        for wrong in 0..compared.len() {
            let mismatches = match matching[wrong].1 {
                Some(_) => [None, Some("other"), Some("")].to_vec(),
                None => [Some("known"), Some("")].to_vec(),
            };
            for expected in mismatches {
                let mut compare = matching.clone();
                compare[wrong].1 = expected.map(str::to_owned);
                let all: Vec<_> = compared.iter().map(|key| put(key, "new")).collect();
                let is_other = |it: &&Put| it.key != compared[wrong];
                let others: Vec<_> = all.iter().filter(is_other).cloned().collect();
                for puts in [all.clone(), others, vec![put(&unrelated, "new")]] {
                    let txn = Txn {
                        compare: compare.clone(),
                        puts,
                        ..Txn::default()
                    };
                    let conflict = table.must_conflict(&txn, &read);
                    assert_eq!(conflict.entries, before, "after {txn:?}");
                    assert_eq!(table.entries(&read), before, "after {txn:?}");
                }
            }
        }
        let changed = ["new", "newer"].map(|value| [put(&compared[2], value)]);
        for puts in &changed {
            let compare = match puts[0].value.as_str() {
                "new" => matching.clone(),
                _ => vec![(compared[2].clone(), Some("new".to_owned()))],
            };
            table.must_commit(&Txn {
                compare,
                puts: puts.to_vec(),
                ..Txn::default()
            });
        }
        let after = written(known.iter().chain(&changed[1]));
        assert_eq!(table.entries(&read), after);
    }

    pub(super) fn a_conflict_shows_what_instead_reads(&self) {
        let mut table = self.connect();
        let name = "table-suite-instead";
        let [compared, asked] = [Key::record(name), Key::check(name)];
        let blocks: Vec<_> = (0..5).map(|index| marked(name, index, 9 - index)).collect();
        let records = [put(&compared, "compared"), put(&asked, "asked")];
        table.write(blocks.iter().chain(&records).cloned());
        let txn = guarded((&compared, None), put(&compared, "new"));
        let lowest = lowest_of(name, 2, 0..1);
        let absent = block("table-suite-instead-absent", 0);
        for instead in [
            Query {
                keys: vec![asked.clone(), absent.clone()],
                ..lowest.clone()
            },
            keys([&asked]),
            keys([&absent]),
            keys([&compared]),
            lowest,
            Query::default(),
        ] {
            let read = table.read(&instead);
            let conflict = table.must_conflict(&txn, &instead);
            assert_eq!(conflict.entries, read.entries, "{instead:?}");
            assert_eq!(conflict.complete, read.complete, "{instead:?}");
            assert_eq!(conflict.incarnation, read.incarnation);
            let [earlier, later] =
                [read, conflict].map(|snapshot| snapshot.time.expect("the server has a clock"));
            assert!(
                later.latest_unix_ms >= earlier.earliest_unix_ms,
                "{later:?} is before {earlier:?}"
            );
        }
    }

    pub(super) fn a_commit_is_bounded_in_time(&self) {
        let mut table = self.connect();
        let key = Key::record("table-suite-time");
        let mut value = "0".to_owned();
        table.write([put(&key, &value)]);
        let read = keys([&key]);
        // From and to, in milliseconds after the server's time, and whether that time is
        // between them.
        const LONG: i64 = HOUR_MS as i64;
        for (round, (from, to, is_now)) in [
            (Some(LONG), None, false),
            (None, Some(-LONG), false),
            (Some(LONG), Some(-LONG), false),
            (Some(LONG), Some(2 * LONG), false),
            (Some(-2 * LONG), Some(-LONG), false),
            (Some(0), None, true),
            (Some(-LONG), None, true),
            (None, Some(LONG), true),
            (Some(0), Some(LONG), true),
        ]
        .into_iter()
        .enumerate()
        {
            let now = table.read(&read).time.expect("the server has a clock");
            let at = |offset: i64| now.unix_ms.saturating_add_signed(offset);
            let next = round.to_string() + "!";
            let txn = Txn {
                not_before_unix_ms: from.map_or(0, at),
                not_after_unix_ms: to.map_or(u64::MAX, at),
                ..guarded((&key, Some(&value)), put(&key, &next))
            };
            match is_now {
                true => {
                    table.must_commit(&txn);
                    value = next;
                }
                false => {
                    let conflict = table.must_conflict(&txn, &read);
                    assert_eq!(conflict.entries, written(&[put(&key, &value)]));
                }
            }
            assert_eq!(table.value(&key).as_ref(), Some(&value));
        }
    }

    pub(super) fn a_commit_is_bound_to_an_incarnation(&self) {
        let mut table = self.connect();
        let key = Key::record("table-suite-incarnation");
        table.write([put(&key, "0")]);
        let read = keys([&key]);
        let shown = table.read(&read).incarnation;
        let longer = Incarnation::new(format!("{}0", shown.as_str()));
        let other = Incarnation::new("table-suite");
        let mut value = "0".to_owned();
        for (incarnation, holds) in [
            (Some(other), false),
            (Some(longer), false),
            (Some(shown), true),
            (None, true),
        ] {
            let next = format!("{incarnation:?}");
            let txn = Txn {
                incarnation,
                ..guarded((&key, Some(&value)), put(&key, &next))
            };
            match holds {
                true => {
                    table.must_commit(&txn);
                    value = next;
                }
                false => drop(table.must_conflict(&txn, &read)),
            }
            assert_eq!(table.value(&key).as_ref(), Some(&value));
        }
    }

    pub(super) fn a_commit_spans_namespaces(&self) {
        let mut table = self.connect();
        let names = [
            "table-suite-span-1",
            "table-suite-span-2",
            "table-suite-span-3",
        ];
        let secret = Key::secret(Fingerprint::from_bytes([0xa7; 16]));
        let all: Vec<_> = names
            .iter()
            .flat_map(|name| [Key::record(name), block(name, 1), Key::check(name)])
            .chain([secret])
            .collect();
        let read = keys(&all);
        let mut txn = Txn {
            compare: all.iter().map(|key| (key.clone(), None)).collect(),
            puts: all.iter().map(|key| put(key, key.as_str())).collect(),
            creates: true,
            ..Txn::default()
        };
        table.must_commit(&txn);
        let known = written(&txn.puts);
        assert_eq!(table.entries(&read), known);
        for (key, expected) in &mut txn.compare {
            *expected = Some(key.as_str().to_owned());
        }
        txn.puts = all.iter().map(|key| put(key, "new")).collect();
        for place in 0..all.len() {
            let mut wrong = txn.clone();
            wrong.compare[place].1 = None;
            assert_eq!(table.must_conflict(&wrong, &read).entries, known);
        }
        table.must_commit(&txn);
        assert_eq!(table.entries(&read), written(&txn.puts));
    }

    pub(super) fn a_commit_has_up_to_127_keys(&self) {
        let mut table = self.connect();
        let name = "table-suite-many";
        let long = "v".repeat(1_000);
        let blocks: Vec<_> = (0..127).map(|index| block(name, index)).collect();
        let read = keys(&blocks);
        let mut txn = Txn {
            compare: blocks.iter().map(|key| (key.clone(), None)).collect(),
            puts: blocks.iter().map(|key| put(key, &long)).collect(),
            creates: true,
            ..Txn::default()
        };
        table.must_commit(&txn);
        let known = written(&txn.puts);
        assert_eq!(table.entries(&read), known);
        for (_, expected) in &mut txn.compare {
            *expected = Some(long.clone());
        }
        let place_of = |key: &Key| blocks.iter().position(|it| it == key);
        txn.puts = blocks.iter().map(|key| put(key, key.as_str())).collect();
        for wrong in [0, 63, 126] {
            let mut txn = txn.clone();
            txn.compare[wrong].1 = None;
            txn.puts.retain(|put| place_of(&put.key) != Some(wrong));
            assert_eq!(table.must_conflict(&txn, &read).entries, known);
        }
        table.must_commit(&txn);
        assert_eq!(table.entries(&read), written(&txn.puts));
    }

    pub(super) fn a_query_has_up_to_250_keys(&self) {
        let mut table = self.connect();
        let name = "table-suite-query";
        let record = put(&Key::record(name), "record");
        let blocks: Vec<_> = (0..120).map(|at| marked(name, 2 * at, at)).collect();
        table.write(blocks.iter().chain([&record]).cloned());
        // Every other block is absent.
        let asked = (0..249).map(|index| block(name, index));
        let query = Query {
            keys: asked.chain([record.key.clone()]).collect(),
            ..lowest_of("table-suite-query-none", 10, 0..10)
        };
        let known = written(blocks.iter().chain([&record]));
        assert_eq!(table.entries(&query), known);
        let txn = guarded((&record.key, None), put(&record.key, "new"));
        assert_eq!(table.must_conflict(&txn, &query).entries, known);
    }
}

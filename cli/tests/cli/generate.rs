//! What `generate` prints.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::Stdio;

use ringflake::Id;

use crate::home::{Home, Parts, assert_new, distinct, spawn, stderr, succeed};
use ringflake_kit::unix_ms;

#[test]
fn each_format_writes_the_same_kind_of_ids() {
    let home = Home::new();
    home.run("keygen");
    let before = unix_ms() / 1000 * 1000;
    let read = |format: &str, line: &str| match format {
        "i64" => Id::from_i64(line.parse().unwrap()),
        "u64" => Id::from_u64(line.parse().unwrap()),
        "base32hex" => line.parse().unwrap(),
        _ => id_of_json(line),
    };
    let mut written = vec![("u64le", home.generate("-n 300"))];
    for format in ["i64", "u64", "base32hex", "json"] {
        let text = home.print(format!("generate -n 300 --format {format}"));
        let ids = text.lines().map(|line| read(format, line).to_u64());
        written.push((format, ids.collect()));
    }
    for (format, ids) in written {
        let ids: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let parts = home.inspect("--input u64", &ids);
        assert_eq!(parts.len(), 300, "{format}");
        assert_eq!(distinct(parts.iter().map(Parts::cell)), 300, "{format}");
        for parts in parts {
            let time = before..=unix_ms();
            assert!(time.contains(&parts.unix_ms), "{format} {parts:?}");
        }
    }
}

fn id_of_json(line: &str) -> Id {
    let object: BTreeMap<String, String> = serde_json::from_str(line).unwrap();
    let id: Id = object["id"].parse().unwrap();
    let expected = [
        ("i64", id.to_i64().to_string()),
        ("id", id.to_string()),
        ("u64", id.to_u64().to_string()),
    ];
    assert_eq!(
        object,
        expected.map(|(name, id)| (name.to_owned(), id)).into()
    );
    id
}

#[test]
fn plain_ids_are_sorted() {
    let home = Home::new();
    let ids = home.generate("--plain -n 300000");
    assert!(ids.is_sorted());
    assert_eq!((ids.len(), distinct(ids)), (300_000, 300_000));
    assert!(!home.data_dir().join("secret").exists());
}

#[test]
fn a_layout_can_be_spelled_out() {
    let home = Home::new();
    let layout = "--layout 33/20/11@2020-01-01T00:00:00Z/250ms";
    let ids = home.print(format!("generate -n 5000 {layout}"));
    let parts = home.inspect(layout, &ids);
    assert_new(&parts);
    assert!(parts.iter().all(|parts| parts.unix_ms % 250 == 0));
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let home = Home::new();
    home.run("keygen");
    for format in ["base32hex", "u64le"] {
        let line = format!("generate -n 1000000000 --format {format}");
        let mut child = spawn(&mut home.command(line));
        let mut first = [0; 8];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(stderr(&succeed(output)), "", "{format}");
    }
    let mut child = spawn(home.command("inspect --plain").stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    // Until nobody reads any more.
    while stdin.write_all(b"1\n2\n3\n4\n5\n6\n7\n8\n").is_ok() {}
    assert_eq!(stderr(&succeed(child.wait_with_output().unwrap())), "");
}

#[test]
fn a_stdout_that_nobody_reads_changes_no_verdict() {
    let home = Home::new();
    for format in ["text", "json"] {
        let inspect = format!("inspect --plain --format {format}");
        for (input, status) in [("1\n2\n", 0), ("1\nn!\n2\n", 1)] {
            let output = home.feed_unread(&inspect, input.as_bytes());
            assert_eq!(output.status.code(), Some(status), "{format} {input:?}");
            let faults = stderr(&output);
            assert_eq!(faults.starts_with("line 2: "), status == 1, "{faults}");
            assert_eq!(faults.lines().count(), status as usize, "{faults}");

            let output = home.feed_unread(format!("{inspect} {input}"), b"");
            assert_eq!(output.status.code(), Some(status), "{format} {input:?}");
        }
    }
    for clean in [
        "generate",
        "verify --plain -n 1000",
        "bench --rounds 1 --only encrypt_batch",
    ] {
        succeed(home.feed_unread(clean, b""));
    }
}

//! What `generate` prints.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::Stdio;

use ringflake::{Id, Layout};

use crate::home::{Home, Parts, distinct, fail, numbers, spawn, stderr, succeed, unix_ms};
use ringflake_kit::assert_says;

#[test]
fn ten_ids_in_base32hex_are_the_default() {
    let home = Home::new();
    let text = home.print(&["generate"]);
    let ids: Vec<Id> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(ids.len(), 10);
    assert_eq!(distinct(ids), 10);
}

#[test]
fn each_format_writes_the_same_kind_of_ids() {
    let home = Home::new();
    home.run(&["keygen"]);
    let before = unix_ms() / 1000 * 1000;
    for format in ["i64", "u64", "base32hex", "json", "u64le"] {
        let args = ["generate", "-n", "300", "--format", format];
        let output = succeed(home.run(&args)).stdout;
        let text = String::from_utf8_lossy(&output).into_owned();
        let ids: Vec<Id> = match format {
            "i64" => text
                .lines()
                .map(|line| Id::from_i64(line.parse().unwrap()))
                .collect(),
            "u64" => text
                .lines()
                .map(|line| Id::from_u64(line.parse().unwrap()))
                .collect(),
            "base32hex" => text.lines().map(|line| line.parse().unwrap()).collect(),
            "json" => text.lines().map(id_of_json).collect(),
            _ => numbers(&output).into_iter().map(Id::from_u64).collect(),
        };
        assert_eq!(ids.len(), 300, "{format}");
        let ids: Vec<_> = ids.iter().map(Id::to_string).collect();
        let parts = home.inspect(&[], &ids.join("\n"));
        assert_eq!(distinct(parts.iter().map(Parts::cell)), 300, "{format}");
        for parts in parts {
            assert!(
                (before..=unix_ms()).contains(&parts.unix_ms),
                "{format} {parts:?}"
            );
        }
    }
}

fn id_of_json(line: &str) -> Id {
    let object: BTreeMap<String, String> = serde_json::from_str(line).unwrap();
    let names: Vec<_> = object.keys().map(String::as_str).collect();
    assert_eq!(names, ["i64", "id", "u64"]);
    let id: Id = object["id"].parse().unwrap();
    assert_eq!(object["i64"], id.to_i64().to_string());
    assert_eq!(object["u64"], id.to_u64().to_string());
    id
}

#[test]
fn no_ids_are_no_output() {
    let home = Home::new();
    assert_eq!(home.print(&["generate", "-n", "0"]), "");
}

#[test]
fn plain_ids_are_sorted_by_time() {
    let home = Home::new();
    let args = ["generate", "--plain", "-n", "300000", "--format", "u64le"];
    let ids = numbers(&succeed(home.run(&args)).stdout);
    assert_eq!(ids.len(), 300_000);
    assert_eq!(distinct(ids.iter().copied()), 300_000);
    let tick = |id: &u64| Layout::RANDFLAKE.unpack(*id).unwrap().tick;
    assert!(ids.is_sorted_by_key(tick));
    assert!(!home.data_dir().join("secret").exists());
}

#[test]
fn several_threads_print_every_id_once() {
    let home = Home::new();
    for format in ["u64", "u64le"] {
        let args = [
            "generate",
            "--plain",
            "-n",
            "300001",
            "--threads",
            "3",
            "--format",
            format,
        ];
        let output = succeed(home.run(&args)).stdout;
        let ids = match format {
            "u64le" => numbers(&output),
            _ => {
                let text = String::from_utf8(output).unwrap();
                text.lines().map(|line| line.parse().unwrap()).collect()
            }
        };
        assert_eq!(ids.len(), 300_001);
        assert_eq!(distinct(ids), 300_001);
    }
}

#[test]
fn js_safe_ids_stay_under_2_to_the_53() {
    let home = Home::new();
    let js_safe = [
        "generate", "--layout", "js-safe", "-n", "50000", "--format", "u64",
    ];
    let text = home.print(&[&js_safe[..], &["--plain"]].concat());
    let ids: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(ids.iter().all(|&id| id < 1 << 53));
    assert_eq!(distinct(ids), 50_000);
    // Encrypted ones would not.
    let message = fail(home.run(&js_safe));
    assert!(message.contains("53 bits"), "{message}");
}

#[test]
fn a_layout_that_ran_out_is_refused_and_leaves_nothing_behind() {
    let home = Home::new();
    let message = fail(home.run(&["generate", "--layout", "baidu"]));
    assert_says(&message, &["ran out of ticks at 2024-11-20T21:24:16Z"]);
    assert!(!home.data_dir().exists());
}

#[test]
fn a_layout_can_be_spelled_out() {
    let home = Home::new();
    let layout = ["--layout", "33/20/11@2020-01-01T00:00:00Z/250ms"];
    let ids = home.print(&[&["generate", "-n", "5000"], &layout[..]].concat());
    let before = unix_ms() - 60_000;
    for parts in home.inspect(&layout, &ids) {
        assert!((before..=unix_ms()).contains(&parts.unix_ms), "{parts:?}");
        assert_eq!(parts.unix_ms % 250, 0);
    }
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let home = Home::new();
    home.run(&["keygen"]);
    for format in ["base32hex", "u64le"] {
        let args = [
            "generate",
            "-n",
            "1000000000",
            "--threads",
            "2",
            "--format",
            format,
        ];
        let mut child = spawn(&mut home.command(&args));
        let mut first = [0; 8];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(stderr(&succeed(output)), "", "{format}");
    }
    let mut child = spawn(home.command(&["inspect"]).stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    // Until nobody reads any more.
    while stdin.write_all(b"1\n2\n3\n4\n5\n6\n7\n8\n").is_ok() {}
    assert_eq!(stderr(&succeed(child.wait_with_output().unwrap())), "");
}

#[test]
fn a_stdout_that_nobody_reads_changes_no_verdict() {
    let home = Home::new();
    let inspect = ["inspect", "--plain", "--format"];
    for format in ["text", "json"] {
        let inspect = [&inspect[..], &[format]].concat();
        for (input, status) in [("1\n2\n", 0), ("1\nn!\n2\n", 1)] {
            let output = home.feed_unread(&inspect, input.as_bytes());
            assert_eq!(output.status.code(), Some(status), "{format} {input:?}");
            let faults = stderr(&output);
            assert_eq!(faults.starts_with("line 2: "), status == 1, "{faults}");
            assert_eq!(faults.lines().count(), status as usize, "{faults}");

            let ids = Vec::from_iter(input.lines());
            let output = home.feed_unread(&[&inspect[..], &ids].concat(), b"");
            assert_eq!(output.status.code(), Some(status), "{format} {ids:?}");
        }
    }
    for clean in [
        &["generate"][..],
        &["verify", "--plain", "-n", "1000"],
        &["bench", "--rounds", "1", "--only", "encrypt_batch"],
    ] {
        succeed(home.feed_unread(clean, b""));
    }
}

//! What a data directory knows of the IDs that were made from it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::home::{
    Home, distinct, fail, lie_above_all, numbers, spawn, stderr, stdout, succeed, unix_ms,
};
use ringflake_kit::assert_says;

/// IDs made now begin at the clock, and not above a past that is lost.
fn assert_new(home: &Home, ids: &str) {
    for parts in home.inspect(&[], ids) {
        assert!(parts.unix_ms <= unix_ms(), "{parts:?}");
    }
}

#[test]
fn twenty_first_runs_at_once_begin_one_record() {
    let home = Home::new();
    let children: Vec<_> = (0..20)
        .map(|number| {
            let plain = if number % 4 == 0 {
                &["--plain"][..]
            } else {
                &[]
            };
            let args = [&["generate", "--format", "u64"], plain].concat();
            (plain.len(), spawn(&mut home.command(&args)))
        })
        .collect();
    let mut ids = Vec::new();
    for (plain, child) in children {
        let output = succeed(child.wait_with_output().unwrap());
        let lines = stdout(&output);
        ids.extend(lines.lines().map(|line| (plain, line.to_owned())));
    }
    assert_eq!(ids.len(), 200);
    assert_eq!(distinct(ids.iter()), 200);
    let encrypted = ids.iter().filter(|(plain, _)| *plain == 0);
    let encrypted: Vec<_> = encrypted.map(|(_, id)| id.as_str()).collect();
    let parts = home.inspect(&["--input", "u64"], &encrypted.join("\n"));
    assert_eq!(parts.len(), 150);
    assert!(parts.iter().all(|parts| parts.unix_ms <= unix_ms()));
}

#[test]
fn keygen_begins_the_record() {
    let home = Home::new();
    succeed(home.run(&["keygen"]));
    assert_eq!(fs::read(home.data_dir().join("leases.db")).unwrap(), b"");
    let output = succeed(home.run(&["generate"]));
    assert_eq!(stderr(&output), "");
    assert_new(&home, &stdout(&output));
}

#[test]
fn a_store_that_was_removed_starts_above_all_it_has_granted() {
    let home = Home::new();
    let before = home.print(&["generate"]);
    home.print(&["generate", "--plain", "--layout", "twitter"]);
    fs::remove_file(home.data_dir().join("leases.db")).unwrap();

    let asked_ms = unix_ms();
    let output = succeed(home.run(&["generate"]));
    let said = stderr(&output);
    assert_says(&said, &["no record", "120 s"]);
    assert!(said.contains("waiting"), "{said}");
    let after = stdout(&output);
    let parts = home.inspect(&[], &after);
    assert!(lie_above_all(&parts, asked_ms), "{parts:?}");
    assert_eq!(
        distinct(
            [&before, &after]
                .map(|ids| ids.lines())
                .into_iter()
                .flatten()
        ),
        20
    );

    // What was known of the other namespace was lost with it.
    let args = ["generate", "--plain", "--layout", "twitter"];
    let asked_ms = unix_ms();
    let output = succeed(home.run(&args));
    assert!(stderr(&output).contains("no record"), "{}", stderr(&output));
    let args = ["--plain", "--input", "base32hex", "--layout", "twitter"];
    let parts = home.inspect(&args, &stdout(&output));
    assert!(lie_above_all(&parts, asked_ms), "{parts:?}");
}

#[test]
fn what_is_declared_by_hand_holds_for_one_namespace() {
    let home = Home::new();
    home.print(&["generate", "--plain", "--layout", "twitter"]);
    succeed(home.run(&["keygen"]));
    fs::remove_file(home.data_dir().join("leases.db")).unwrap();
    home.print(&["store", "init", "--history", "new"]);
    let output = succeed(home.run(&["generate"]));
    assert_eq!(stderr(&output), "");
    assert_new(&home, &stdout(&output));
    let output = succeed(home.run(&["generate", "--plain", "--layout", "twitter"]));
    assert!(stderr(&output).contains("no record"), "{}", stderr(&output));
}

#[test]
#[cfg(target_os = "linux")]
fn a_store_that_was_written_over_is_not_taken_for_new() {
    // With extended attributes, as build directories have and memory may not.
    let disk = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = Home::new();
    let data_dir = disk.path().join("data");
    let generate = ["generate", "--data-dir", data_dir.to_str().unwrap()];
    let before = home.print(&generate);
    fs::write(data_dir.join("leases.db"), "").unwrap();
    let output = succeed(home.run(&generate));
    assert!(stderr(&output).contains("no record"), "{}", stderr(&output));
    let after = stdout(&output);
    assert_eq!(distinct(before.lines().chain(after.lines())), 20);
}

#[test]
fn a_secret_from_elsewhere_is_refused_until_it_is_vouched_for() {
    let home = Home::new();
    let file = home.file("ringflake.key");
    home.run(&["keygen", "--out", file.to_str().unwrap()]);
    let given = ["--secret-file", file.to_str().unwrap()];
    // Where it was made it makes IDs at once.
    let ids = home.print(&[&["generate"], &given[..]].concat());
    // As the container beside this one, or the next.
    let other = home.file("other").to_str().unwrap().to_owned();
    let generate = [&["generate", "--data-dir", &other], &given[..]].concat();
    let message = fail(home.run(&generate));
    for way_out in [
        given[1],
        "--store",
        "--history new",
        "--history unknown",
        &other,
    ] {
        assert!(message.contains(way_out), "{way_out}: {message}");
    }
    assert!(!Path::new(&other).join("leases.db").exists());
    follow(&home, &message);
    let others = home.print(&generate);
    // That is what was vouched for, and here it isn't true.
    assert_eq!((ids.lines().count(), others.lines().count()), (10, 10));

    // The same for one that is put where secrets are kept.
    fs::remove_dir_all(&other).unwrap();
    fs::create_dir(&other).unwrap();
    fs::rename(&file, Path::new(&other).join("secret")).unwrap();
    let message = fail(home.run(&generate[..3]));
    assert!(message.contains("was not made in"), "{message}");
}

#[test]
fn a_secret_makes_ids_from_leases_db_or_a_store_and_not_both() {
    let home = Home::new();
    let url = format!("sqlite:{}", home.file("shared.db").display());
    let shared = ["--store", &url, "--namespace", "orders"];
    let init = [&["store", "init", "--history", "new"], &shared[..]].concat();
    let keygen = |name: &str| {
        let path = home.file(name).to_str().unwrap().to_owned();
        home.run(&["keygen", "--out", &path]);
        ["--secret-file".to_owned(), path]
    };

    // First from leases.db.
    let here = keygen("here.key");
    let here = here.each_ref().map(String::as_str);
    home.print(&[&["generate"], &here[..]].concat());
    let message = fail(home.run(&[&init[..], &here].concat()));
    assert!(message.contains("keygen --out"), "{message}");
    assert!(!home.file("shared.db").exists());

    // First from the store.
    let there = keygen("there.key");
    let there = there.each_ref().map(String::as_str);
    home.print(&[&init[..], &there].concat());
    home.print(&[&["generate"], &shared[..], &there].concat());
    let message = fail(home.run(&[&["generate"], &there[..]].concat()));
    assert!(message.contains("share a store"), "{message}");
    // One that the store has refused was not given to it.
    let kept = keygen("kept.key");
    let kept = kept.each_ref().map(String::as_str);
    let refused = home.run(&[&["generate"], &shared[..], &kept].concat());
    assert_eq!(refused.status.code(), Some(1));
    home.print(&[&["generate"], &kept[..]].concat());

    // A store that is leases.db is no other one.
    let leases = format!("sqlite:{}", home.data_dir().join("leases.db").display());
    let name = home.print(&[&["store", "check", "--format", "json"], &here[..]].concat());
    let name: Value = serde_json::from_str(&name).unwrap();
    let name = name["namespace"].as_str().unwrap();
    let bits = ["--block-bits", "0", "--namespace", name];
    home.print(&[&["generate", "--store", &leases], &bits[..], &here].concat());
}

#[test]
fn a_store_that_was_put_back_by_renaming_is_not_taken_for_new() {
    let home = Home::new();
    home.print(&["generate", "-n", "3"]);
    let store = home.data_dir().join("leases.db");
    let backup = home.file("backup");
    fs::copy(&store, &backup).unwrap();
    // 4,096 IDs a second on one node: the first ones reach seconds ahead, where those of
    // a run that knew nothing of them would lie.
    let plain = |count| {
        let layout = ["--plain", "--layout", "js-safe", "--nodes", "0..1"];
        let args = ["generate", "--format", "u64le", "-n", count];
        succeed(home.run(&[&args[..], &layout].concat()))
    };
    let before = numbers(&plain("40k").stdout);
    fs::rename(&backup, &store).unwrap();
    let output = plain("1k");
    assert!(stderr(&output).contains("no record"), "{}", stderr(&output));
    let after = numbers(&output.stdout);
    assert_eq!(distinct(before.iter().chain(&after)), 41_000);
    // What is on record in it is refused: it was written for another file.
    let message = fail(home.run(&["generate", "-n", "3"]));
    assert!(message.contains("put back"), "{message}");
}

/// Runs the command that a message names between quotes, as a shell would.
fn follow(home: &Home, message: &str) {
    let command = message
        .split('\'')
        .find(|part| part.starts_with("ringflake "));
    let words = command.unwrap_or_else(|| panic!("no command in {message}"));
    let words: Vec<_> = words.split_whitespace().skip(1).collect();
    succeed(home.run(&words));
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .arg("-r")
        .args([from, to])
        .status()
        .unwrap();
    assert!(copied.success());
}

#[test]
fn a_copied_directory_is_refused_until_it_is_adopted() {
    let home = Home::new();
    let before = home.print(&["generate"]);
    let copied = home.file("copied");
    copy(&home.data_dir(), &copied);
    let copied = copied.to_str().unwrap();

    let generate = ["generate", "--data-dir", copied];
    let message = fail(home.run(&generate));
    assert!(message.contains("is a copy"), "{message}");
    let check = home.run(&["store", "check", "--data-dir", copied]);
    assert_eq!(check.status.code(), Some(1));
    assert!(stderr(&check).contains("copied"), "{}", stderr(&check));

    // Another namespace is not on record, and might be in use in both.
    let other = [
        "generate",
        "--data-dir",
        copied,
        "--plain",
        "--layout",
        "twitter",
    ];
    let refused = fail(home.run(&other));
    assert!(refused.contains("is a copy"), "{refused}");

    let asked_ms = unix_ms();
    follow(&home, &message);
    let after = home.print(&generate);
    let args = ["--input", "base32hex", "--data-dir", copied];
    let parts = home.inspect(&args, &after);
    assert!(lie_above_all(&parts, asked_ms), "{parts:?}");
    follow(&home, &refused);
    home.print(&other);
    // The original has not noticed.
    let more = home.print(&["generate"]);
    let all = [&before, &after, &more].map(|ids| ids.lines());
    assert_eq!(distinct(all.into_iter().flatten()), 30);
}

#[test]
#[cfg(target_os = "linux")]
fn a_directory_in_memory_is_refused_unless_that_is_accepted() {
    let memory = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let home = Home::new();
    let generate = |accept: Option<&str>, args: &[&str]| {
        let data_dir = memory.path().join("data");
        let args = [
            &["generate", "--data-dir", data_dir.to_str().unwrap()],
            args,
        ]
        .concat();
        let mut command = home.command(&args);
        command.env_remove("RINGFLAKE_BEST_EFFORT");
        if let Some(value) = accept {
            command.env("RINGFLAKE_BEST_EFFORT", value);
        }
        command.output().unwrap()
    };
    let plain = &["--plain"][..];
    for refused in [None, Some(""), Some("0")] {
        for args in [plain, &[]] {
            let message = fail(generate(refused, args));
            assert_says(&message, &["tmpfs", "--best-effort"]);
        }
    }
    let left_behind = fs::read_dir(memory.path().join("data")).unwrap();
    assert_eq!(left_behind.count(), 0);
    succeed(generate(Some("1"), plain));
    succeed(generate(None, &["--plain", "--best-effort"]));
    let unclear = generate(Some("yes"), plain);
    assert_eq!(unclear.status.code(), Some(2));
    assert!(stderr(&unclear).contains("RINGFLAKE_BEST_EFFORT"));
}

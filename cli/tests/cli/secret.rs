//! Where the secret comes from, and where it goes.

use std::fs;

use ringflake::{Id, Layout};

use crate::home::{Home, Parts, fail, mode, set_mode, stderr, stdout, succeed, unix_ms};
use ringflake_kit::words;

#[test]
fn a_secret_is_made_once_kept_and_never_shown() {
    let home = Home::new();
    let first = succeed(home.run(&["generate"]));
    let path = home.data_dir().join("secret");
    assert!(
        stderr(&first).contains(path.to_str().unwrap()),
        "{}",
        stderr(&first)
    );
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&home.data_dir()), 0o700);
    let text = fs::read_to_string(&path).unwrap();
    let secret = text.strip_suffix('\n').unwrap();
    assert_eq!(secret.len(), 32);
    assert!(secret.bytes().all(|digit| digit.is_ascii_hexdigit()));

    let second = succeed(home.run(&["generate", "--format", "json"]));
    assert_eq!(stderr(&second), "");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    // Both runs used it: under another secret the times would be anywhere.
    let ids = stdout(&first);
    for parts in home.inspect(&[], &ids) {
        assert!(parts.unix_ms.abs_diff(unix_ms()) < 60_000, "{parts:?}");
    }
    let shown = [
        first,
        second,
        home.feed(&["inspect"], ids.as_bytes()),
        home.feed(&["inspect"], b"no such ID"),
        home.run(&["keygen"]),
        home.run(&["verify", "-n", "1000"]),
        home.run(&["store", "check"]),
        home.run(&["store", "ls", "--format", "json"]),
        home.run(&["bench", "--rounds", "1", "--only", "encrypt_batch"]),
    ];
    for output in shown {
        let all = [stdout(&output), stderr(&output)].concat().to_lowercase();
        assert!(!all.contains(secret));
    }
}

#[test]
fn inspect_and_bench_make_no_secret() {
    let home = Home::new();
    let message = fail(home.run(&["inspect", "5"]));
    for way_out in words("--secret-file RINGFLAKE_SECRET_FILE --data-dir --plain") {
        assert!(message.contains(way_out), "{message}");
    }
    home.print(&["bench", "--rounds", "1", "--only", "encrypt_batch"]);
    assert!(!home.data_dir().exists());
}

#[test]
fn a_secret_can_come_from_three_places_in_two_forms() {
    let home = Home::new();
    let ids = home.print(&["generate", "-n", "3"]);
    let known = home.inspect(&[], &ids);

    let kept = home.data_dir().join("secret");
    let hex = fs::read_to_string(&kept).unwrap();
    let bytes: Vec<u8> = (0..16)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let raw_file = home.write_secret("raw", bytes);
    let hex_file = home.write_secret("hex", hex.to_uppercase());
    fs::remove_file(kept).unwrap();
    let other_file = home.write_secret("other", "00112233445566778899aabbccddeeff");

    assert_eq!(home.inspect(&["--secret-file", &raw_file], &ids), known);
    assert_eq!(home.inspect(&["--secret-file", &hex_file], &ids), known);
    assert_ne!(home.inspect(&["--secret-file", &other_file], &ids), known);

    let id = ids.lines().next().unwrap();
    let with_variable = |file: &str, args: &[&str]| {
        let args = [&["inspect", "--format", "json", id], args].concat();
        let mut command = home.command(&args);
        let output = command.env("RINGFLAKE_SECRET_FILE", file).output().unwrap();
        Parts::of(&stdout(&succeed(output)))
    };
    assert_eq!(with_variable(&hex_file, &[]), known[0]);
    // The command line is stronger.
    assert_eq!(
        with_variable(&other_file, &["--secret-file", &hex_file]),
        known[0]
    );
    let plain = Layout::RANDFLAKE
        .unpack(id.parse::<Id>().unwrap().to_u64())
        .unwrap();
    assert_eq!(with_variable(&other_file, &["--plain"]).node, plain.node);
}

#[test]
fn a_secret_that_is_none_is_refused_without_repeating_it() {
    let home = Home::new();
    let short = home.write_secret("short", "deadbeef\n");
    let message = fail(home.run(&["generate", "--secret-file", &short]));
    assert!(
        message.contains(&short) && !message.contains("deadbeef"),
        "{message}"
    );
    let missing = home.file("missing");
    let missing = missing.to_str().unwrap();
    let message = fail(home.run(&["generate", "--secret-file", missing]));
    assert!(message.contains(missing), "{message}");
}

#[test]
fn a_secret_that_others_can_read_is_warned_about() {
    let home = Home::new();
    home.run(&["keygen"]);
    let path = home.data_dir().join("secret");
    for (bits, warned) in [(0o600, false), (0o640, true), (0o604, true)] {
        set_mode(&path, bits);
        let output = succeed(home.run(&["generate"]));
        assert_eq!(stderr(&output).contains("warning"), warned, "{bits:o}");
    }
}

#[test]
fn keygen_writes_where_it_is_told_and_never_overwrites() {
    let home = Home::new();
    let file = home.file("a-secret");
    let args = ["keygen", "--out", file.to_str().unwrap()];
    let output = succeed(home.run(&args));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains(file.to_str().unwrap()));
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.trim_end_matches('\n').len(), 32);
    assert_eq!(mode(&file), 0o600);

    let message = fail(home.run(&args));
    assert!(message.contains("never overwritten"), "{message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    assert!(!home.data_dir().join("secret").exists());
    succeed(home.run(&["keygen"]));
    let kept = fs::read_to_string(home.data_dir().join("secret")).unwrap();
    assert_ne!(kept, text);
    fail(home.run(&["keygen"]));
    assert_eq!(
        fs::read_to_string(home.data_dir().join("secret")).unwrap(),
        kept
    );

    let printed = home.print(&["keygen", "--out", "-"]);
    assert_eq!(printed.len(), 33);
    assert_ne!(printed, kept);
    let message = fail(home.feed_unread(&["keygen", "--out", "-"], b""));
    assert!(message.contains("is lost"), "{message}");
}

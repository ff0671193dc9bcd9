//! The command line, run as its users run it.

#![cfg(all(feature = "cli", unix))]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringflake::{Backend, Id, Layout};
use serde_json::Value;
use tempfile::TempDir;

#[path = "data/randflake.rs"]
mod randflake;

/// A data directory of its own, which goes with the test.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Where the data directory will be; it does not exist yet.
    fn data_dir(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringflake"));
        command
            .args(args)
            .env_remove("RINGFLAKE_SECRET_FILE")
            .env_remove("RINGFLAKE_BACKEND")
            .env("RINGFLAKE_DATA_DIR", self.data_dir())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs it, which must succeed, and returns what it printed.
    fn print(&self, args: &[&str]) -> String {
        stdout(&succeed(self.run(args)))
    }

    /// Runs it with `input` on stdin.
    fn feed(&self, args: &[&str], input: &[u8]) -> Output {
        let mut child = spawn(self.command(args).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input).unwrap());
            child.wait_with_output().unwrap()
        })
    }

    /// Runs it with `input` on stdin, and with a stdout that nobody reads.
    fn feed_unread(&self, args: &[&str], input: &[u8]) -> Output {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.stdout(writer).spawn().unwrap();
        // It may have ended before.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// What `inspect` says about IDs, each on a line.
    fn inspect(&self, args: &[&str], ids: &str) -> Vec<Parts> {
        let args = [&["inspect", "--format", "json"], args].concat();
        let output = succeed(self.feed(&args, ids.as_bytes()));
        stdout(&output).lines().map(Parts::of).collect()
    }

    fn write_secret(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.file(name);
        fs::write(&path, contents).unwrap();
        set_mode(&path, 0o600);
        path.to_str().unwrap().to_owned()
    }
}

fn spawn(command: &mut Command) -> Child {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn succeed(output: Output) -> Output {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

/// Checks that it failed with one line on stderr, and returns that.
#[track_caller]
fn fail(output: Output) -> String {
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("ringflake: "), "{text}");
    assert!(text.ends_with('\n'), "{text}");
    text
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_millis() as u64
}

/// One line of `inspect --format json`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Parts {
    id: String,
    unix_ms: u64,
    timestamp: String,
    node: u64,
    sequence: u64,
}

impl Parts {
    fn of(line: &str) -> Self {
        let object: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        let names: Vec<_> = object.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["id", "node", "sequence", "timestamp", "timestamp_unix_ms"]
        );
        Self {
            id: object["id"].as_str().unwrap().to_owned(),
            unix_ms: object["timestamp_unix_ms"].as_u64().unwrap(),
            timestamp: object["timestamp"].as_str().unwrap().to_owned(),
            node: object["node"].as_u64().unwrap(),
            sequence: object["sequence"].as_u64().unwrap(),
        }
    }

    fn cell(&self) -> (u64, u64, u64) {
        (self.unix_ms, self.node, self.sequence)
    }
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let (numbers, rest) = bytes.as_chunks();
    assert!(rest.is_empty(), "{} bytes too many", rest.len());
    numbers
        .iter()
        .map(|&bytes| u64::from_le_bytes(bytes))
        .collect()
}

fn distinct<T: Eq + std::hash::Hash>(items: impl IntoIterator<Item = T>) -> usize {
    items.into_iter().collect::<HashSet<_>>().len()
}

// --- generate -----------------------------------------------------------

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
        let parts = home.inspect(&["--input", "base32hex"], &ids.join("\n"));
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
fn only_the_nodes_that_were_given_are_used() {
    let home = Home::new();
    let ids = home.print(&["generate", "-n", "200000", "--nodes", "5..8"]);
    let parts = home.inspect(&["--input", "base32hex"], &ids);
    let nodes: BTreeSet<_> = parts.iter().map(|parts| parts.node).collect();
    assert!(nodes.iter().all(|node| (5..8).contains(node)), "{nodes:?}");
    assert_eq!(distinct(parts.iter().map(Parts::cell)), 200_000);
}

#[test]
fn plain_ids_are_sorted() {
    let home = Home::new();
    let args = ["generate", "--plain", "-n", "300000", "--format", "u64le"];
    let ids = numbers(&succeed(home.run(&args)).stdout);
    assert_eq!(ids.len(), 300_000);
    assert!(ids.is_sorted_by(|a, b| a < b));
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
    assert!(
        message.contains("ran out of ticks at 2024-11-20T21:24:16Z"),
        "{message}"
    );
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
    for format in ["table", "json"] {
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

// --- the secret ---------------------------------------------------------

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
    for parts in home.inspect(&["--input", "base32hex"], &ids) {
        assert!(parts.unix_ms.abs_diff(unix_ms()) < 60_000, "{parts:?}");
    }
    let shown = [
        first,
        second,
        home.feed(&["inspect"], ids.as_bytes()),
        home.feed(&["inspect"], b"no such ID"),
        home.run(&["keygen"]),
        home.run(&["verify", "-n", "1000"]),
        home.run(&["bench", "--rounds", "1", "--only", "encrypt_batch"]),
    ];
    for output in shown {
        let all = [stdout(&output), stderr(&output)].concat().to_lowercase();
        assert!(!all.contains(secret));
    }
}

#[test]
fn inspect_and_verify_make_no_secret() {
    let home = Home::new();
    let message = fail(home.run(&["inspect", "5"]));
    for way_out in [
        "--secret-file",
        "RINGFLAKE_SECRET_FILE",
        "--data-dir",
        "--plain",
    ] {
        assert!(message.contains(way_out), "{message}");
    }
    home.print(&["verify", "-n", "1000"]);
    assert!(!home.data_dir().exists());
}

#[test]
fn a_secret_can_come_from_three_places_in_two_forms() {
    let home = Home::new();
    let ids = home.print(&["generate", "-n", "3"]);
    let known = home.inspect(&["--input", "base32hex"], &ids);

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

    assert!(!home.data_dir().exists());
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

// --- runs on one machine ------------------------------------------------

#[test]
fn runs_at_once_share_one_secret_and_no_id() {
    let home = Home::new();
    let children: Vec<_> = (0..8)
        .map(|_| spawn(&mut home.command(&["generate", "-n", "20000"])))
        .collect();
    let outputs: Vec<_> = children
        .into_iter()
        .map(|child| succeed(child.wait_with_output().unwrap()))
        .collect();
    let makers = outputs.iter().filter(|output| !output.stderr.is_empty());
    assert_eq!(makers.count(), 1);

    let ids: String = outputs.iter().map(stdout).collect();
    let parts = home.inspect(&["--input", "base32hex"], &ids);
    assert_eq!(parts.len(), 160_000);
    assert_eq!(distinct(parts.iter().map(Parts::cell)), 160_000);
    for parts in parts {
        assert!(parts.unix_ms.abs_diff(unix_ms()) < 60_000, "{parts:?}");
    }
    let names: BTreeSet<_> = fs::read_dir(home.data_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let expected = ["marks.json", "marks.lock", "secret"].map(|name| OsStr::new(name).to_owned());
    assert_eq!(names, BTreeSet::from(expected));
}

#[test]
fn runs_one_after_another_share_no_id_and_keep_the_time() {
    let home = Home::new();
    let mut seen = HashSet::new();
    for layout in ["randflake", "twitter", "sonyflake-sized"] {
        seen.clear();
        for _ in 0..20 {
            let args = [
                "generate", "--plain", "--layout", layout, "--format", "u64le",
            ];
            let ids = numbers(&succeed(home.run(&args)).stdout);
            let layout: Layout = layout.parse().unwrap();
            for id in ids {
                assert!(seen.insert(id), "{id} came twice");
                let ahead = layout.unpack(id).unwrap().unix_ms.saturating_sub(unix_ms());
                assert_eq!(ahead, 0);
            }
        }
    }
}

#[test]
fn a_run_that_was_killed_shares_no_id_with_the_next() {
    let home = Home::new();
    let args = [
        "generate", "--plain", "--nodes", "3..4", "--format", "u64le", "-n",
    ];
    let mut child = spawn(&mut home.command(&[&args[..], &["100000000"]].concat()));
    let mut bytes = vec![0; 8 * 300_000];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut bytes)
        .unwrap();
    child.kill().unwrap();
    let mut rest = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    child.wait().unwrap();
    bytes.extend(rest);
    bytes.truncate(bytes.len() / 8 * 8);

    let killed: HashSet<_> = numbers(&bytes).into_iter().collect();
    let next = numbers(&succeed(home.run(&[&args[..], &["300000"]].concat())).stdout);
    assert_eq!(next.len(), 300_000);
    assert!(next.iter().all(|id| !killed.contains(id)));
}

#[test]
fn a_run_that_outlives_its_lease_goes_on_with_another() {
    let home = Home::new();
    let layout = "twitter";
    let count = 200_000;
    let args = [
        "generate", "--plain", "--layout", layout, "--format", "u64le", "-n", "200000",
    ];
    let mut child = spawn(&mut home.command(&args));
    let mut stdout = child.stdout.take().unwrap();
    let mut bytes = vec![0; 8 * 1000];
    stdout.read_exact(&mut bytes).unwrap();
    // A lease in this layout lasts a second. Nothing depends on the pause,
    // except whether a second lease is needed.
    thread::sleep(Duration::from_millis(1200));
    stdout.read_to_end(&mut bytes).unwrap();
    succeed(child.wait_with_output().unwrap());

    let ids = numbers(&bytes);
    assert_eq!(ids.len(), count);
    assert!(ids.is_sorted_by(|a, b| a < b));
    let ms = |id: u64| Layout::TWITTER.unpack(id).unwrap().unix_ms;
    assert!(ms(ids[count - 1]) - ms(ids[0]) > 1000);
}

/// Sets the marks to some milliseconds ahead of the clock.
fn move_marks(home: &Home, ahead_ms: u64) {
    let path = home.data_dir().join("marks.json");
    let mut marks: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for (layout, slab) in marks.as_object_mut().unwrap() {
        let layout: Layout = layout.parse().unwrap();
        let tick = layout.tick_at(unix_ms() + ahead_ms).unwrap();
        slab["start"] = tick.into();
        slab["end"] = tick.into();
    }
    fs::write(&path, marks.to_string()).unwrap();
}

#[test]
fn a_mark_that_is_ahead_of_the_clock_is_respected_up_to_an_hour() {
    let home = Home::new();
    home.print(&["generate"]);
    move_marks(&home, 3_000_000);
    let ids = home.print(&["generate"]);
    for parts in home.inspect(&["--input", "base32hex"], &ids) {
        assert!(parts.unix_ms > unix_ms() + 2_900_000, "{parts:?}");
    }
    move_marks(&home, 3_700_000);
    let message = fail(home.run(&["generate"]));
    assert!(message.contains("clock was set back"), "{message}");
}

#[test]
fn more_ids_than_an_hour_of_the_nodes_holds_are_refused_at_the_start() {
    let home = Home::new();
    let args = ["generate", "--nodes", "0..1", "-n", "1000000000"];
    let output = home.run(&args);
    assert_eq!(stdout(&output), "");
    let output = home.run(&args);
    let message = fail(output);
    assert!(message.contains("nodes 0..1"), "{message}");
}

#[test]
fn damaged_marks_are_not_taken_for_none() {
    let home = Home::new();
    home.print(&["generate"]);
    for damage in ["", "{", "[]", r#"{"x":{"start":1}}"#] {
        fs::write(home.data_dir().join("marks.json"), damage).unwrap();
        let message = fail(home.run(&["generate"]));
        assert!(message.contains("damaged"), "{message}");
    }
}

#[test]
fn the_data_directory_can_be_given_before_and_after_the_command() {
    let home = Home::new();
    let (one, two) = (home.file("one"), home.file("two"));
    succeed(home.run(&["--data-dir", one.to_str().unwrap(), "keygen"]));
    succeed(home.run(&["keygen", "--data-dir", two.to_str().unwrap()]));
    assert!(one.join("secret").exists() && two.join("secret").exists());
    assert!(!home.data_dir().exists());
}

// --- inspect ------------------------------------------------------------

#[test]
fn every_vector_is_read_in_every_form() {
    let home = Home::new();
    let secrets = randflake::column("secret_hex");
    let seconds = randflake::numbers("timestamp_unix_s");
    let nodes = randflake::numbers("node");
    let sequences = randflake::numbers("sequence");
    let texts = randflake::column("id_base32hex");
    for secret in secrets.iter().collect::<BTreeSet<_>>() {
        let file = home.write_secret("secret", secret);
        let rows: Vec<_> = (0..64).filter(|&row| secrets[row] == *secret).collect();
        for (form, column) in [
            ("i64", "id_i64"),
            ("u64", "id_u64"),
            ("base32hex", "id_base32hex"),
            ("auto", "id_i64"),
            ("auto", "id_u64"),
            ("auto", "id_base32hex"),
        ] {
            let ids = randflake::column(column);
            let input: String = rows.iter().map(|&row| format!("{}\n", ids[row])).collect();
            let args = ["--secret-file", &file, "--input", form];
            let json = home.inspect(&args, &input);

            let table = [&["inspect"], &args[..]].concat();
            let table = stdout(&succeed(home.feed(&table, input.as_bytes())));
            let mut lines = table.lines();
            let titles: Vec<_> = lines.next().unwrap().split_whitespace().collect();
            assert_eq!(
                titles,
                ["id", "timestamp", "unix_seconds", "node", "sequence"]
            );
            let table: Vec<Vec<_>> = lines
                .map(|line| line.split_whitespace().collect())
                .collect();

            assert_eq!((json.len(), table.len()), (rows.len(), rows.len()));
            for ((json, table), &row) in json.iter().zip(table).zip(&rows) {
                assert_eq!(json.id, texts[row]);
                assert_eq!(
                    json.cell(),
                    (seconds[row] * 1000, nodes[row], sequences[row])
                );
                let time = UNIX_EPOCH + Duration::from_secs(seconds[row]);
                let time = humantime::format_rfc3339_seconds(time).to_string();
                assert_eq!(json.timestamp, time);
                let [second, node, sequence] =
                    [seconds[row], nodes[row], sequences[row]].map(|number| number.to_string());
                assert_eq!(table, [texts[row], &time, &second, &node, &sequence]);
            }
        }
    }
}

#[test]
fn ids_can_be_arguments_also_negative_ones() {
    let home = Home::new();
    let file = home.write_secret("secret", randflake::column("secret_hex")[0]);
    let ids = ["i64", "u64", "base32hex"].map(|form| randflake::column(&format!("id_{form}"))[0]);
    assert!(ids[0].starts_with('-'));
    let args = [
        &["inspect", "--format", "json", "--secret-file", &file],
        &ids[..],
    ]
    .concat();
    let text = home.print(&args);
    assert_eq!(text.lines().count(), 3);
    assert_eq!(distinct(text.lines()), 1);
}

#[test]
fn bad_lines_are_told_by_their_number_and_the_rest_go_on() {
    let home = Home::new();
    let mut input = b"1\r\nn!\n\n  2  \n-\n\xff\xfe\n18446744073709551616\n".to_vec();
    input.extend([b'9'; 100_000]);
    input.extend(b"\n3");
    let output = home.feed(&["inspect", "--plain", "--format", "json"], &input);
    assert_eq!(output.status.code(), Some(1));
    let ids: Vec<_> = stdout(&output)
        .lines()
        .map(|line| Parts::of(line).id)
        .collect();
    assert_eq!(ids, ["1", "2", "3"]);
    let errors = stderr(&output);
    let numbers: Vec<_> = errors
        .lines()
        .map(|line| line.split_once(": ").unwrap().0)
        .collect();
    assert_eq!(numbers, ["line 2", "line 5", "line 6", "line 7", "line 8"]);
}

#[test]
fn bad_arguments_are_told_by_their_number_and_the_rest_go_on() {
    let home = Home::new();
    let output = home.run(&["inspect", "--plain", "--layout", "js-safe", "7", "x", "-1"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output).lines().count(), 2);
    let errors = stderr(&output);
    let lines: Vec<_> = errors.lines().collect();
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(
        lines[0].starts_with("argument 2: ") && lines[0].contains("'x'"),
        "{errors}"
    );
    // It has 64 bits, and the layout 53.
    assert!(
        lines[1].starts_with("argument 3: ") && lines[1].contains("53"),
        "{errors}"
    );
}

#[test]
fn the_input_forms_are_strict() {
    let home = Home::new();
    for (form, id, right) in [
        ("i64", "-1", true),
        ("i64", "+1", false),
        ("i64", "9223372036854775808", false),
        ("u64", "9223372036854775808", true),
        ("u64", "-1", false),
        ("base32hex", "10", true),
        ("base32hex", "010", false),
        ("base32hex", "V", false),
        ("auto", "010", true),
        ("auto", "0x10", false),
    ] {
        let output = home.run(&["inspect", "--plain", "--input", form, "--", id]);
        assert_eq!(output.status.success(), right, "{form} {id}");
    }
}

#[test]
fn times_have_milliseconds_where_ticks_are_shorter_than_a_second() {
    let home = Home::new();
    let table = home.print(&["inspect", "--plain", "--layout", "twitter", "4194304"]);
    let cells: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "40000",
            "2010-11-04T01:42:54.658Z",
            "1288834974.658",
            "0",
            "0"
        ]
    );
    let json = home.inspect(&["--plain", "--layout", "twitter"], "4194304");
    assert_eq!(json[0].timestamp, "2010-11-04T01:42:54.658Z");
}

#[test]
fn a_time_that_rfc_3339_can_not_write_is_null() {
    let home = Home::new();
    let layout = "44/10/10@2020-01-01T00:00:00Z/1s";
    let args = [
        "inspect",
        "--plain",
        "--layout",
        layout,
        "18446744073709551615",
        "--format",
    ];
    let json: Value = serde_json::from_str(&home.print(&[&args[..], &["json"]].concat())).unwrap();
    assert_eq!(json["timestamp"], Value::Null);
    assert_eq!(json["timestamp_unix_ms"], 17_593_763_881_215_000_u64);
    let table = home.print(&[&args[..], &["table"]].concat());
    assert!(
        table.contains("after 9999") && table.contains("17593763881215 "),
        "{table}"
    );
}

#[test]
fn an_answer_does_not_wait_for_the_next_id() {
    let home = Home::new();
    let mut child = spawn(home.command(&["inspect", "--plain"]).stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    let (send, answers) = mpsc::channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let reader = thread::spawn(move || {
        for line in stdout.lines() {
            send.send(line.unwrap()).unwrap();
        }
    });
    // Only to fail rather than hang.
    let next = || answers.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(next().starts_with("id "));
    for id in ["1", "2", "3"] {
        writeln!(stdin, "{id}").unwrap();
        assert!(next().starts_with(id));
    }
    drop(stdin);
    reader.join().unwrap();
    assert!(answers.recv().is_err());
    succeed(child.wait_with_output().unwrap());
}

#[test]
fn generated_ids_come_back_from_inspect_200_000_in_a_row() {
    let home = Home::new();
    let ids = home.print(&["generate", "-n", "200000", "--threads", "2"]);
    let parts = home.inspect(&["--input", "base32hex"], &ids);
    assert!(ids.lines().eq(parts.iter().map(|parts| parts.id.as_str())));
    assert_eq!(distinct(parts.iter().map(Parts::cell)), 200_000);
}

// --- verify and bench ---------------------------------------------------

/// The figure in the row with this title.
fn figure<'a>(table: &'a str, title: &str) -> &'a str {
    let row = table.lines().find_map(|line| line.strip_prefix(title));
    row.unwrap_or_else(|| panic!("no {title} in {table}"))
        .trim()
}

#[test]
fn verify_finds_no_duplicate() {
    let home = Home::new();
    let output = succeed(home.run(&["verify", "-n", "2000000", "--threads", "2"]));
    assert_eq!(stderr(&output), "");
    let table = stdout(&output);
    assert_eq!(figure(&table, "IDs  "), "2000000");
    assert_eq!(figure(&table, "duplicates"), "0");
    assert_eq!(figure(&table, "outside the lease"), "0");
    assert!(figure(&table, "IDs/s").parse::<u64>().unwrap() > 0);
    for title in [
        "empties",
        "waits at the borrow limit",
        "seconds borrowed",
        "level",
    ] {
        assert!(!figure(&table, title).is_empty());
    }
}

#[test]
fn verify_goes_on_through_refusals_and_stops_in_time() {
    let home = Home::new();
    // 4,096 IDs a second: the minute that may be borrowed is used up at once.
    let table = home.print(&[
        "verify",
        "--plain",
        "--layout",
        "js-safe",
        "--nodes",
        "9..10",
        "--seconds",
        "2",
        "--capacity",
        "1024",
        "--producers",
        "2",
        "--threads",
        "2",
    ]);
    assert_eq!(figure(&table, "duplicates"), "0");
    assert_eq!(figure(&table, "outside the lease"), "0");
    let ids: u64 = figure(&table, "IDs  ").parse().unwrap();
    assert!((4096 * 60..4096 * 70).contains(&ids), "{table}");
    let waits: u64 = figure(&table, "waits at the borrow limit").parse().unwrap();
    assert!(waits > 0, "{table}");
}

#[test]
fn bench_has_one_line_for_each_name_and_number_of_threads() {
    let home = Home::new();
    let text = home.print(&["bench", "--json", "--rounds", "2"]);
    let cores = thread::available_parallelism().unwrap().get();
    let mut expected = BTreeSet::new();
    for name in [
        "fetch_add",
        "array_queue_pop",
        "ring_take",
        "ring_take_batch_64",
        "handle_take",
        "live_take",
        "live_batch_64",
        "in_place",
        "encrypt_scalar",
        "encrypt_batch",
    ] {
        let least = if name.starts_with("live_") { 2 } else { 1 };
        expected.insert((name.to_owned(), least));
        expected.insert((name.to_owned(), cores.max(least)));
    }
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        let name = object["name"].as_str().unwrap().to_owned();
        let unique = if name.starts_with("encrypt_") {
            Value::Null
        } else {
            Value::Bool(true)
        };
        assert_eq!(object["unique"], unique, "{line}");
        assert_eq!(object["rounds"], 2);
        let [min, median, max] = ["min", "median", "max"]
            .map(|key| object[format!("{key}_ids_per_s")].as_u64().unwrap());
        assert!(0 < min && min <= median && median <= max, "{line}");
        let threads = object["threads"].as_u64().unwrap() as usize;
        assert!(found.insert((name, threads)), "{line}");
    }
    assert_eq!(found, expected);
}

#[test]
fn bench_can_be_asked_for_one_name_and_prints_a_table() {
    let home = Home::new();
    let args = [
        "bench",
        "--rounds",
        "1",
        "--only",
        "fetch_add",
        "--only",
        "in_place",
    ];
    let table = home.print(&args);
    let names: BTreeSet<_> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(names, BTreeSet::from(["fetch_add", "in_place"]));
}

// --- the backend --------------------------------------------------------

#[test]
fn a_backend_that_can_not_be_had_is_refused_before_anything_is_done() {
    let home = Home::new();
    let foreign = if cfg!(target_arch = "x86_64") {
        "neon"
    } else {
        "avx2"
    };
    for value in ["avx1024", "PORTABLE", foreign] {
        for args in [
            &["keygen"][..],
            &["generate"],
            &["inspect", "--plain", "5"],
            &["verify", "-n", "1"],
            &["bench"],
        ] {
            let mut command = home.command(args);
            let output = command.env("RINGFLAKE_BACKEND", value).output().unwrap();
            assert_eq!(stdout(&output), "", "{args:?}");
            let message = fail(output);
            assert!(message.contains(&format!("{value:?}")), "{message}");
            for backend in Backend::available() {
                assert!(message.contains(&backend.to_string()), "{message}");
            }
        }
    }
    assert!(!home.data_dir().exists());
}

#[test]
fn bench_names_the_backend_on_stderr() {
    let home = Home::new();
    let args = ["bench", "--rounds", "1", "--only", "encrypt_scalar"];
    let backend_under = |value: &str| {
        let mut command = home.command(&args);
        let output = command.env("RINGFLAKE_BACKEND", value).output().unwrap();
        stderr(&succeed(output))
    };
    for backend in Backend::available() {
        let line = format!("backend: {backend}\n");
        assert_eq!(backend_under(&backend.to_string()), line);
    }
    let fastest = Backend::available().next().unwrap();
    assert_eq!(backend_under(""), format!("backend: {fastest}\n"));
}

// --- exit statuses ------------------------------------------------------

#[test]
fn a_wrong_command_line_exits_with_2() {
    let home = Home::new();
    for args in [
        &[][..],
        &["fly"],
        &["generate", "--format", "xml"],
        &["generate", "-n", "many"],
        &["generate", "-n", "-1"],
        &["generate", "--nodes", "5"],
        &["generate", "--nodes", "5..5"],
        &["generate", "--layout", "mine"],
        &["generate", "--layout", "60/60/60@2020-01-01T00:00:00Z/1s"],
        &["generate", "--threads", "0"],
        &["generate", "--plain", "--secret-file", "x"],
        &["generate", "an-id"],
        &["inspect", "--input", "hex", "5"],
        &["verify", "--capacity", "x"],
        &["bench", "--only", "sleep"],
        &["bench", "--rounds", "0"],
        &["keygen", "--plain"],
    ] {
        let output = home.run(args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{args:?}");
        let text = stderr(&output);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("ringflake: "), "{text}");
        let see = match args.first() {
            None | Some(&"fly") => "; see 'ringflake --help'\n".to_owned(),
            Some(command) => format!("; see 'ringflake {command} --help'\n"),
        };
        assert!(text.ends_with(&see), "{text}");
        for frame in ["error:", "Usage", "For more"] {
            assert!(!text.contains(frame), "{text}");
        }
    }
    assert!(!home.data_dir().exists());
}

/// Checks that the command line is wrong, and returns what is said about it.
#[track_caller]
fn misuse(home: &Home, args: &[&str]) -> String {
    let output = home.run(args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn a_wrong_command_line_is_told_what_would_be_right() {
    let home = Home::new();
    let text = misuse(&home, &["generate", "--format", "xml"]);
    assert!(
        text.contains("'xml'") && text.contains("u64le") && text.contains("--format"),
        "{text}"
    );
    let text = misuse(&home, &["generate", "--plain", "--secret-file", "x"]);
    assert!(
        text.contains("--plain") && text.contains("--secret-file"),
        "{text}"
    );
    assert!(misuse(&home, &["generat"]).contains("'generate'"));
    let text = misuse(&home, &["--data-dir", "x", "verify", "--capacity", "x"]);
    assert!(text.ends_with("'ringflake verify --help'\n"), "{text}");
}

#[test]
fn empty_nodes_are_told_from_reversed_ones() {
    let home = Home::new();
    let said = |nodes| misuse(&home, &["generate", "--nodes", nodes]);
    let reversed = said("32..0");
    assert!(
        reversed.contains("reversed") && reversed.contains(" 0..32;"),
        "{reversed}"
    );
    assert!(said("5..5").contains("5..6"));
    let last = said("18446744073709551615..18446744073709551615");
    assert!(
        last.contains("is empty") && !last.contains("18446744073709551616"),
        "{last}"
    );
}

#[test]
fn advice_names_options_and_dates() {
    let home = Home::new();
    for command in ["generate", "verify"] {
        let message = fail(home.run(&[command, "--layout", "js-safe"]));
        assert!(message.contains("--plain"), "{message}");
        assert!(!message.contains('`'), "{message}");

        let layout = "28/22/13@2999-01-01T00:00:00Z/1s";
        let message = fail(home.run(&[command, "--layout", layout]));
        assert!(
            message.contains("begins at 2999-01-01T00:00:00Z"),
            "{message}"
        );
        assert!(
            !message.contains(" ms") && !message.contains("tick"),
            "{message}"
        );
    }
    assert!(!home.data_dir().exists());
}

#[test]
fn a_failure_exits_with_1_and_one_line() {
    let home = Home::new();
    let file = home.write_secret("a-file", "");
    let in_a_file = format!("{file}/data");
    for args in [
        &["generate", "--nodes", "131000..131073"][..],
        &["generate", "--data-dir", &in_a_file],
        &["keygen", "--data-dir", &in_a_file],
        &["keygen", "--out", &in_a_file],
        &["generate", "--secret-file", &file],
        &["inspect", "--secret-file", &file, "5"],
        &["inspect", "5"],
        &["verify", "--capacity", "1000", "-n", "1"],
        &["verify", "--producers", "0", "-n", "1"],
        &["verify", "--nodes", "7..131073", "-n", "1"],
        &["verify", "--layout", "baidu"],
        &["bench", "--secret-file", &file],
    ] {
        let output = home.run(args);
        assert_eq!(stdout(&output), "", "{args:?}");
        fail(output);
    }
}

#[test]
fn help_and_version_are_printed() {
    let home = Home::new();
    assert!(home.print(&["--version"]).starts_with("ringflake "));
    for command in ["keygen", "generate", "inspect", "verify", "bench"] {
        assert!(home.print(&["--help"]).contains(command));
        let help = home.print(&[command, "--help"]);
        assert!(help.contains("--data-dir"), "{command}");
    }
}

#[test]
fn help_warns_of_base32hex_ids_that_look_like_numbers() {
    let home = Home::new();
    let help = home.print(&["inspect", "--help"]);
    let words = Vec::from_iter(help.split_whitespace()).join(" ");
    assert!(
        words.contains("digits alone is read as a decimal number"),
        "{help}"
    );
    assert!(
        words.contains("default output of generate into inspect --input base32hex"),
        "{help}"
    );
}

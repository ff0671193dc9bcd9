//! What `bench` prints, and the backend that it measures.

use std::collections::BTreeSet;
use std::thread;

use ringflake::Backend;
use serde_json::Value;

use crate::home::{Home, fail, stderr, stdout, succeed};
use ringflake_kit::words;

#[test]
fn bench_has_one_line_for_each_name_and_number_of_threads() {
    let home = Home::new();
    let text = home.print(&["bench", "--format", "json", "--rounds", "2"]);
    let cores = thread::available_parallelism().unwrap().get();
    let mut expected = BTreeSet::new();
    for name in words(
        "fetch_add array_queue_pop ring_take ring_take_batch_64 handle_take live_take \
         live_batch_64 in_place encrypt_scalar encrypt_batch",
    ) {
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
    let args = words("bench --rounds 1 --only fetch_add --only in_place");
    let table = home.print(&args);
    let names: BTreeSet<_> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(names, BTreeSet::from(["fetch_add", "in_place"]));
}

#[test]
fn an_interrupt_prints_the_rounds_until_then() {
    use crate::home::{await_listening, signal, spawn};
    let home = Home::new();
    let args = ["bench", "--rounds", "1000", "--only", "fetch_add"];
    let child = spawn(&mut home.command(&args));
    await_listening(&child);
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(
        stderr(&output).contains("interrupted"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).starts_with("million IDs/s"));
}

#[test]
fn an_unavailable_backend_is_refused_before_anything_is_done() {
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
            &["store", "check"],
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

//! What `inspect` reads and says.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use humantime::format_rfc3339_seconds;

use crate::home::{Home, Parts, distinct, spawn, stderr, stdout, succeed};
use ringflake_kit::known_answers;
use ringflake_kit::{assert_says, short_or_long};

#[test]
fn every_vector_is_read_in_every_form() {
    let home = Home::new();
    let secrets = known_answers::column("secret_hex");
    let seconds = known_answers::numbers("timestamp_unix_s");
    let nodes = known_answers::numbers("node");
    let sequences = known_answers::numbers("sequence");
    let texts = known_answers::column("id_base32hex");
    for secret in secrets.iter().collect::<BTreeSet<_>>() {
        let file = home.write_secret("secret", secret);
        let rows: Vec<_> = (0..64).filter(|&row| secrets[row] == *secret).collect();
        let parts = rows.iter().map(|&row| {
            let time = UNIX_EPOCH + Duration::from_secs(seconds[row]);
            Parts {
                id: texts[row].to_owned(),
                unix_ms: seconds[row] * 1000,
                timestamp: format_rfc3339_seconds(time).to_string(),
                node: nodes[row],
                sequence: sequences[row],
            }
        });
        let parts: Vec<_> = parts.collect();
        for (form, column) in [
            ("i64", "id_i64"),
            ("u64", "id_u64"),
            ("base32hex", "id_base32hex"),
            ("auto", "id_i64"),
            ("auto", "id_u64"),
            ("auto", "id_base32hex"),
        ] {
            let ids = known_answers::column(column);
            let input: String = rows.iter().map(|&row| format!("{}\n", ids[row])).collect();
            let options = format!("--secret-file {file} --input {form}");
            assert_eq!(home.inspect(&options, &input), parts, "{form} {column}");
        }
    }
}

#[test]
fn bad_lines_are_told_by_their_number_and_the_rest_go_on() {
    let home = Home::new();
    let mut input = b"1\r\nn!\n\n  2  \n-\n\xff\xfe\n18446744073709551616\n".to_vec();
    input.extend([b'9'; 100_000]);
    input.extend(b"\n3");
    let output = home.feed("inspect --plain --format json", &input);
    assert_eq!(output.status.code(), Some(1));
    let lines = stdout(&output);
    let ids: Vec<_> = lines.lines().map(|line| Parts::of(line).id).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    let errors = stderr(&output);
    let numbers = errors.lines().map(|line| line.split_once(": ").unwrap().0);
    let expected = ["line 2", "line 5", "line 6", "line 7", "line 8"];
    assert_eq!(Vec::from_iter(numbers), expected);
}

#[test]
fn an_answer_does_not_wait_for_the_next_id() {
    let home = Home::new();
    let mut child = spawn(home.command("inspect --plain").stdin(Stdio::piped()));
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
fn what_generate_prints_by_default_is_what_inspect_reads() {
    let home = Home::new();
    let count = short_or_long(50_000, 200_000);
    let ids = home.print(format!("generate -n {count}"));
    let parts = home.inspect("", &ids);
    assert!(ids.lines().eq(parts.iter().map(|parts| parts.id.as_str())));
    assert_eq!(distinct(parts.iter().map(Parts::cell)), count);
}

/// A secret that is not theirs makes random times of them, and most lie in the future.
#[test]
fn ids_of_another_secret_are_shown_with_a_warning() {
    let home = Home::new();
    let ids = home.print("generate -n 100 --namespace orders");
    home.print("generate -n 1 --namespace users");
    let read = |options: &str| succeed(home.feed(format!("inspect {options}"), ids.as_bytes()));
    assert_eq!(stderr(&read("--namespace orders")), "");
    let output = read("--namespace users");
    assert_eq!(stdout(&output).lines().count(), 101);
    let text = stderr(&output);
    let [first, count] = *Vec::from_iter(text.lines()) else {
        panic!("{text}");
    };
    assert_says(
        first,
        &["warning: line ", "in the future", "another --namespace"],
    );
    assert_says(count, &["warning: ", "times in the future"]);
    assert_says(&stderr(&read("--plain")), &["the IDs are encrypted"]);
}

#[test]
fn the_namespaces_that_have_a_secret_are_named_where_none_is_given() {
    let home = Home::new();
    for name in ["users", "orders"] {
        home.print(format!("generate -n 1 --namespace {name}"));
    }
    let text = home.refuse("inspect 5");
    assert_says(&text, &["--namespace orders or --namespace users"]);
}

/// In a fresh directory `inspect` starts before `generate` has made the secret.
#[test]
fn ids_from_a_pipe_are_read_with_the_secret_that_is_made_meanwhile() {
    let home = Home::new();
    let mut child = spawn(home.command("inspect").stdin(Stdio::piped()));
    let ids = home.print("generate -n 3");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(ids.as_bytes())
        .unwrap();
    let output = succeed(child.wait_with_output().unwrap());
    assert_eq!(stdout(&output).lines().count(), 4);
    assert_eq!(stderr(&output), "");
}

//! What `verify` finds.

use crate::home::{Home, await_listening, signal, spawn, stderr, stdout, succeed};
use ringflake_kit::words;

/// The figure in the row with this title.
fn figure<'a>(table: &'a str, title: &str) -> &'a str {
    let row = table.lines().find_map(|line| line.strip_prefix(title));
    row.unwrap_or_else(|| panic!("no {title} in {table}"))
        .trim()
}

#[test]
fn verify_finds_no_duplicate() {
    let home = Home::new();
    home.run(&["keygen"]);
    let output = succeed(home.run(&["verify", "-n", "2M", "--threads", "2"]));
    assert_eq!(stderr(&output), "");
    let table = stdout(&output);
    assert_eq!(figure(&table, "IDs  "), "2,000,000");
    assert_eq!(figure(&table, "duplicates"), "0");
    assert_eq!(figure(&table, "outside the leases"), "0");
    for title in [
        "IDs/s",
        "time",
        "empties",
        "waits at a limit",
        "borrowed",
        "level",
    ] {
        assert!(!figure(&table, title).is_empty());
    }
}

#[test]
fn verify_goes_on_through_refusals_and_stops_in_time() {
    let home = Home::new();
    // 4,096 IDs a second: the minute that may be borrowed is used up at once.
    let table = home.print(&words(
        "verify --plain --layout js-safe --nodes 9..10 --seconds 2 --capacity 1024 \
         --producers 2 --threads 2",
    ));
    assert_eq!(figure(&table, "duplicates"), "0");
    assert_eq!(figure(&table, "outside the leases"), "0");
    let ids = number(&table, "IDs  ");
    assert!((4096.0 * 60.0..4096.0 * 70.0).contains(&ids), "{table}");
    assert!(number(&table, "waits at a limit") > 0.0, "{table}");
}

/// The figure in the row with this title, as a number.
#[track_caller]
fn number(table: &str, title: &str) -> f64 {
    let figure = figure(table, title);
    let number = figure.split_whitespace().next().unwrap().replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("{figure}"))
}

/// The only object that is printed.
#[track_caller]
fn object(output: &std::process::Output) -> serde_json::Value {
    let text = stdout(output);
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn verify_has_its_figures_as_json() {
    let home = Home::new();
    let args = ["verify", "--plain", "--format", "json"];
    let flat_out = object(&succeed(home.run(&[&args[..], &["-n", "20k"]].concat())));
    assert_eq!(
        (&flat_out["ids"], &flat_out["duplicates"]),
        (&20_000.into(), &0.into())
    );
    assert_eq!(flat_out["interrupted"], false);
    assert_eq!(flat_out["capacity"], 65_536);
    assert!(flat_out["took_s"].as_f64().unwrap() > 0.0);
    let load = ["--rate", "20k", "--seconds", "1"];
    let loaded = object(&succeed(home.run(&[&args[..], &load].concat())));
    let sum = loaded["ids"].as_u64().unwrap() + loaded["missed"].as_u64().unwrap();
    assert_eq!(sum, 20_000, "{loaded}");
    assert!(
        loaded["latency_ns"]["p99.99"].as_u64().unwrap() > 0,
        "{loaded}"
    );
}

#[test]
fn an_interrupt_prints_what_was_verified_until_then() {
    let home = Home::new();
    for load in [&[][..], &["--rate", "20k"]] {
        let args = ["verify", "--plain", "--format", "json", "--seconds", "9999"];
        let child = spawn(&mut home.command(&[&args[..], load].concat()));
        await_listening(&child);
        signal(&child, libc::SIGINT);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("interrupted"),
            "{}",
            stderr(&output)
        );
        let object = object(&output);
        assert_eq!(object["interrupted"], true);
        assert_eq!(object["duplicates"], 0);
    }
}

#[test]
fn verify_runs_a_load_and_checks_every_id() {
    let home = Home::new();
    home.run(&["keygen"]);
    // 58,000 IDs in all: fewer than the ring has, so it can't run dry.
    let load = ["--rate", "20k", "--burst", "400k:100ms/1s"];
    let args = [&["verify", "--seconds", "1", "--consumers", "2"], &load[..]].concat();
    let output = succeed(home.run(&args));
    let table = stdout(&output);
    let taken = number(&table, "IDs  ");
    assert_eq!(taken + number(&table, "not taken in time"), 58_000.0);
    for title in ["duplicates", "outside the leases", "empties", "refused"] {
        assert_eq!(figure(&table, title), "0", "{table}");
    }
    for name in ["p50", "p90", "p99 ", "p99.9 ", "p99.99", "max"] {
        // In the unit that suits it.
        let latency = figure(&table, &format!("latency {name}"));
        assert!(
            latency.ends_with('s') && !latency.starts_with('0'),
            "{table}"
        );
    }
    let lowest = figure(&table, "lowest level seen");
    assert!(lowest.ends_with(" of 65,536"), "{lowest}");
}

#[test]
fn verify_runs_a_trace_to_its_end() {
    let home = Home::new();
    let trace = home.file("trace.csv");
    std::fs::write(
        &trace,
        "# seconds,count\n1763000000,300\n\n1763000000.5,700\n",
    )
    .unwrap();
    let trace = trace.to_str().unwrap();
    let table = home.print(&["verify", "--plain", "--trace", trace, "--threshold", "25%"]);
    let missed = number(&table, "not taken in time");
    assert_eq!(number(&table, "IDs  ") + missed, 1000.0);
    assert_eq!(figure(&table, "duplicates"), "0");
}

#[test]
fn verify_counts_the_takes_that_had_to_make_their_id() {
    let home = Home::new();
    // A ring of one slot, of which a group takes several in a row.
    let table = home.print(&words(
        "verify --plain --rate 20M --seconds 1 --capacity 1 --consumers 1",
    ));
    assert!(number(&table, "empties") > 0.0, "{table}");
    assert!(number(&table, "made in place") > 0.0, "{table}");
    assert_eq!(figure(&table, "duplicates"), "0");
    assert_eq!(figure(&table, "outside the leases"), "0");
}

#[test]
fn verify_warns_of_a_load_that_the_lease_can_not_carry() {
    let home = Home::new();
    // 4,096 IDs a second, of which a minute may be borrowed.
    let args = [
        "verify",
        "--plain",
        "--layout",
        "js-safe",
        "--nodes",
        "9..10",
        "--rate",
        "500k",
        // A slow machine needs some of them to come to the limit.
        "--seconds",
        "4",
        "--capacity",
        "1024",
    ];
    let output = succeed(home.run(&args));
    let text = stderr(&output);
    for part in [
        "500 k IDs/s",
        "1 node,",
        "4.1 k IDs/s",
        "after 496 ms",
        "60 s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let table = stdout(&output);
    assert!(number(&table, "refused") > 0.0, "{table}");
    assert!(text.contains("IDs were refused: "), "{text}");
    let borrowed = figure(&table, "most borrowed");
    assert!(
        borrowed.starts_with("60") || borrowed.starts_with("61"),
        "{borrowed}"
    );
}

#[test]
fn verify_says_what_is_wrong_with_a_load() {
    let home = Home::new();
    let trace = home.file("back.csv");
    std::fs::write(&trace, "0,5\n2,5\n1,5\n").unwrap();
    let trace = trace.to_str().unwrap();
    for (status, args, said) in [
        (2, &["--rate", "50000"][..], "without a unit"),
        (2, &["--rate", "0k"], "1/s to 1000G/s"),
        (
            2,
            &["--rate", "1M", "--burst", "2M:2s/1s"],
            "not over within its period",
        ),
        (
            2,
            &["--rate", "1M", "--burst", "2M:1s"],
            "rate:length/period",
        ),
        (2, &["--burst", "2M:1ms/1s"], "--rate"),
        (2, &["--rate", "1M", "--trace", trace], "--trace"),
        (2, &["--rate", "1M", "-n", "5"], "-n"),
        (2, &["--rate", "1M", "--threads", "2"], "--threads"),
        (2, &["--consumers", "2"], "--rate"),
        (2, &["--rate", "1M", "--threshold", "101%"], "1 to 100 %"),
        (2, &["--rate", "1M", "--threshold", "0%"], "1 to 100 %"),
        (1, &["--rate", "1M", "--capacity", "1000"], "power of two"),
        (
            1,
            &["--trace", trace],
            "line 3 of the trace goes back in time",
        ),
        (1, &["--trace", "/no/such/file"], "/no/such/file"),
    ] {
        let output = home.run(&[&["verify", "--plain"], args].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(said), "{args:?}: {text}");
        assert_eq!(stdout(&output), "");
    }
    assert!(!home.data_dir().exists());
}

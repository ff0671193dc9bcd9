//! What `verify` finds.

use std::fs;
use std::process::Output;
use std::time::Instant;

use crate::home::{Home, assert_flawless, object, row, stderr, stdout, succeed};
use ringflake_kit::assert_says;

/// The figure in the row with this title, as a number.
#[track_caller]
fn number(table: &str, title: &str) -> f64 {
    let figure = row(table, title);
    let number = figure.split_whitespace().next().unwrap().replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("{figure}"))
}

/// What this line prints, with IDs in it, as `has_ids` finds. A busy machine may let no consumer
/// run until the load has long been over, and then the next attempt counts.
#[track_caller]
fn print_some(home: &Home, line: &str, has_ids: impl Fn(&str) -> bool) -> String {
    let mut outputs = (0..20).map(|_| home.print(line));
    let found = outputs.find(|text| has_ids(text));
    found.expect("IDs are taken")
}

#[test]
fn verify_finds_no_duplicate() {
    let home = Home::new();
    home.run("keygen");
    let output = succeed(home.run("verify -n 2M --threads 2"));
    assert_eq!(stderr(&output), "");
    let table = stdout(&output);
    assert_flawless(&table);
    assert_eq!(row(&table, "IDs"), "2,000,000");
    for title in [
        "IDs/s",
        "time",
        "empties",
        "waits at a limit",
        "borrowed",
        "level",
    ] {
        assert!(!row(&table, title).is_empty());
    }
}

#[test]
fn verify_goes_on_through_refusals_and_stops_in_time() {
    // 4,096 IDs a second: the minute that may be borrowed is used up at once. A busy machine
    // gets more time for that, and to stop.
    for seconds in [2, 10, 40] {
        let began = Instant::now();
        let table = Home::new().print(format!(
            "verify --plain --layout js-safe --nodes 9..10 --seconds {seconds} --capacity 1024 \
             --producers 2 --threads 2",
        ));
        let elapsed = began.elapsed().as_secs_f64();
        assert_flawless(&table);
        let ids = number(&table, "IDs");
        // A tick is a second. The first and the last one of the run can be partial, and 60 more
        // may be borrowed.
        let most = 4096.0 * (60.0 + elapsed + 2.0);
        assert!(ids <= most, "{ids} in {elapsed} s: {table}");
        let is_used_up = ids >= 4096.0 * 60.0 && number(&table, "waits at a limit") > 0.0;
        if is_used_up && elapsed < f64::from(seconds) + 10.0 {
            return;
        }
    }
    panic!("no run used the minute up and stopped in time");
}

#[test]
fn verify_has_its_figures_as_json() {
    let home = Home::new();
    let verify = "verify --plain --format json";
    let flat_out = object(&home.print(format!("{verify} -n 20k")));
    assert_eq!(flat_out["ids"], 20_000);
    assert_eq!(flat_out["duplicates"], 0);
    assert_eq!(flat_out["interrupted"], false);
    assert_eq!(flat_out["capacity"], 65_536);
    assert!(flat_out["stripes"].as_u64().unwrap().is_power_of_two());
    assert!(flat_out["took_s"].as_f64().unwrap() > 0.0);
    let line = format!("{verify} --rate 20k --seconds 1");
    let loaded = object(&print_some(&home, &line, |text| {
        object(text)["ids"].as_u64() > Some(0)
    }));
    let sum = loaded["ids"].as_u64().unwrap() + loaded["missed"].as_u64().unwrap();
    assert_eq!(sum, 20_000, "{loaded}");
    let latency = loaded["latency_ns"]["p99.99"].as_u64().unwrap();
    assert!(latency > 0, "{loaded}");
}

#[test]
fn verify_has_as_many_stripes_as_it_is_given() {
    let home = Home::new();
    let verify = "verify --plain -n 100k --threads 2 --capacity 4096 --format json";
    for stripes in [1, 4] {
        let found = object(&home.print(format!("{verify} --stripes {stripes}")));
        assert_eq!(found["stripes"], stripes);
        assert_eq!(
            (&found["ids"], &found["duplicates"]),
            (&100_000.into(), &0.into())
        );
    }
}

#[test]
fn verify_has_no_assists_where_they_are_off() {
    let home = Home::new();
    // Each take that finds the producer late assists, and so do all at 100 %.
    let verify = "verify --plain -n 100k --capacity 1024 --threshold 100% --format json";
    let on = object(&home.print(format!("{verify} --assist 100%")));
    assert!(on["assists"].as_u64().unwrap() > 0, "{on}");
    let off = object(&home.print(format!("{verify} --assist off")));
    assert_eq!(off["assists"], 0, "{off}");
}

#[test]
fn an_interrupt_prints_what_was_verified_until_then() {
    let home = Home::new();
    for load in ["", "--rate 20k"] {
        let line = format!("verify --plain --format json --seconds 9999 {load}");
        let output = home.interrupt(line);
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert_says(&stderr(&output), &["interrupted"]);
        let object = object(&stdout(&output));
        assert_eq!(object["interrupted"], true);
        assert_eq!(object["duplicates"], 0);
    }
}

#[test]
fn verify_runs_a_load_and_checks_every_id() {
    let home = Home::new();
    home.run("keygen");
    // 58,000 IDs in all: fewer than the ring has, so it can't run dry.
    let line = "verify --seconds 1 --consumers 2 --rate 20k --burst 400k:100ms/1s";
    let table = print_some(&home, line, |table| number(table, "IDs") > 0.0);
    let taken = number(&table, "IDs");
    assert_eq!(taken + number(&table, "not taken in time"), 58_000.0);
    assert_flawless(&table);
    for title in ["empties", "refused"] {
        assert_eq!(row(&table, title), "0", "{table}");
    }
    for name in ["p50", "p90", "p99", "p99.9", "p99.99", "max"] {
        // In the unit that suits it.
        let latency = row(&table, &format!("latency {name}"));
        assert!(latency.ends_with('s'), "{table}");
        assert!(!latency.starts_with('0'), "{table}");
    }
    let lowest = row(&table, "lowest level seen");
    assert!(lowest.ends_with(" of 65,536"), "{lowest}");
}

#[test]
fn verify_runs_a_trace_to_its_end() {
    let home = Home::new();
    let trace = home.path("trace.csv");
    let lines = "# seconds,count\n1763000000,300\n\n1763000000.5,700\n";
    fs::write(&trace, lines).unwrap();
    let table = home.print(format!("verify --plain --trace {trace} --threshold 25%"));
    let missed = number(&table, "not taken in time");
    assert_eq!(number(&table, "IDs") + missed, 1000.0);
    assert_flawless(&table);
}

#[test]
fn verify_counts_the_takes_that_had_to_make_their_id() {
    // A ring of one slot that takes don't refill, of which a group takes several in a row.
    let load = "--rate 20M --seconds 1 --capacity 1 --consumers 1 --assist off";
    let line = format!("verify --plain {load}");
    let table = print_some(&Home::new(), &line, |table| number(table, "IDs") > 0.0);
    assert!(number(&table, "empties") > 0.0, "{table}");
    assert!(number(&table, "made in place") > 0.0, "{table}");
    assert_flawless(&table);
}

#[test]
fn verify_warns_of_a_load_that_the_lease_can_not_carry() {
    // 4,096 IDs a second, of which a minute may be borrowed; a slow machine needs some
    // seconds to come to the limit, and a busy one more of them.
    let run = |seconds| {
        succeed(Home::new().run(format!(
            "verify --plain --layout js-safe --nodes 9..10 --rate 500k --seconds {seconds} \
             --capacity 1024"
        )))
    };
    let comes_to_the_limit = |output: &Output| number(&stdout(output), "refused") > 0.0;
    let outputs = [4, 20].into_iter().map(run);
    let output = { outputs }
        .find(comes_to_the_limit)
        .unwrap_or_else(|| run(60));
    let text = stderr(&output);
    let expected = [
        "500 k IDs/s",
        "1 node have",
        "4.1 k IDs/s",
        "after 496 ms",
        "60 s",
        "IDs were refused: ",
    ];
    assert_says(&text, &expected);
    let table = stdout(&output);
    assert!(number(&table, "refused") > 0.0, "{table}");
    let borrowed = row(&table, "most borrowed");
    let is_a_minute = borrowed.starts_with("60") || borrowed.starts_with("61");
    assert!(is_a_minute, "{borrowed}");
}

#[test]
fn verify_says_what_is_wrong_with_a_load() {
    let home = Home::new();
    let trace = home.path("back.csv");
    fs::write(&trace, "0,5\n2,5\n1,5\n").unwrap();
    let back = format!("--trace {trace}");
    let both = format!("--rate 1M --trace {trace}");
    for (status, options, said) in [
        (2, "--rate fast", "is not a rate"),
        (2, "--rate 0k", "1/s to 1000G/s"),
        (
            2,
            "--rate 1M --burst 2M:2s/1s",
            "does not end within its period",
        ),
        (2, "--rate 1M --burst 2M:1s", "rate:length/period"),
        (2, "--burst 2M:1ms/1s", "--rate"),
        (2, &both, "--trace"),
        (2, "--rate 1M -n 5", "-n"),
        (2, "--rate 1M --threads 2", "--threads"),
        (2, "--consumers 2", "--rate"),
        (2, "--rate 1M --threshold 101%", "1 to 100 %"),
        (2, "--rate 1M --threshold 0%", "1 to 100 %"),
        (2, "--assist 0%", "1 to 100 %"),
        (2, "--assist 10", "or off"),
        (2, "--stripes 3", "from 1 to 64"),
        (1, "--stripes 4 --capacity 2", "from 1 to 2"),
        (1, "--rate 1M --capacity 1000", "power of two"),
        (1, &back, "line 3 of the trace goes back in time"),
        (1, "--trace /no/such/file", "/no/such/file"),
    ] {
        home.assert_refused(&format!("verify --plain {options}"), status, said);
    }
    assert!(!home.data_dir().exists());
}

//! What `verify` finds.

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
    let figures = object(&home.print("verify --plain --format json -n 20k"));
    assert_eq!(figures["ids"], 20_000);
    assert_eq!(figures["duplicates"], 0);
    assert_eq!(figures["interrupted"], false);
    assert_eq!(figures["capacity"], 65_536);
    assert!(figures["stripes"].as_u64().unwrap().is_power_of_two());
    assert!(figures["took_s"].as_f64().unwrap() > 0.0);
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
    let output = Home::new().interrupt("verify --plain --format json --seconds 9999");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_says(&stderr(&output), &["interrupted"]);
    let object = object(&stdout(&output));
    assert_eq!(object["interrupted"], true);
    assert_eq!(object["duplicates"], 0);
}

#[test]
fn verify_says_what_is_wrong_with_its_shape() {
    let home = Home::new();
    for (status, options, said) in [
        (2, "--threshold 101%", "1 to 100 %"),
        (2, "--threshold 0%", "1 to 100 %"),
        (2, "--assist 0%", "1 to 100 %"),
        (2, "--assist 10", "or off"),
        (2, "--stripes 3", "from 1 to 64"),
        (1, "--stripes 4 --capacity 2", "from 1 to 2"),
        (1, "--capacity 1000", "power of two"),
    ] {
        home.assert_refused(&format!("verify --plain {options}"), status, said);
    }
    assert!(!home.data_dir().exists());
}

//! What `verify` finds.

use std::time::Instant;

use serde_json::json;

use crate::home::{Home, assert_flawless, object, row, stderr, stdout, succeed};
use ringflake_kit::assert_says;

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

    let figures = object(&home.print("verify --plain --format json -n 20k"));
    for (name, expected) in [
        ("ids", json!(20_000)),
        ("duplicates", json!(0)),
        ("interrupted", json!(false)),
        ("capacity", json!(65_536)),
    ] {
        assert_eq!(figures[name], expected, "{name}");
    }
    assert!(figures["stripes"].as_u64().unwrap().is_power_of_two());
    assert!(figures["took_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn verify_goes_on_through_refusals_and_stops_in_time() {
    // 4,096 IDs a second: the minute that may be borrowed is used up at once. A busy machine
    // gets more time for that, and to stop.
    for seconds in [2, 10, 40] {
        let began = Instant::now();
        let table = Home::new().print(format!(
            "verify --plain --layout 31/1/12@2024-10-27T03:33:20Z/1s --seconds {seconds} \
             --capacity 1024 --threads 2",
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
fn an_interrupt_prints_what_was_verified_until_then() {
    let output = Home::new().interrupt("verify --plain --format json --seconds 9999");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_says(&stderr(&output), &["interrupted"]);
    let object = object(&stdout(&output));
    assert_eq!(object["interrupted"], true);
    assert_eq!(object["duplicates"], 0);
}

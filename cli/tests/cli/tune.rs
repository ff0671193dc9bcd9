//! What `tune` answers, and what it refuses.

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::home::{Home, object, stdout};
use ringflake_kit::assert_says;

/// Runs `tune` for a second, and for longer until `is_measured` holds of what it prints: a busy
/// machine may let no consumer run in time.
fn measured(home: &Home, line: &str, is_measured: impl Fn(&str) -> bool) -> Output {
    let run = |seconds| home.run(format!("{line} --seconds {seconds}"));
    let mut outputs = [1, 5, 15].into_iter().map(run);
    let found = outputs.find(|output| is_measured(&stdout(output)));
    found.unwrap_or_else(|| run(30))
}

#[test]
fn the_first_answer_is_computed_and_names_lease_and_ring() {
    let home = Home::new();
    let began = Instant::now();
    let output = home.run("tune --rate 20000 --burst 200k:100ms/10s");
    // On any machine; it takes half a second where a core is free.
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
    let text = stdout(&output);
    let parts = [
        "Lease at least 1 node: the bursts borrow 52.6 ms.",
        "200k/s for the first 100ms of every 10s (20k IDs a burst)",
        "1 node (1 block of 32 from a store) sustains 131 k IDs/s, of which the load takes 16.6 %",
        "\nmargin   2: ",
        "        75 %",
        "use ringflake::{CachedGenerator, Layout, Secret, StaticLease",
    ];
    assert_says(&text, &parts);
    assert!(output.status.success(), "{text}");
    assert!(!home.data_dir().exists(), "no lease, and no secret");
}

#[test]
fn a_run_has_its_finding_its_table_and_its_page() {
    let home = Home::new();
    let page = home.path("tune.html");
    let line = format!("tune --rate 20k --report {page}");
    let output = measured(&home, &line, |text| !text.contains("no run had an ID"));
    let text = stdout(&output);
    assert_says(&text, &["by a run of each", "p99.99"]);
    let is_confirmed = text.contains("onfirmed by a run") || text.contains("Corrected by a run");
    assert_eq!(output.status.success(), is_confirmed, "{text}");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>"));
    assert!(html.contains("ringflake tune --rate 20k"));
    let line = "tune --rate 20k --run";
    measured(&home, line, |text| text.contains("by a run of each"));
}

#[test]
fn json_is_one_object_with_documented_names() {
    let home = Home::new();
    let line = "tune --rate 20k --format json --nodes 4..6 --threshold 60%";
    let output = measured(&home, line, |text| {
        object(text)["run"]["rings"]
            .as_array()
            .is_some_and(|rings| rings.len() >= 4)
    });
    let answer = object(&stdout(&output));
    assert_eq!(answer["version"], 4);
    assert_eq!(answer["load"]["mean_ids_per_s"], 20_000.0);
    assert_eq!(answer["lease"]["nodes"], serde_json::json!([4, 6]));
    assert_eq!(answer["lease"]["enough_nodes"], 1);
    assert!(answer["machine"]["fill_ids_per_s"].as_f64().unwrap() > 0.0);
    let ring = &answer["ring"];
    assert!(ring["capacity"].as_u64().unwrap().is_power_of_two());
    assert_eq!(ring["threshold"], 60);
    let thresholds = answer["thresholds"].as_array().unwrap();
    let names: Vec<_> = thresholds
        .iter()
        .map(|it| it["threshold"].to_string())
        .collect();
    assert_eq!(names, ["25", "50", "60", "75"]);
    let rings = answer["run"]["rings"].as_array().unwrap();
    // The other thresholds don't run if the machine could not serve the first ring.
    let least = match answer["run"]["finding"] == "not_served" {
        true => 1,
        false => 4,
    };
    assert!(rings.len() >= least, "{}", rings.len());
    for ring in rings {
        assert!(ring["taken"].as_u64().unwrap() > 0, "{ring}");
        assert!(ring["latency_ns"]["p99.99"].is_u64(), "{ring}");
    }
    let finding = answer["run"]["finding"].as_str().unwrap();
    let is_good = ["confirmed", "corrected"].contains(&finding);
    assert_eq!(output.status.success(), is_good, "{finding}");
    // Every name is in the page of the docs.
    let guide = include_str!("../../../src/guide/tuning.md");
    let mut names = Vec::new();
    collect_names(&answer, &mut names);
    for name in names {
        assert!(
            guide.contains(&format!("`{name}`")),
            "{name} is not documented"
        );
    }
    // Without a run.
    assert!(object(&stdout(&home.run(line)))["run"].is_null());
}

fn collect_names(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                names.push(name.clone());
                collect_names(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|it| collect_names(it, names)),
        _ => {}
    }
}

#[test]
fn a_wrong_file_is_refused_before_anything_is_measured() {
    let home = Home::new();
    let trace = home.path("trace.csv");
    fs::write(&trace, "0,5\n2,5\n1,5\n").unwrap();
    let trace = format!("--trace {trace}");
    let long = home.path("long.csv");
    fs::write(&long, "0,5\n40,5\n").unwrap();
    let long = format!("--run --trace {long}");
    // It would take hours.
    let path = home.path("missing/tune.html");
    let report = format!("--rate 1M --seconds 9999 --report {path}");
    let not_written = format!("the report can't be written to {path}");
    for (status, options, said) in [
        (2, &long, "the trace lasts 80 s"),
        (1, &trace, "line 3"),
        (1, &report, &not_written),
    ] {
        home.assert_refused(&format!("tune {options}"), status, said);
    }
}

#[test]
fn a_load_that_nothing_serves_has_status_1_and_a_reason() {
    let home = Home::new();
    for (options, parts) in [
        (
            "--rate 20k --nodes 0..1 --burst 10M:60s/1h",
            ["1 node is too few: after ", "needs 51 nodes"],
        ),
        (
            "--rate 1000G",
            [
                "No ring serves this load: the peak needs",
                "131,072 nodes are too",
            ],
        ),
    ] {
        let output = home.run(format!("tune {options}"));
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_says(&text, &parts);
        for nonsense in [" 0 ns", "NaN", "inf", "CachedGenerator::builder"] {
            assert!(!text.contains(nonsense), "{nonsense}: {text}");
        }
    }
}

#[test]
fn an_interrupt_ends_the_run_and_prints_the_answer() {
    let output = Home::new().interrupt("tune --rate 20k --seconds 9999 --format json");
    let answer = object(&stdout(&output));
    assert_eq!(answer["run"]["finding"], "not_measured");
    assert!(answer["ring"].is_object());
    assert_eq!(output.status.code(), Some(130));
}

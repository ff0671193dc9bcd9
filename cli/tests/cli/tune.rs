//! What `tune` recommends, and what it refuses.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::home::{Home, stderr, stdout};
use ringflake_kit::assert_says;

/// A load that any machine can serve, and a grid that is soon through.
const SMALL: &str = "tune --rate 20k --threshold 50% --threshold adaptive";

/// Runs `tune` for so many seconds, and for longer until `is_measured` holds of what it prints:
/// a busy machine may let no run of a ring end within the first few.
fn measured(home: &Home, line: &str, seconds: u32, is_measured: impl Fn(&str) -> bool) -> Output {
    let run = |seconds| home.run(format!("{line} --seconds {seconds}"));
    let mut outputs = [seconds, 10, 30].into_iter().map(run);
    let found = outputs.find(|output| is_measured(&stdout(output)));
    found.unwrap_or_else(|| run(60))
}

#[test]
fn a_recommendation_has_its_reasons_its_builder_and_its_page() {
    let home = Home::new();
    let page = home.path("tune.html");
    // Noise can end in no recommendation; what is printed then is tested elsewhere.
    let line = format!("{SMALL} --report {page}");
    let output = measured(&home, &line, 2, |text| text.contains("no ring"));
    let text = stdout(&output);
    let parts = [
        "20 k IDs/s on average",
        "This machine: ",
        "The lease: 1 node has 131 k IDs/s",
        "no ring",
    ];
    assert_says(&text, &parts);
    let has_builder = text.contains("CachedGenerator::builder(layout)");
    assert_eq!(output.status.success(), has_builder, "{text}");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>"));
    assert!(html.contains("ringflake tune --rate 20k"));
    assert!(!home.data_dir().exists(), "no lease, and no secret");
}

#[test]
fn json_is_one_object_with_the_names_that_are_written_down() {
    let home = Home::new();
    let line = format!("{SMALL} --format json --goal max=1h --nodes 4..6");
    let output = measured(&home, &line, 2, |text| {
        let object: Value = serde_json::from_str(text).unwrap();
        let has_settings = object["settings"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        has_settings && object["baseline"].is_object()
    });
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 1, "{text}");
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(object["version"], 2);
    assert_eq!(object["interrupted"], false);
    assert_eq!(object["load"]["mean_ids_per_s"], 20_000.0);
    assert_eq!(object["lease"]["nodes"], serde_json::json!([4, 6]));
    assert_eq!(object["goal"]["quantile"], 1.0);
    assert!(object["machine"]["fill_ids_per_s"].as_f64().unwrap() > 0.0);
    let settings = object["settings"].as_array().unwrap();
    assert!(!settings.is_empty());
    for setting in settings {
        assert!(setting["taken"].as_u64().unwrap() > 0, "{setting}");
        assert!(setting["latency_ns"]["p99.99"].is_u64(), "{setting}");
    }
    let baseline = &object["baseline"];
    assert!(baseline["taken"].as_u64().unwrap() > 0, "{baseline}");
    assert!(baseline["latency_ns"]["p99.9"].is_u64(), "{baseline}");
    let verdict = &object["verdict"];
    assert!(verdict["reservations"].is_array(), "{verdict}");
    let good = ["recommended", "with_reservations"];
    let is_good = good.contains(&verdict["kind"].as_str().unwrap());
    assert_eq!(output.status.success(), is_good, "{verdict}");
    let recommended = &object["recommendation"];
    if output.status.success() {
        assert!(recommended["capacity"].as_u64().unwrap().is_power_of_two());
        assert!(recommended["margin"].as_f64().unwrap() >= 1.0);
    }
    // Every name is in the page of the docs.
    let guide = include_str!("../../../src/plan/guide.md");
    let mut names = Vec::new();
    collect_names(&object, &mut names);
    for name in names {
        let is_documented = guide.contains(&format!("`{name}`"));
        assert!(is_documented, "{name} is not documented");
    }
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
fn what_is_wrong_is_refused_before_anything_is_measured() {
    let home = Home::new();
    let trace = home.path("trace.csv");
    fs::write(&trace, "0,5\n2,5\n1,5\n").unwrap();
    let trace = format!("--trace {trace}");
    // It would take hours.
    let path = home.path("missing/tune.html");
    let report = format!("--rate 1M --seconds 9999 --report {path}");
    let not_written = format!("the report can't be written to {path}");
    for (status, options, said) in [
        (2, "", "--rate"),
        (2, "--rate 2000000", "unit"),
        (2, "--rate 0/s", "0/s"),
        (2, "--rate 1M --burst 20M:2s/1s", "period"),
        (2, "--rate 1M --threshold 120%", "1 to 100"),
        (2, "--rate 1M --threshold 0", "1 to 100"),
        (2, "--rate 1M --capacity 1000", "512 or 1024"),
        (2, "--rate 1M --goal p99.99", "p99.99=2us"),
        (2, "--rate 1M --goal p101=2us", "between 0 and 100"),
        (2, "--rate 1M --seconds 0", "1 to 86400"),
        (2, "--rate 1M --consumers 0", "1 to 1024"),
        (2, "--rate 1M --nodes 0..131073", "131072"),
        (1, &trace, "line 3"),
        (1, &report, &not_written),
    ] {
        home.assert_refused(&format!("tune {options}"), status, said);
    }
}

#[test]
fn a_load_above_the_ceiling_of_its_lease_is_reported_in_numbers() {
    let home = Home::new();
    let output = home.run("tune --rate 1M --nodes 0..1 --seconds 1 --capacity 65536");
    let expected = [
        "1 M IDs/s",
        "1 node has 131 k IDs/s",
        "after 9.05 s",
        "10 nodes",
    ];
    assert_says(&stderr(&output), &expected);
    let expected = ["Warning: the load asks for 1 M IDs/s", "not at this rate"];
    assert_says(&stdout(&output), &expected);
}

#[test]
fn a_load_that_no_machine_serves_fails_and_says_how_far_it_came_and_why() {
    const NOT_SERVED: &str = "This load was not served as due, so nothing is recommended: of ";

    let home = Home::new();
    for (rate, seconds) in [("1000G", 1), ("5G", 2)] {
        let line = format!("tune --rate {rate} --nodes 0..131072");
        let output = measured(&home, &line, seconds, |text| text.contains(NOT_SERVED));
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let expected = [
            NOT_SERVED,
            " were taken by then, ",
            "What limits it: ",
            "a thread takes at most",
        ];
        assert_says(&text, &expected);
        for nonsense in [
            "recommended\n",
            " 0 ns",
            "NaN",
            "inf",
            "CachedGenerator::builder",
        ] {
            assert!(!text.contains(nonsense), "{nonsense}: {text}");
        }
    }
    let line = "tune --rate 1000G --format json";
    let output = measured(&home, line, 1, |text| text.contains("\"not_served\""));
    let object: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let verdict = &object["verdict"];
    assert_eq!(verdict["kind"], "not_served");
    assert!(object["recommendation"].is_null());
    let shortfall = &verdict["shortfall"];
    let [due, taken] = ["due", "taken_by_end"].map(|name| shortfall[name].as_u64().unwrap());
    assert!(taken < due / 2, "{shortfall}");
    let [span, reached] = ["span_s", "reached_s"].map(|name| shortfall[name].as_f64().unwrap());
    assert!(reached < span / 2.0, "{shortfall}");
    assert!(!shortfall["limits"].as_array().unwrap().is_empty());
}

#[test]
fn loads_of_hardly_any_ids_are_answered_without_nonsense() {
    let home = Home::new();
    let trace = home.path("short.csv");
    fs::write(&trace, "0,5\n0.01,5\n").unwrap();
    let output = home.run("tune --rate 1/s --seconds 1");
    assert_eq!(output.status.code(), Some(1));
    assert_says(
        &stdout(&output),
        &["Nothing was measured", "longer --seconds"],
    );
    for options in [
        "--rate 1/s --seconds 4",
        &format!("--trace {trace} --seconds 1"),
    ] {
        let text = stdout(&home.run(format!("tune {options} --threshold 50%")));
        for nonsense in [" 0 ns", "NaN", "inf"] {
            assert!(!text.contains(nonsense), "{nonsense}: {text}");
        }
    }
}

#[test]
fn an_interrupt_ends_the_measuring_and_prints_what_is_known() {
    let output = Home::new().interrupt("tune --rate 20k --seconds 9999 --format json");
    let object: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(object["interrupted"], true);
    let is_recommended = object["recommendation"].is_object();
    assert_eq!(output.status.success(), is_recommended);
}

//! The labels that the alerts and the dashboard of `deploy/` select by are those of the guide's
//! tables of metrics. `.ci/deployed` compares the metrics with those of a running server.

use std::collections::{BTreeMap, BTreeSet};

const GUIDE: &str = include_str!("../../src/guide/monitoring.md");
const RULES: &str = include_str!("../../deploy/prometheus/ringflake.rules.yml");
const RULES_TESTS: &str = include_str!("../../deploy/prometheus/ringflake.test.yml");
const DASHBOARD: &str = include_str!("../../deploy/grafana/ringflake.json");

fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// All that the row of a metric says of labels, by its name.
fn metrics() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let sections = GUIDE.split("\n# ");
    let tables = sections.filter(|section| section.starts_with("The metrics"));
    let rows = tables
        .flat_map(str::lines)
        .filter(|row| row.starts_with("| `"));
    let metrics: BTreeMap<_, _> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let name = code(cells[1]).next().unwrap();
            (name, code(cells[4]).collect())
        })
        .collect();
    assert!(metrics.len() > 20);
    metrics
}

#[test]
fn alerts_select_by_labels_and_values_that_are_exported() {
    let metrics = metrics();
    let mut selected = 0;
    for text in [RULES, RULES_TESTS] {
        for (at, _) in text.match_indices('{') {
            let before = &text[..at];
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let name = &before[before.trim_end_matches(is_name).len()..];
            let Some(known) = metrics.get(name) else {
                continue;
            };
            let inside = text[at + 1..].split_once('}').unwrap().0;
            for matcher in inside.split(',') {
                // Whichever of the four operators is between.
                let (label, values) = matcher.split_at(matcher.find(['=', '!']).unwrap());
                // Those of the scraper and the publisher, of protocols and of histograms.
                if ["instance", "job", "namespace", "protocol", "le"].contains(&label) {
                    continue;
                }
                assert!(known.contains(label), "{name}: {label}");
                selected += 1;
                for value in values.trim_matches(['=', '!', '~', '"']).split('|') {
                    // Of those that a row takes over from the one above it.
                    let above = &metrics["ringflake_refusals_total"];
                    assert!(
                        known.contains(value) || above.contains(value),
                        "{name}: {value}"
                    );
                }
            }
        }
    }
    assert!(selected > 10, "{selected}");
}

fn values(key: &str) -> Vec<&'static str> {
    let parts = DASHBOARD.split(key).skip(1);
    parts.map(|part| part.split('\n').next().unwrap()).collect()
}

#[test]
fn alerts_and_dashboard_say_which_namespace_they_are_about() {
    for alert in RULES.split("- alert: ").skip(1) {
        let name = alert.lines().next().unwrap();
        let is_of_process = ["RingflakeGone", "RingflakeAbsent"].contains(&name)
            || name.starts_with("RingflakeServer");
        let (_, summary) = alert.split_once("summary: ").unwrap();
        let summary = summary.lines().next().unwrap();
        let says = ["$labels.instance", "$labels.namespace"].map(|it| summary.contains(it));
        assert!(says == [true; 2] || is_of_process, "{name}");
    }
    let queries = values("\"expr\": ");
    assert!(queries.len() > 20);
    let process = "{job=~\\\"$job\\\",instance=~\\\"$instance\\\"}";
    let namespace = "{job=~\\\"$job\\\",instance=~\\\"$instance\\\",namespace=~\\\"$namespace\\\"}";
    for query in queries {
        let chosen = match query.contains("ringflake_server_") {
            true => process,
            false => namespace,
        };
        let selectors = query.matches('{').count();
        assert!(
            selectors > 0 && selectors == query.matches(chosen).count(),
            "{query}"
        );
    }
    for legend in values("\"legendFormat\": ") {
        let parts = ["{{instance}}", "{{namespace}}"].map(|it| legend.contains(it));
        assert_eq!(parts[0], parts[1], "{legend}");
    }
}

#[test]
fn each_alert_has_a_test_and_a_section_of_the_guide() {
    let alerts: Vec<_> = RULES.split("- alert: ").skip(1).collect();
    assert!(alerts.len() >= 10);
    let headings = GUIDE.lines().filter(|line| line.starts_with('#'));
    let anchors: BTreeSet<_> = headings
        .map(|line| {
            line.trim_start_matches(['#', ' '])
                .to_lowercase()
                .replace(' ', "-")
        })
        .collect();
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        let fires = [
            format!("alertname=\"{name}\""),
            format!("alertname: {name}\n"),
        ];
        let has_test = fires.iter().any(|fires| RULES_TESTS.contains(fires));
        assert!(has_test, "{name} has no test");
        for part in ["summary: ", "description: ", "severity: "] {
            assert!(alert.contains(part), "{name} has no {part}");
        }
        let page =
            "runbook: https://docs.rs/ringflake/latest/ringflake/guide/monitoring/index.html#";
        let (_, rest) = alert
            .split_once(page)
            .unwrap_or_else(|| panic!("{name}: no runbook"));
        let anchor = rest.lines().next().unwrap();
        assert!(anchors.contains(anchor), "{name}: {anchor}");
    }
}

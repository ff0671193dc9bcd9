//! The front as a shell script uses it.

use std::process::Command;

use super::served::{Served, serve};

/// What curl prints; none if it is not installed.
fn curl(served: &Served, arguments: &[&str], path: &str) -> Option<String> {
    let url = format!("http://{}{path}", served.at);
    let fixed = ["--silent", "--show-error", "--max-time", "60"];
    let output = Command::new("curl")
        .args(fixed)
        .args(arguments)
        .arg(url)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            let required = std::env::var_os("RINGFLAKE_REQUIRE_SERVERS").is_some();
            assert!(!required, "curl can't be run: {error}");
            eprintln!("SKIPPED: curl can't be run: {error}");
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn curl_takes_ids_by_a_query_or_by_json() {
    let served = serve(|_| {});
    let post = ["--request", "POST"];
    let Some(one) = curl(&served, &post, "/v1/ids?namespace=orders") else {
        return;
    };
    assert!(
        one.starts_with("{\"namespace\":\"orders\",\"ids\":[\""),
        "{one}"
    );

    let lines = ["--request", "POST", "--header", "accept: text/plain"];
    let lines = curl(&served, &lines, "/v1/ids?namespace=orders&count=2000").unwrap();
    let mut ids: Vec<i64> = lines.lines().map(|id| id.parse().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2000);

    let json = "content-type: application/json";
    let body = r#"{"namespace":"orders","count":3,"format":"fixed"}"#;
    let json = curl(&served, &["--header", json, "--data", body], "/v1/ids").unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["ids"].as_array().unwrap().len(), 3);

    // What curl calls a body that is none.
    let empty = curl(&served, &["--data", ""], "/v1/ids?namespace=orders").unwrap();
    assert!(empty.contains("\"ids\""), "{empty}");
}

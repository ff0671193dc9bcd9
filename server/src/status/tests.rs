//! How a server stands, on generators with leases of their own.

use std::sync::Arc;

use ringflake::{CachedGenerator, Layout};
use serde_json::Value;

use super::*;

/// A namespace in a directory of its own.
fn local(directory: &tempfile::TempDir) -> Arc<Namespace> {
    let local = ringflake::Local::new("orders")
        .in_directory(directory.path())
        .accept_best_effort(true);
    let generator = CachedGenerator::builder(Layout::RANDFLAKE)
        .local(local)
        .build()
        .unwrap();
    Arc::new(Namespace {
        name: "orders".to_owned(),
        generator,
    })
}

#[test]
fn a_status_has_what_the_page_shows() {
    let directory = tempfile::tempdir().unwrap();
    let orders = local(&directory);
    orders.generator.take().unwrap();
    let counters = FrontCounters::default();
    counters.accepted.store(3, Ordering::Relaxed);
    counters.closed.store(1, Ordering::Relaxed);
    let fronts = vec![Front::of("http", [&counters, &counters].into_iter())];
    let status = Status::now(&[orders], fronts, Duration::from_millis(1_500), false, None);
    let status: Value = serde_json::from_str(&serde_json::to_string(&status).unwrap()).unwrap();

    assert_eq!(status["uptime_ms"], 1_500);
    assert_eq!(
        (
            &status["fronts"][0]["open"],
            &status["fronts"][0]["accepted"]
        ),
        (&4.into(), &6.into())
    );
    let orders = &status["namespaces"][0];
    assert_eq!(
        (&orders["name"], &orders["ready"]),
        (&"orders".into(), &true.into())
    );
    assert_eq!(orders["stats"]["issued"], 1);
    assert_eq!(orders["alerts"], serde_json::json!([]));
    let hold = &orders["holds"][0];
    assert_eq!(hold["state"], "held");
    let now = status["unix_ms"].as_u64().unwrap();
    assert!(hold["from_unix_ms"].as_u64().unwrap() <= now, "{hold}");
    assert!(hold["until_unix_ms"].as_u64().unwrap() > now, "{hold}");
    // Blocks of 32 nodes, of 131,072 IDs a second each.
    let holds = orders["holds"].as_array().unwrap().len() as f64;
    assert_eq!(orders["ceiling"], holds * 32.0 * 131_072.0);
}

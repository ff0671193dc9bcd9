//! IDs, in each format.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use ringflake::Id;
use ringflake_kit::eventually;
use serde_json::json;

use super::served::{Served, serve, serve_ahead, serve_few};

const BINARY: &str = "accept: application/octet-stream";
const TEXT: &str = "accept: text/plain";

/// Asserts that the IDs belong to the namespace, and are distinct.
#[track_caller]
fn assert_distinct(served: &Served, namespace: &str, ids: impl IntoIterator<Item = u64>) {
    let generator = &served.namespaces.get(namespace).unwrap().generator;
    let mut seen = HashSet::new();
    for id in ids {
        let parts = generator.inspect(Id::from_u64(id)).unwrap();
        let raw = (parts.tick, parts.node, parts.sequence);
        assert!(seen.insert(raw), "twice: {parts:?}");
    }
}

#[test]
fn an_id_comes_as_a_signed_number_in_json() {
    let served = serve(|_| {});
    let mut wire = served.connect();
    let reply = wire.post("/v1/ids?namespace=orders", &[]);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["cache-control"], "no-store");
    let json = reply.json();
    let id = json["ids"][0].as_str().unwrap();
    assert_eq!(json, json!({ "namespace": "orders", "ids": [id] }));
    let id: i64 = id.parse().unwrap();

    // On the same connection.
    let inspected = wire.get(&format!("/v1/ids/{id}?namespace=orders")).json();
    let parts = {
        let namespace = served.namespaces.get("orders").unwrap();
        namespace.generator.inspect(Id::from_i64(id)).unwrap()
    };
    assert_eq!(inspected["id"], id.to_string());
    assert_eq!(inspected["tick"], parts.tick);
    assert_eq!(inspected["node"], parts.node);
    assert_eq!(inspected["sequence"], parts.sequence);
    assert_eq!(inspected["unix_ms"], parts.unix_ms);
    let time = inspected["time"].as_str().unwrap();
    assert_eq!(humantime::parse_rfc3339(time).unwrap(), parts.time());
    assert!(served.end(Duration::from_secs(60)));
}

#[test]
fn no_id_comes_twice_in_whatever_format() {
    let served = serve(|_| {});
    let mut wire = served.connect();
    let mut ids = Vec::new();
    // Around the size of a batch, and the most that is allowed.
    for count in [1, 2, 1024, 1025, 3000, 65_536] {
        let path = format!("/v1/ids?namespace=orders&count={count}");
        let binary = wire.post(&path, &[BINARY]);
        assert_eq!(binary.headers["content-length"], (8 * count).to_string());
        assert_eq!(binary.headers["content-type"], "application/octet-stream");
        ids.push(binary.ids());

        let text = wire.post(&(path.clone() + "&format=fixed"), &[TEXT]);
        assert_eq!(text.headers["content-type"], "text/plain; charset=utf-8");
        let of_text = text.text();
        let of_text = of_text.lines().map(|id| Id::from_fixed_text(id).unwrap());
        ids.push(of_text.map(Id::to_u64).collect());

        let json = wire.post(&(path + "&format=text"), &[]).json();
        let of_json = json["ids"].as_array().unwrap().iter();
        let of_json = of_json.map(|id| id.as_str().unwrap().parse::<Id>().unwrap());
        ids.push(of_json.map(Id::to_u64).collect());
        assert!(ids.iter().rev().take(3).all(|ids| ids.len() == count));
    }
    let count: usize = ids.iter().map(Vec::len).sum();
    assert_distinct(&served, "orders", ids.into_iter().flatten());
    assert_eq!(served.counters().ids.load(Ordering::Relaxed), count as u64);
}

#[test]
fn an_answer_that_can_t_be_finished_is_an_error() {
    let served = serve_few(10 << 10, |_| {});
    let path = "/v1/ids?namespace=few&count=20000";
    let reply = served.connect().post(path, &[TEXT]);
    assert_eq!((reply.status, &*reply.problem()), (503, "cannot-issue"));
    assert!(!reply.headers.contains_key("retry-after"));
    assert_eq!(served.counters().ids.load(Ordering::Relaxed), 0);
}

#[test]
fn a_large_take_waits_for_ids_that_come_in_time() {
    // 1,024 IDs a second, of which ten seconds may be borrowed.
    let (served, clock) = serve_ahead(100..200);
    let count = 15 << 10;
    let asking = {
        let mut wire = served.connect();
        thread::spawn(move || {
            let path = format!("/v1/ids?namespace=ahead&count={count}");
            wire.post(&path, &[BINARY])
        })
    };
    let generator = served.namespaces.get("ahead").unwrap().generator.clone();
    eventually("it has taken all that may be borrowed", || {
        generator.stats().issued >= 10 << 10
    });
    clock.advance(Duration::from_secs(10));
    let reply = asking.join().unwrap();
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.ids().len() as u64, count);
}

#[test]
fn http_1_0_is_answered_with_a_length() {
    let served = serve(|_| {});
    for count in [1, 5000] {
        let mut wire = served.connect();
        wire.send(format!(
            "POST /v1/ids?namespace=orders&count={count} HTTP/1.0\r\n{TEXT}\r\n\r\n"
        ));
        let reply = wire.reply();
        assert!(reply.headers.contains_key("content-length"), "{reply:?}");
        assert_eq!(reply.text().lines().count(), count);
    }
}

#[test]
fn the_figures_of_each_namespace_are_given() {
    let served = serve(|_| {});
    let mut wire = served.connect();
    wire.post("/v1/ids?namespace=orders&count=5", &[]);
    wire.post("/v1/ids?namespace=others&count=7", &[]);
    let text = wire.get("/metrics").text();
    for line in [
        "# TYPE ringflake_ids_issued_total counter",
        "ringflake_ids_issued_total{namespace=\"orders\"} 5",
        "ringflake_ids_issued_total{namespace=\"others\"} 7",
        "ringflake_server_ids_total{front=\"http\"} 12",
    ] {
        let count = text.lines().filter(|own| *own == line).count();
        assert_eq!(count, 1, "{line}\n{text}");
    }
    assert!(text.contains("ringflake_lease_remaining_seconds{namespace=\"orders\"} "));
    let reply = wire.get("/metrics");
    let content_type = &reply.headers["content-type"];
    assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(reply.text().lines().count(), text.lines().count());
    // Nobody is kept from its end.
    assert!(served.end(Duration::from_secs(60)));
}

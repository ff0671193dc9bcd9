//! Leases of clients, as a client sees them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ringflake_kit::eventually;
use ringflake_kit::faulty_store::Fault;
use serde_json::{Value, json};

use super::served::serve;
use super::wire::Reply;
use crate::sublease::tests::Site;
use crate::wire::Wire;

const ACQUIRE: &str = "/v1/leases";
const RENEW: &str = "/v1/leases/renew";
const RELEASE: &str = "/v1/leases/release";

fn ask(wire: &mut Wire, path: &str, body: &Value) -> Reply {
    wire.post_json(path, &body.to_string())
}

#[test]
fn a_lease_is_given_and_renewed_and_released() {
    let served = serve(|_| {});
    let mut wire = served.connect();
    let body = json!({ "namespace": "orders", "nodes": 33, "duration_s": 60, "holder": "java-1" });
    let given = ask(&mut wire, ACQUIRE, &body).json();
    assert_eq!(given["namespace"], "orders");
    let whole = given.to_string();
    for said in [
        r#""epoch_unix_ms":1730000000000,"node_bits":17,"sequence_bits":17,"tick_ms":1000,"time_bits":30"#,
        r#""id_bits":64"#,
        r#""encrypted":true"#,
    ] {
        assert!(whole.contains(said), "{said} is not in {whole}");
    }
    let leases = given["leases"].as_array().unwrap();
    let nodes = |lease: &Value| {
        let nodes = &lease["nodes"];
        nodes["start"].as_u64().unwrap()..nodes["end"].as_u64().unwrap()
    };
    let all: HashSet<u64> = leases.iter().flat_map(nodes).collect();
    assert!(all.len() >= 33, "{leases:?}");
    for lease in leases {
        let (from, until) = (&lease["ticks"]["from"], &lease["ticks"]["until"]);
        let (from, until) = (from.as_u64().unwrap(), until.as_u64().unwrap());
        assert_eq!(until - from, 60);
        assert_eq!(lease["from_unix_ms"], (1_730_000_000 + from) * 1000);
        assert_eq!(lease["until_unix_ms"], (1_730_000_000 + until) * 1000);
        assert!(lease["renew_after_s"].as_u64().unwrap() <= 30, "{lease}");
    }

    let body = json!({ "lease": leases[0]["lease"], "duration_s": 100 });
    let renewed = ask(&mut wire, RENEW, &body).json();
    let lease = &renewed["leases"][0];
    assert_eq!(lease["nodes"], leases[0]["nodes"]);
    assert_eq!(lease["ticks"]["from"], leases[0]["ticks"]["from"]);
    let until = |lease: &Value| lease["ticks"]["until"].as_u64().unwrap();
    assert!(until(lease) >= until(&leases[0]) + 40);
    let released = ask(&mut wire, RELEASE, &json!({ "lease": lease["lease"] })).json();
    let expected = json!([{ "nodes": lease["nodes"], "ticks": lease["ticks"] }]);
    let expected = json!({ "namespace": "orders", "released": expected });
    assert_eq!(released, expected);

    // The text before the renewal is good for nothing any more.
    let old = json!({ "lease": leases[0]["lease"], "duration_s": 110 });
    let reply = ask(&mut wire, RENEW, &old);
    assert_eq!((reply.status, &*reply.problem()), (409, "lease-lost"));
    assert!(
        reply.text().contains("Issue no more IDs from it"),
        "{reply:?}"
    );

    let figures = wire.get("/metrics").text();
    for line in [
        format!("ringflake_server_leases_given_total {}", leases.len()),
        "ringflake_server_leases_renewed_total 1".to_owned(),
        "ringflake_server_leases_released_total 1".to_owned(),
        "ringflake_server_leases_refused_total 1".to_owned(),
    ] {
        assert!(figures.lines().any(|own| own == line), "{line}");
    }
    assert!(served.end(Duration::from_secs(60)));
}

#[test]
fn what_is_wrong_with_a_request_for_a_lease_is_said() {
    let served = serve(|_| {});
    let mut wire = served.connect();
    let table = r#"
        /v1/leases       | | 400 malformed | an object
        /v1/leases       | [] | 422 invalid | not a JSON object
        /v1/leases       | {} | 422 invalid | namespace (a text)
        /v1/leases       | {"namespace":"Orders"} | 422 invalid | a-z
        /v1/leases       | {"namespace":"none"} | 404 unknown-namespace | unknown namespace
        /v1/leases       | {"namespace":"orders","nodes":null} | 422 invalid | whole numbers
        /v1/leases       | {"namespace":"orders","nodes":0} | 422 invalid | 1 to 16
        /v1/leases       | {"namespace":"orders","blocks":17} | 422 invalid | 1 to 16
        /v1/leases       | {"namespace":"orders","blocks":1,"nodes":1} | 422 invalid | one of
        /v1/leases       | {"namespace":"orders","duration_s":0} | 422 invalid | 1 to 604800
        /v1/leases       | {"namespace":"orders","duration_s":604801} | 422 invalid | 1 to 604800
        /v1/leases       | {"namespace":"orders","holder":""} | 422 invalid | 1 to 64
        /v1/leases       | {"namespace":"orders","holder":"\n"} | 422 invalid | 1 to 64
        /v1/leases       | {"namespace":"orders","had":["x"]} | 422 invalid | leave it out
        /v1/leases       | {"namespace":"orders","more":1} | 422 invalid | its members are
        /v1/leases?x=1   | {"namespace":"orders"} | 422 invalid | a query
        /v1/leases/renew | {"lease":"x"} | 409 lease-lost | request another
        /v1/leases/renew | {"lease":7} | 422 invalid | lease (a text)
        /v1/leases/renew | {"lease":"x","duration_s":0} | 422 invalid | 1 to 604800
        /v1/leases/release | {"lease":"x"} | 409 lease-lost | request another"#;
    for row in table.trim().lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let reply = wire.post_json(cells[0], cells[1]);
        assert_eq!(
            format!("{} {}", reply.status, reply.problem()),
            cells[2],
            "{row}"
        );
        assert!(reply.text().contains(cells[3]), "{row}: {}", reply.text());
    }
    assert_eq!(wire.post(ACQUIRE, &[]).problem(), "unsupported-media-type");
    let reply = wire.get(ACQUIRE);
    assert_eq!((reply.status, &*reply.headers["allow"]), (405, "POST"));
}

#[test]
fn a_lease_that_comes_after_its_request_timed_out_is_released() {
    let site = Site::new(0);
    let subleases = Arc::new(site.server());
    let served = serve(|setup| {
        setup.subleases = subleases;
        setup.limits.request_time = Duration::from_secs(3);
    });
    served.namespaces.open("orders").unwrap();
    let body = json!({ "namespace": "orders" }).to_string();
    // No response if a busy machine has stopped the client or the server for as long.
    let ask = || {
        let json = ["content-type: application/json"];
        let mut wire = served.connect();
        wire.try_request("POST", ACQUIRE, &json, &body).ok()
    };
    site.store.hold();
    let reply = (0..5).find_map(|_| ask()).expect("a response");
    assert_eq!((reply.status, &*reply.problem()), (503, "no-lease"));
    site.store.let_go();
    // The store has one block.
    eventually("the block is given again", || {
        ask().is_some_and(|reply| reply.status == 200)
    });
    assert!(served.end(Duration::from_secs(60)));
}

#[test]
fn a_lease_that_can_be_had_later_says_when() {
    let mut site = Site::new(0);
    site.limits.leases_per_minute = 2;
    let subleases = Arc::new(site.server());
    let served = serve(|setup| setup.subleases = subleases);
    // The test is about the store's answer, not about the start of a generator.
    served.namespaces.open("orders").unwrap();
    let mut wire = served.connect();
    let body = json!({ "namespace": "orders", "duration_s": 300 });
    site.store.fail(Fault::Down);
    let reply = ask(&mut wire, ACQUIRE, &body);
    assert_eq!((reply.status, &*reply.problem()), (503, "no-lease"));
    assert!(reply.headers.contains_key("retry-after"));
    site.store.heal();
    let first = ask(&mut wire, ACQUIRE, &body).json();
    let reply = ask(&mut wire, ACQUIRE, &body);
    assert_eq!((reply.status, &*reply.problem()), (503, "no-lease"));
    assert!(reply.headers["retry-after"].parse::<u64>().unwrap() > 200);

    let lease = json!({ "lease": first["leases"][0]["lease"] });
    assert_eq!(ask(&mut wire, RELEASE, &lease).status, 200);
    assert_eq!(ask(&mut wire, ACQUIRE, &body).status, 200);
    let reply = ask(&mut wire, ACQUIRE, &body);
    assert_eq!((reply.status, &*reply.problem()), (429, "too-many-leases"));
    let wait = reply.headers["retry-after"].parse::<u64>().unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
    assert!(served.end(Duration::from_secs(60)));
}

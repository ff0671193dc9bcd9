//! Whether a server can issue IDs, and for how long.

use std::time::Duration;

use ringflake_kit::eventually;
use serde_json::json;

use super::served::{Served, serve, serve_ahead};
use super::wire::assert_lines;
use crate::config::Protocol::Http;

#[test]
fn a_health_check_says_for_how_long() {
    let served = serve("");
    let mut wire = served.connect(Http);
    assert_eq!(wire.get("/livez").text(), "live\n");
    let none = json!({ "ready": true, "draining": false, "seconds": null, "namespaces": [] });
    assert_eq!(wire.get("/readyz").json(), none);
    let version = env!("CARGO_PKG_VERSION");
    let line = format!("ringflake_build_info{{version=\"{version}\"}} 1");
    assert_lines(&wire.get("/metrics").text(), &[&line]);
    wire.post("/v1/ids?namespace=orders", &[]);
    let ready = wire.get("/readyz");
    assert_eq!(ready.status, 200);
    let ready = ready.json();
    assert!(ready["seconds"].as_u64().unwrap() > 0, "{ready}");
    assert_eq!(ready["namespaces"][0]["namespace"], "orders");
    assert_eq!(ready["namespaces"][0]["seconds"], ready["seconds"]);
}

/// The status of `/readyz`, its `seconds`, when it is ready, and what keeps it from that.
fn readiness(served: &Served) -> (u16, u64, Option<u64>, Option<String>) {
    let answer = served.connect(Http).get("/readyz");
    let status = answer.status;
    let all = answer.json();
    let one = &all["namespaces"][0];
    for figure in ["ready", "seconds", "ready_in_seconds", "detail"] {
        assert_eq!(
            all.get(figure),
            one.get(figure),
            "{figure} of one and of all: {all}"
        );
    }
    assert_eq!(all["ready"], status == 200, "{all}");
    let detail = all
        .get("detail")
        .map(|text| text.as_str().unwrap().to_owned());
    let in_seconds = all.get("ready_in_seconds").map(|it| it.as_u64().unwrap());
    (status, all["seconds"].as_u64().unwrap(), in_seconds, detail)
}

/// Asserts that a take has this status, and that the status document agrees.
#[track_caller]
fn assert_takes(served: &Served, status: u16) {
    let mut wire = served.connect(Http);
    assert_eq!(wire.post("/v1/ids?namespace=ahead", &[]).status, status);
    let now = wire.get("/v1/status").json();
    let one = &now["namespaces"][0];
    assert_eq!(one["ready"], status == 200, "{now}");
    assert_eq!(
        one["can_go_on_ms"].as_u64() > Some(0),
        status == 200,
        "{now}"
    );
    let metrics = wire.get("/metrics").text();
    for figure in ["ready", "namespace_ready{namespace=\"ahead\"}"] {
        let figure = format!("ringflake_server_{figure} {}", u8::from(status == 200));
        assert_lines(&metrics, &[&figure]);
    }
}

#[test]
fn a_lease_that_begins_later_than_may_be_borrowed_is_not_ready() {
    let (served, clock) = serve_ahead(4_000..4_500);
    // It begins in 3,900 s, of which 10 may be borrowed.
    let (status, seconds, in_seconds, detail) = readiness(&served);
    assert_eq!((status, seconds, in_seconds), (503, 0, Some(3_890)));
    let detail = detail.unwrap();
    assert!(detail.contains("in 3890s"), "{detail}");
    assert_takes(&served, 503);

    clock.advance(Duration::from_millis(3_889_999));
    assert_eq!(readiness(&served).0, 503);
    assert_takes(&served, 503);
    clock.advance(Duration::from_millis(1));
    assert_eq!(readiness(&served), (200, 510, None, None));
    assert_takes(&served, 200);
    clock.advance(Duration::from_secs(509));
    assert_eq!(readiness(&served), (200, 1, None, None));
    clock.advance(Duration::from_secs(1));
    let (status, seconds, in_seconds, detail) = readiness(&served);
    assert_eq!((status, seconds, in_seconds), (503, 0, None));
    assert_eq!(detail.unwrap(), "no lease is in force");
    assert_eq!(served.connect(Http).get("/livez").status, 200);
}

#[test]
fn an_on_demand_server_without_its_data_directory_is_not_ready() {
    let served = serve("");
    assert_eq!(served.connect(Http).get("/readyz").status, 200);
    std::fs::remove_dir_all(served.path("data")).unwrap();
    let mut reply = None;
    eventually("it is not ready", || {
        let answer = served.connect(Http).get("/readyz");
        let is_unready = answer.status == 503;
        reply = Some(answer);
        is_unready
    });
    let reply = reply.unwrap().json();
    assert_eq!(reply["ready"], false, "{reply}");
    let detail = reply["detail"].as_str().unwrap();
    assert!(detail.contains("data directory"), "{detail}");
    let status = served.connect(Http).get("/v1/status").json();
    assert_eq!(status["data_dir"], detail, "{status}");
    let metrics = served.connect(Http).get("/metrics").text();
    assert_lines(
        &metrics,
        &[
            "ringflake_server_data_dir_ready 0",
            "ringflake_server_ready 0",
            // No client has asked for an ID.
            "ringflake_server_request_errors_total{protocol=\"http\",kind=\"unavailable\"} 0",
        ],
    );
}

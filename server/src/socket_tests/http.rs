//! Requests of HTTP, their answers and their errors.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::Id;
use ringflake_kit::eventually;
use serde_json::json;

use super::served::{Served, serve, serve_ahead, serve_few};
use super::wire::assert_lines;
use crate::access::{Access, Right, Role};
use crate::config::Protocol::{Http, Resp};
use crate::tokens::Tokens;

#[test]
fn an_error_says_what_it_is() {
    let served = serve("limits.count = 10\non-demand-names = ['orders']");
    let table = "
        GET /v1                           | 404 not-found
        POST /v1/ids/                     | 404 not-found
        GET /v1/ids                       | 405 method-not-allowed
        DELETE /v1/ids/7?namespace=orders | 405 method-not-allowed
        POST /metrics                     | 405 method-not-allowed
        GET /v1/ids/7?namespace=Orders    | 422 invalid
        POST /v1/ids?namespace=orders     | 422 invalid           | content-type: application/json | {}
        POST /v1/ids?namespace=orders&count=11 | 422 invalid
        POST /v1/ids?namespace=nobody     | 404 unknown-namespace
        GET /v1/ids/7?namespace=orders    | 404 unknown-namespace
        GET /v1/ids/7                     | 422 invalid
        GET /v1/ids/%37?namespace=orders  | 404 no-id
        ";
    for row in table.trim().lines() {
        let mut cells = row.split('|').map(str::trim);
        let (method, path) = cells.next().unwrap().split_once(' ').unwrap();
        let (status, kind) = cells.next().unwrap().split_once(' ').unwrap();
        let status: u16 = status.parse().unwrap();
        let headers: Vec<&str> = cells.next().into_iter().collect();
        let body = cells.next().unwrap_or_default();
        let reply = served.connect(Http).request(method, path, &headers, body);
        let found = (reply.status, reply.problem());
        assert_eq!(found, (status, kind.to_owned()), "{method} {path}");
        assert_eq!(reply.headers["cache-control"], "no-store", "{path}");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff");
        let has_allow = reply.headers.contains_key("allow");
        assert_eq!(has_allow, status == 405, "{method} {path}");
    }
    let mut wire = served.connect(Http);
    let reply = wire.get("/v1/ids");
    assert_eq!(reply.headers["allow"], "POST");
    // Why it is not GET is said where somebody would expect that.
    for (method, path, is_take) in [
        ("GET", "/v1/ids", true),
        ("PUT", "/v1/ids", false),
        ("POST", "/livez", false),
    ] {
        let text = wire.request(method, path, &[], "").text();
        let says_so = text.contains("a take uses IDs up");
        assert_eq!(says_so, is_take, "{method} {path}");
    }
}

#[test]
fn a_long_head_is_refused() {
    let served = serve("");
    for (field, status) in [(15 << 10, 200), (16 << 10, 431)] {
        let field = format!("x: {}", "a".repeat(field));
        let mut wire = served.connect(Http);
        wire.exactly("GET", "/livez", &["host: x", &field]);
        assert_eq!(wire.reply().status, status);
    }
}

#[test]
fn a_body_that_is_not_read_is_no_request() {
    let served = serve("");
    let mut wire = served.connect(Http);
    let inner = "POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\n\r\n";
    let length = inner.len();
    wire.send(format!(
        "POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{inner}"
    ));
    let reply = wire.reply();
    assert_eq!(reply.problem(), "not-found");
    assert_eq!(reply.headers["connection"], "close");
    wire.assert_closed();
    assert_eq!(served.count(Http, |it| &it.requests), 1);
}

#[test]
fn a_request_may_have_an_empty_chunked_body_and_end_lines_in_lf() {
    let served = serve("");
    let take = "POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\n";
    for request in [
        &format!("{take}transfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        "GET /livez HTTP/1.1\nhost: x\n\n",
        "GET /livez HTTP/1.1\nhost: x\n\r\n",
    ] {
        let mut wire = served.connect(Http);
        wire.send(request);
        let reply = wire.reply();
        assert_eq!((reply.status, reply.headers.get("connection")), (200, None));
    }
}

#[test]
fn a_header_of_the_proxy_protocol_is_refused_unless_it_is_expected() {
    let served = serve("");
    let v1 = &b"PROXY TCP4 192.0.2.1 192.0.2.2 5 6\r\n"[..];
    let v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x02\0\x05\0\x06";
    for header in [v1, v2] {
        let mut wire = served.connect(Http);
        let take =
            b"POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        wire.send([header, take].concat());
        let reply = wire.read_to_end();
        let is_refused = reply.is_empty() || reply.starts_with(b"HTTP/1.1 400 ");
        assert!(is_refused, "{}", reply.escape_ascii());
    }
    assert_eq!(served.count(Http, |it| &it.ids), 0);
}

#[test]
fn requests_and_refusals_are_counted() {
    let served = serve_few(1024);
    served.connect(Resp).ask(b"PING\r\n", 1);
    eventually("the time of the PING is counted", || {
        served.count(Resp, |it| &it.closed) == 1
    });
    let mut wire = served.connect(Http);
    let counts = || {
        [
            served.count(Http, |it| &it.requests),
            served.count(Http, |it| &it.errors),
            served.count(Http, |it| &it.ids),
        ]
    };
    assert_eq!(counts(), [0, 0, 0]);
    for (path, status, expected) in [
        ("/v1/ids?namespace=few&count=1024", 200, [1, 0, 1024]),
        ("/v1/ids?namespace=none", 404, [2, 1, 1024]),
        ("/v1/ids?namespace=few", 503, [3, 2, 1024]),
    ] {
        assert_eq!(wire.post(path, &[]).status, status, "{path}");
        assert_eq!(counts(), expected, "{path}");
    }
    // The request for them is counted behind them.
    let text = wire.get("/metrics").text();
    assert_lines(
        &text,
        &[
            "ringflake_server_ids_total{protocol=\"http\"} 1024",
            "ringflake_server_ids_total{protocol=\"resp\"} 0",
            "ringflake_server_requests_total{protocol=\"http\"} 3",
            "ringflake_server_request_errors_total{protocol=\"http\",kind=\"denied\"} 0",
            "ringflake_server_request_errors_total{protocol=\"http\",kind=\"invalid\"} 1",
            "ringflake_server_request_errors_total{protocol=\"http\",kind=\"unavailable\"} 1",
            "ringflake_server_request_duration_seconds_count{protocol=\"http\"} 3",
            "ringflake_server_request_duration_seconds_count{protocol=\"resp\"} 1",
        ],
    );
}

#[test]
fn a_token_gives_its_own_right_only() {
    let served = serve("");
    served.set_rights(Access::named());
    let mut wire = served.connect(Http);
    let bearer = |right: &str| format!("authorization: Bearer {right}");
    let admin = &*bearer("admin");
    let post = "/v1/ids?namespace=orders&format=text";
    let reply = wire.post(post, &[&bearer("take")]);
    let id = reply.json()["ids"][0].as_str().unwrap().to_owned();
    let get = format!("/v1/ids/{id}?namespace=orders&format=text");
    for (method, path, right, status) in [
        ("POST", post, "take", 200),
        ("GET", &get, "inspect", 200),
        ("GET", "/metrics", "admin", 200),
    ] {
        let mut ask = |headers: &[&str]| wire.request(method, path, headers, "");
        assert_eq!(ask(&[&bearer(right)]).status, status, "{path}");
        for other in ["take", "inspect", "admin"] {
            if other != right {
                let reply = ask(&[&bearer(other)]);
                let found = (reply.status, &*reply.problem());
                assert_eq!(found, (403, "forbidden"), "{path}");
            }
        }
        let lenient = format!("authorization: bearer  {right} ");
        assert_eq!(ask(&[&lenient]).status, status, "{path}");
        let (own, basic) = (bearer(right), format!("authorization: Basic {right}"));
        for headers in [
            &[][..],
            &["authorization: Bearer nobody"],
            &["authorization: Bearer "],
            &["authorization: Bearer"],
            &[&basic],
            &[&own, &own],
        ] {
            let reply = ask(headers);
            let found = (reply.status, &*reply.problem());
            assert_eq!(found, (401, "unauthenticated"), "{path} {headers:?}");
            assert!(reply.headers["www-authenticate"].starts_with("Bearer realm="));
        }
    }
    // Six requests of each path had no known token, and two had one of another role.
    let text = wire.request("GET", "/metrics", &[admin], "").text();
    assert_lines(
        &text,
        &[
            "ringflake_server_auth_failures_total{protocol=\"http\"} 18",
            "ringflake_server_request_errors_total{protocol=\"http\",kind=\"denied\"} 24",
            "ringflake_server_request_errors_total{protocol=\"http\",kind=\"invalid\"} 0",
        ],
    );
    // A guess takes its time, whatever the response tells of it.
    for (method, path) in [("POST", post), ("GET", "/readyz")] {
        let began = Instant::now();
        wire.request(method, path, &["authorization: Bearer nobody"], "");
        assert!(began.elapsed() >= Duration::from_millis(200), "{path}");
    }
    // Whether it lives and is ready is everybody's to know, and the names are not.
    assert_eq!(wire.get("/livez").status, 200);
    assert_eq!(wire.get("/readyz").json().get("namespaces"), None);
    let all = wire.request("GET", "/readyz", &[admin], "").json();
    assert_eq!(all["namespaces"][0]["namespace"], "orders");
}

#[test]
fn a_role_that_nobody_has_is_forbidden_to_every_token() {
    let take = Right::Tokens(Tokens::limited("take", None, 9.0));
    let served = serve("");
    served.set_rights([take, Right::Nobody, Right::Everybody]);
    let mut wire = served.connect(Http);
    for headers in [
        &[][..],
        &["authorization: Bearer take"],
        &["authorization: Bearer x"],
    ] {
        let inspect = "/v1/ids/7?namespace=orders";
        let reply = wire.request("GET", inspect, headers, "");
        let found = (reply.status, &*reply.problem());
        assert_eq!(found, (403, "forbidden"), "{headers:?}");
    }
    // One that everybody has needs no token, and accepts any.
    for headers in [&[][..], &["authorization: Basic x"]] {
        let reply = wire.request("GET", "/metrics", headers, "");
        assert_eq!(reply.status, 200, "{headers:?}");
    }
}

#[test]
fn an_id_of_another_namespace_is_foreign() {
    // The layout of a plain one has fewer than 64 bits, which shows.
    let served = serve_few(1024);
    let mut wire = served.connect(Http);
    wire.post("/v1/ids?namespace=few", &[]);
    let reply = wire.get("/v1/ids/-1?namespace=few");
    assert_eq!((reply.status, &*reply.problem()), (404, "foreign-id"));
}

const TOKEN: &str = "authorization: Bearer t";

#[test]
fn a_rate_counts_what_is_asked_for() {
    let served = serve_few(1024);
    let access = &served.server().access;
    access.replace(Access::limited(None, 1_000_000));
    let mut wire = served.connect(Http);
    for (namespace, status, spent) in [
        ("few", 200, 700),
        // The other 324 are taken, and lost.
        ("few", 503, 1400),
        ("unknown", 404, 2100),
    ] {
        let path = format!("/v1/ids?namespace={namespace}&count=700");
        let reply = wire.request("POST", &path, &[TOKEN], "");
        assert_eq!(reply.status, status, "{namespace}");
        assert_eq!(access.spent(Role::Take), spent, "{namespace}");
    }
}

#[test]
fn a_request_beyond_the_limits_of_its_token_is_refused() {
    let served = serve("");
    let access = &served.server().access;
    let mut wire = served.connect(Http);
    let reply = wire.post("/v1/ids?namespace=orders", &[]).json();
    let inspect = format!("/v1/ids/{}", reply["ids"][0].as_str().unwrap());
    for (role, method, path, said) in [
        (Role::Inspect, "GET", &*inspect, "sequence"),
        (Role::Take, "POST", "/v1/ids", "ids"),
    ] {
        for (namespace, spent, status, said) in [
            ("others", 0, 403, "use one that may use orders"),
            ("orders", 9, 429, "the token has used up its rate"),
            ("orders", 0, 200, said),
        ] {
            access.replace(Access::everybody());
            access.replace(Access::limited(Some(namespace), 9));
            if spent > 0 {
                access.spend(role, Some(b"t"), "orders", spent).unwrap();
            }
            let path = format!("{path}?namespace=orders");
            let reply = wire.request(method, &path, &[TOKEN], "");
            assert_eq!(reply.status, status, "{reply:?}");
            assert_eq!(reply.headers.contains_key("retry-after"), status == 429);
            assert!(reply.text().contains(said), "{reply:?}");
        }
        assert_eq!(access.spent(role), 1);
        let path = path.to_owned() + "?namespace=new";
        assert_eq!(wire.request(method, &path, &[TOKEN], "").status, 403);
    }
    assert!(served.server().namespaces.get("new").is_none());
    assert_eq!(served.count(Http, |it| &it.ids), 2);
    let mut refused = access.refused();
    refused.sort_unstable();
    assert_eq!(refused, ["127.0.0.1 inspect", "127.0.0.1 take"]);
}

const BINARY: &str = "accept: application/octet-stream";
const TEXT: &str = "accept: text/plain";

/// Asserts that the IDs belong to the namespace, and are distinct.
#[track_caller]
fn assert_distinct(served: &Served, namespace: &str, ids: impl IntoIterator<Item = u64>) {
    let generator = served.generator(namespace);
    let mut seen = HashSet::new();
    for id in ids {
        let parts = generator.inspect(Id::from_u64(id)).unwrap();
        let raw = (parts.tick, parts.node, parts.sequence);
        assert!(seen.insert(raw), "twice: {parts:?}");
    }
}

#[test]
fn an_id_comes_as_a_signed_number_in_json() {
    let served = serve("");
    let mut wire = served.connect(Http);
    let reply = wire.post("/v1/ids?namespace=orders", &[]);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["cache-control"], "no-store");
    let json = reply.json();
    let id = json["ids"][0].as_str().unwrap();
    assert_eq!(json, json!({ "namespace": "orders", "ids": [id] }));
    let id: i64 = id.parse().unwrap();

    // On the same connection.
    let inspected = wire.get(&format!("/v1/ids/{id}?namespace=orders")).json();
    let parts = served.generator("orders").inspect(Id::from_i64(id));
    let parts = parts.unwrap();
    assert_eq!(inspected["id"], id.to_string());
    assert_eq!(inspected["tick"], parts.tick);
    assert_eq!(inspected["node"], parts.node);
    assert_eq!(inspected["sequence"], parts.sequence);
    assert_eq!(inspected["unix_ms"], parts.unix_ms);
    let time = inspected["time"].as_str().unwrap();
    assert_eq!(humantime::parse_rfc3339(time).unwrap(), parts.time());
}

#[test]
fn no_id_comes_twice_in_whatever_format() {
    let served = serve("");
    let mut wire = served.connect(Http);
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
    assert_eq!(served.count(Http, |it| &it.ids), count as u64);
}

#[test]
fn an_answer_that_can_t_be_finished_is_an_error() {
    let served = serve_few(10 << 10);
    let path = "/v1/ids?namespace=few&count=20000";
    let reply = served.connect(Http).post(path, &[TEXT]);
    assert_eq!((reply.status, &*reply.problem()), (503, "cannot-issue"));
    assert!(!reply.headers.contains_key("retry-after"));
    assert!(!reply.text().contains("retry_after_ms"));
    assert_eq!(served.count(Http, |it| &it.ids), 0);
}

#[test]
fn a_large_take_waits_for_ids_that_come_in_time() {
    // 1,024 IDs a second, of which ten seconds may be borrowed.
    let (served, clock) = serve_ahead(100..200);
    let count = 15 << 10;
    let asking = {
        let mut wire = served.connect(Http);
        thread::spawn(move || {
            let path = format!("/v1/ids?namespace=ahead&count={count}");
            wire.post(&path, &[BINARY])
        })
    };
    let generator = served.generator("ahead");
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
    let served = serve("");
    for count in [1, 5000] {
        let mut wire = served.connect(Http);
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
    let served = serve("");
    let mut wire = served.connect(Http);
    wire.post("/v1/ids?namespace=orders&count=5", &[]);
    wire.post("/v1/ids?namespace=others&count=7", &[]);
    let text = wire.get("/metrics").text();
    for line in [
        "# TYPE ringflake_ids_issued_total counter",
        "ringflake_ids_issued_total{namespace=\"orders\"} 5",
        "ringflake_ids_issued_total{namespace=\"others\"} 7",
        "ringflake_server_ids_total{protocol=\"http\"} 12",
    ] {
        let count = text.lines().filter(|own| *own == line).count();
        assert_eq!(count, 1, "{line}\n{text}");
    }
    assert!(text.contains("ringflake_lease_remaining_seconds{namespace=\"orders\"} "));
    let reply = wire.get("/metrics");
    let content_type = &reply.headers["content-type"];
    assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(reply.text().lines().count(), text.lines().count());
}

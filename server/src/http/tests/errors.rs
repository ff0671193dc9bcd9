//! Each error, as a client sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::served::{serve, serve_few};
use crate::access::{Access, Right};
use crate::tokens::Tokens;

#[test]
fn an_error_says_what_it_is() {
    let served = serve(|setup| setup.limits.count = 10);
    let table = "
        GET /v1                           | 404 not-found
        POST /v1/ids/                     | 404 not-found
        GET /v1/ids                       | 405 method-not-allowed
        DELETE /v1/ids/7?namespace=orders | 405 method-not-allowed
        POST /metrics                     | 405 method-not-allowed
        GET /v1/ids/7?namespace=Orders    | 422 invalid
        POST /v1/ids?namespace=orders     | 422 invalid           | content-type: application/json | {}
        POST /v1/ids                      | 422 invalid
        POST /v1/ids?namespace=orders&count=0  | 422 invalid
        POST /v1/ids?namespace=orders&count=11 | 422 invalid
        POST /v1/ids?namespace=Orders     | 422 invalid
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
        let reply = served.connect().request(method, path, &headers, body);
        let found = (reply.status, reply.problem());
        assert_eq!(found, (status, kind.to_owned()), "{method} {path}");
        assert_eq!(reply.headers["cache-control"], "no-store", "{path}");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff");
        let has_allow = reply.headers.contains_key("allow");
        assert_eq!(has_allow, status == 405, "{method} {path}");
    }
    let mut wire = served.connect();
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
    let served = serve(|_| {});
    for (field, status) in [(15 << 10, 200), (16 << 10, 431)] {
        let field = format!("x: {}", "a".repeat(field));
        let mut wire = served.connect();
        wire.exactly("GET", "/livez", &["host: x", &field]);
        assert_eq!(wire.reply().status, status);
    }
}

#[test]
fn a_body_that_is_not_read_is_no_request() {
    let served = serve(|_| {});
    let mut wire = served.connect();
    let inner = "POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\n\r\n";
    let length = inner.len();
    wire.send(format!(
        "POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{inner}"
    ));
    let reply = wire.reply();
    assert_eq!(reply.problem(), "not-found");
    assert_eq!(wire.get("/livez").text(), "live\n");
    assert_eq!(served.counters().requests.load(Ordering::Relaxed), 2);
}

#[test]
fn requests_and_refusals_are_counted() {
    let served = serve_few(1024, |_| {});
    let mut wire = served.connect();
    let counts = || {
        let counters = served.counters();
        let [requests, errors, ids] = [&counters.requests, &counters.errors, &counters.ids];
        [requests, errors, ids].map(|count| count.load(Ordering::Relaxed))
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
}

#[test]
fn a_take_with_a_body_is_refused_and_takes_nothing() {
    let served = serve(|_| {});
    for body in [
        "content-length: 2\r\n\r\n{}",
        "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ] {
        let mut wire = served.connect();
        wire.send(format!(
            "POST /v1/ids?namespace=orders HTTP/1.1\r\nhost: x\r\n{body}"
        ));
        let reply = wire.reply();
        assert_eq!((reply.status, &*reply.problem()), (422, "invalid"));
        assert!(reply.text().contains("in the query"), "{reply:?}");
    }
    assert_eq!(served.counters().ids.load(Ordering::Relaxed), 0);
    // An empty one is none, whatever it is called.
    let form = "content-type: application/x-www-form-urlencoded";
    let reply = served.connect().post("/v1/ids?namespace=orders", &[form]);
    assert_eq!(reply.status, 200);
}

#[test]
fn a_token_gives_its_own_right_only() {
    let served = serve(|setup| setup.rights = Access::by_name());
    let mut wire = served.connect();
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
    // Whether it lives and is ready is everybody's to know, and the names are not.
    assert_eq!(wire.get("/livez").status, 200);
    assert_eq!(wire.get("/readyz").json().get("namespaces"), None);
    let all = wire.request("GET", "/readyz", &[admin], "").json();
    assert_eq!(all["namespaces"][0]["namespace"], "orders");
}

#[test]
fn a_role_that_nobody_has_is_forbidden_to_every_token() {
    let take = Right::Tokens(Tokens::limited("take", None, 9.0));
    let rights = Access::new([take, Right::Nobody, Right::Everybody]);
    let served = serve(|setup| setup.rights = Arc::new(rights));
    let mut wire = served.connect();
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
    let served = serve_few(1024, |_| {});
    let mut wire = served.connect();
    wire.post("/v1/ids?namespace=few", &[]);
    let reply = wire.get("/v1/ids/-1?namespace=few");
    assert_eq!((reply.status, &*reply.problem()), (404, "foreign-id"));
}

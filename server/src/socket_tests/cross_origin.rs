//! Browsers that the page of another site has made to send something.

use super::served::{Served, serve};
use super::wire::Reply;
use crate::access::Access;
use crate::config::Protocol::Http;

const EVIL: &str = "host: evil.example:7464";
const TAKE: &str = "/v1/ids?namespace=orders";

/// Paths that need no permission, with the same answer for all.
const OF_ALL: [&str; 4] = ["/", "/livez", "/readyz", "/openapi.json"];

/// Every operation that the server describes.
fn operations(served: &Served) -> Vec<(String, String)> {
    let document = served.connect(Http).get("/openapi.json").json();
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, methods): (&String, &serde_json::Value)| {
        let methods = methods.as_object().unwrap();
        let (path, methods) = (path.replace("{id}", "7"), methods.keys());
        let each = methods.map(move |method| (method.to_ascii_uppercase(), path.clone()));
        each.collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

/// The answer to exactly these fields, on a connection of its own.
fn ask(served: &Served, method: &str, path: &str, fields: &[&str]) -> Reply {
    let mut wire = served.connect(Http);
    wire.exactly(method, path, fields);
    wire.reply()
}

/// That nothing lets another site read it.
#[track_caller]
fn assert_no_cors(reply: &Reply) {
    let is_cors = |name: &String| name.starts_with("access-control");
    assert!(!reply.headers.keys().any(is_cors), "{reply:?}");
}

#[track_caller]
fn assert_none_taken(served: &Served) {
    assert_eq!(served.count(Http, |it| &it.ids), 0);
}

#[test]
fn a_page_whose_name_leads_here_is_not_served() {
    let served = serve("");
    let operations = operations(&served);
    assert!(operations.len() > OF_ALL.len() + 3, "{operations:?}");
    for (method, path) in operations {
        let reply = ask(&served, &method, &path, &[EVIL, "accept: */*"]);
        assert_no_cors(&reply);
        if OF_ALL.contains(&&*path) {
            assert_eq!(reply.status, 200, "{path}");
        } else {
            let found = (reply.status, &*reply.problem());
            assert_eq!(found, (421, "unknown-host"), "{method} {path}");
            assert!(reply.text().contains("http.hosts"), "{reply:?}");
        }
    }
    assert_none_taken(&served);
}

#[test]
fn a_page_whose_name_leads_here_sees_no_namespaces() {
    let served = serve("");
    served.connect(Http).post(TAKE, &[]);
    let names = |host| ask(&served, "GET", "/readyz", &[host]).json();
    assert_eq!(names(EVIL).get("namespaces"), None);
    assert!(names("host: localhost").get("namespaces").is_some());
}

#[test]
fn a_target_with_a_name_counts_beside_the_host() {
    let served = serve("");
    let target = format!("http://evil.example{TAKE}");
    let reply = ask(&served, "POST", &target, &["host: localhost"]);
    assert_eq!((reply.status, &*reply.problem()), (421, "unknown-host"));
    let target = format!("http://localhost{TAKE}");
    let reply = ask(&served, "POST", &target, &["host: localhost"]);
    assert_eq!(reply.status, 200);
}

#[test]
fn the_page_of_another_site_makes_nobody_take() {
    let served = serve("");
    let own = format!("host: {}", served.address(Http));
    let form = "content-type: text/plain";
    let field = "sec-fetch-site: cross-site";
    for (method, path) in [("POST", TAKE), ("GET", "/v1/status"), ("GET", "/metrics")] {
        let reply = ask(&served, method, path, &[&own, form, field]);
        let found = (reply.status, &*reply.problem());
        assert_eq!(found, (403, "cross-site"), "{method} {path}");
        assert_no_cors(&reply);
    }
    assert_none_taken(&served);
    // A preflight request of a browser.
    let origin = "origin: http://evil.example";
    let method = "access-control-request-method: POST";
    let reply = ask(&served, "OPTIONS", TAKE, &[&own, origin, method]);
    assert_eq!(reply.status, 405);
    assert_no_cors(&reply);
}

#[test]
fn a_request_of_http_1_1_has_one_host() {
    let served = serve("");
    for fields in [&[][..], &["host: localhost", "host: localhost"]] {
        for path in ["/livez", "/v1/status"] {
            let reply = ask(&served, "GET", path, fields);
            let found = (reply.status, &*reply.problem());
            assert_eq!(found, (400, "malformed"), "{path} {fields:?}");
        }
    }
    let mut wire = served.connect(Http);
    wire.send("GET /v1/status HTTP/1.0\r\n\r\n");
    assert_eq!(wire.reply().status, 200, "no browser");
}

#[test]
fn where_a_token_is_needed_it_is_enough() {
    let served = serve("");
    served.set_rights(Access::named());
    let token = "authorization: Bearer take";
    let site = "sec-fetch-site: cross-site";
    assert_eq!(ask(&served, "POST", TAKE, &[EVIL, site, token]).status, 200);
    let reply = ask(&served, "POST", TAKE, &[EVIL, site]);
    assert_eq!((reply.status, &*reply.problem()), (401, "unauthenticated"));
}

#[test]
fn a_unix_socket_is_asked_by_any_name() {
    let served = serve("");
    let status = |fields: &[&str]| {
        let mut wire = served.connect_unix(Http);
        wire.exactly("POST", TAKE, fields);
        wire.reply().status
    };
    assert_eq!(status(&[EVIL]), 200);
    // Of a browser, by way of a proxy.
    assert_eq!(status(&[EVIL, "sec-fetch-site: cross-site"]), 403);
}

//! What counts against the limits of a token.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::served::{serve, serve_few};
use crate::access::{Access, Role};

const TOKEN: &str = "authorization: Bearer t";

#[test]
fn ids_that_were_not_taken_are_not_counted() {
    let access = Arc::new(Access::new(Access::limited(None, 1_000_000)));
    let served = serve_few(1024, |setup| setup.rights = Arc::clone(&access));
    let mut wire = served.connect();
    let mut take = |namespace: &str| {
        let path = format!("/v1/ids?namespace={namespace}&count=700");
        wire.request("POST", &path, &[TOKEN], "").status
    };
    assert_eq!(take("few"), 200);
    assert_eq!(access.spent(Role::Take), 700);
    // The other 324 are taken, and lost.
    assert_eq!(take("few"), 503);
    assert_eq!(access.spent(Role::Take), 1024);
    assert_eq!(take("unknown"), 404);
    assert_eq!(access.spent(Role::Take), 1024);
    assert!(served.end(Duration::from_secs(60)));
}

#[test]
fn a_lease_is_renewed_and_released_within_the_limits_of_the_token() {
    let access = Arc::new(Access::new(Access::limited(None, 1_000_000)));
    let served = serve(|setup| setup.rights = Arc::clone(&access));
    let mut wire = served.connect();
    let mut ask = |path: &str, body: serde_json::Value| {
        let headers = [TOKEN, "content-type: application/json"];
        wire.request("POST", path, &headers, &body.to_string())
    };
    let given = ask("/v1/leases", json!({ "namespace": "orders", "nodes": 1 })).json();
    let lease = json!({ "lease": given["leases"][0]["lease"] });
    assert_eq!(access.spent(Role::Lease), 1);
    // For another namespace, and with no request left.
    for (namespace, status) in [(Some("others"), 403), (None, 429)] {
        access.replace(Access::limited(namespace, 1));
        // More than there is, if the token may use the namespace.
        let _ = access.spend(Role::Lease, Some(b"t"), "orders", 2);
        for path in ["/v1/leases/renew", "/v1/leases/release"] {
            assert_eq!(ask(path, lease.clone()).status, status, "{path}");
        }
    }
    access.replace(Access::limited(Some("others"), 9));
    let refused = ask("/v1/leases/renew", json!({ "lease": "no lease" }));
    let text = String::from_utf8_lossy(&refused.body);
    assert!(
        text.contains("may use the namespace of this lease"),
        "{text}"
    );
    access.replace(Access::limited(None, 9));
    for path in ["/v1/leases/renew", "/v1/leases/release"] {
        assert_eq!(ask(path, lease.clone()).status, 200, "{path}");
    }
    assert_eq!(access.spent(Role::Lease), 2, "a request each");
    assert!(served.end(Duration::from_secs(60)));
}

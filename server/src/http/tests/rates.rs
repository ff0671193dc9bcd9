//! What counts against the limits of a token.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::served::{serve, serve_few};
use crate::access::{Exceeded, Ledger};

#[test]
fn ids_that_were_not_taken_are_not_counted() {
    let ledger = Arc::new(Ledger::default());
    let served = serve_few(1024, |setup| setup.rights = Arc::new(Arc::clone(&ledger)));
    let mut wire = served.connect();
    let mut take = |namespace: &str| {
        let path = format!("/v1/ids?namespace={namespace}&count=700");
        wire.request("POST", &path, &[], "").status
    };
    assert_eq!(take("few"), 200);
    assert_eq!(ledger.counted(), 700);
    // The other 324 are taken, and lost.
    assert_eq!(take("few"), 503);
    assert_eq!(ledger.counted(), 1024);
    assert_eq!(take("unknown"), 404);
    assert_eq!(ledger.counted(), 1024);
    assert!(served.end(Duration::from_secs(60)));
}

#[test]
fn a_lease_is_renewed_and_released_within_the_limits_of_the_token() {
    let ledger = Arc::new(Ledger::default());
    let served = serve(|setup| setup.rights = Arc::new(Arc::clone(&ledger)));
    let mut wire = served.connect();
    let mut ask = |path: &str, body: serde_json::Value| wire.post_json(path, &body.to_string());
    let given = ask("/v1/leases", json!({ "namespace": "orders", "nodes": 1 })).json();
    let lease = json!({ "lease": given["leases"][0]["lease"] });
    let rate = Exceeded::Rate {
        retry_after: Duration::from_secs(7),
    };
    for (refusal, status) in [(Exceeded::Namespace, 403), (rate, 429)] {
        ledger.refuse(Some(refusal));
        for path in ["/v1/leases/renew", "/v1/leases/release"] {
            assert_eq!(ask(path, lease.clone()).status, status, "{path}");
        }
    }
    ledger.refuse(Some(Exceeded::Namespace));
    let refused = ask("/v1/leases/renew", json!({ "lease": "no lease" }));
    let text = String::from_utf8_lossy(&refused.body);
    assert!(
        text.contains("may use the namespace of this lease"),
        "{text}"
    );
    ledger.refuse(None);
    for path in ["/v1/leases/renew", "/v1/leases/release"] {
        assert_eq!(ask(path, lease.clone()).status, 200, "{path}");
    }
    assert_eq!(ledger.counted(), 3, "a request each");
    assert!(served.end(Duration::from_secs(60)));
}

//! What counts against the limits of a token.

use std::sync::Arc;
use std::time::Duration;

use super::served::{serve, serve_few};
use crate::access::{Access, Role};

const TOKEN: &str = "authorization: Bearer t";

#[test]
fn a_rate_counts_what_is_asked_for() {
    let access = Arc::new(Access::new(Access::limited(None, 1_000_000)));
    let served = serve_few(1024, |setup| setup.rights = Arc::clone(&access));
    let mut wire = served.connect();
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
    assert!(served.end(Duration::from_secs(60)));
}

#[test]
fn a_request_beyond_the_limits_of_its_token_is_refused() {
    let access = Arc::new(Access::new(Access::limited(None, 1_000_000)));
    let served = serve(|setup| setup.rights = Arc::clone(&access));
    let mut wire = served.connect();
    let take = "/v1/ids?namespace=orders&format=text";
    let id = wire.post(take, &[TOKEN]).json()["ids"][0].clone();
    let inspect = format!(
        "/v1/ids/{}?namespace=orders&format=text",
        id.as_str().unwrap()
    );
    let mut ask = |method, path: &str| wire.request(method, path, &[TOKEN], "");
    // For another namespace, and with nothing left.
    for (namespace, status, said) in [
        (Some("others"), 403, "use one that may use orders"),
        (None, 429, "the token has used up its rate"),
    ] {
        access.replace(Access::limited(namespace, 1));
        for (method, path, role) in [
            ("POST", take, Role::Take),
            ("GET", &*inspect, Role::Inspect),
        ] {
            // More than there is, if the token may use the namespace.
            let _ = access.spend(role, Some(b"t"), "orders", 2);
            let refused = ask(method, path);
            assert_eq!(refused.status, status, "{path}");
            assert_eq!(refused.headers.contains_key("retry-after"), status == 429);
            let text = String::from_utf8_lossy(&refused.body).into_owned();
            assert!(text.contains(said), "{text}");
        }
    }
    access.replace(Access::limited(None, 9));
    for (method, path, role) in [
        ("POST", take, Role::Take),
        ("GET", &*inspect, Role::Inspect),
    ] {
        assert_eq!(ask(method, path).status, 200, "{path}");
        assert_eq!(access.spent(role), 1, "{path}");
    }
    assert!(served.end(Duration::from_secs(60)));
}

//! Which client a connection belongs to, and what that one may do.

use std::sync::Arc;

use super::kit::{error, incr, request, serve};
use crate::access::Access;
use crate::limits::Limits;

#[test]
fn a_token_beyond_its_limits_takes_nothing() {
    let access = Arc::new(Access::new(Access::limited(Some("orders"), 5)));
    let setup = serve(|it| it.rights = Arc::clone(&access));
    let mut client = setup.connect(true);
    client.ask(&request(&["AUTH", "t"]), 1);
    client.ask(&incr("orders").repeat(5), 5);
    for reply in &client.ask(&incr("orders").repeat(6), 6) {
        assert!(error(reply).starts_with("NOPERM "), "{reply:?}");
    }
    assert!(error(&client.ask(&request(&["LPOP", "orders", "6"]), 1)[0]).starts_with("NOPERM "));
    assert!(error(&client.ask(&incr("invoices"), 1)[0]).starts_with("NOPERM "));
    assert_eq!(setup.count(|it| &it.ids), 5);
    assert!(setup.namespaces.get("invoices").is_none(), "none is opened");
    assert_eq!(access.refused(), ["127.0.0.1 take"]);
}

#[test]
fn the_client_is_the_one_that_the_proxy_names() {
    let access = Arc::new(Access::new(Access::limited(Some("orders"), 5)));
    let limits = Limits {
        connections_per_client: 1,
        ..Limits::default()
    };
    let setup = serve(|it| {
        it.rights = Arc::clone(&access);
        it.limits = limits;
        it.config.proxy_protocol = true;
    });
    let connect = |address: &str| {
        let mut client = setup.connect(true);
        let header = format!("PROXY TCP4 {address} 198.51.100.1 1 2\r\n");
        let auth = request(&["AUTH", "t"]);
        client.send([header.as_bytes(), &auth, &incr("invoices")].concat());
        client
    };
    let mut first = connect("192.0.2.1");
    assert!(error(&first.replies(2)[1]).starts_with("NOPERM "));
    let mut second = connect("192.0.2.2");
    assert!(error(&second.replies(2)[1]).starts_with("NOPERM "));
    let mut refused = access.refused();
    refused.sort_unstable();
    assert_eq!(refused, ["192.0.2.1 take", "192.0.2.2 take"]);
    let mut again = connect("192.0.2.1");
    let full = again.read_to_end();
    assert!(full.starts_with(b"-ERR max number of clients"), "{full:?}");
}

#[test]
fn a_connection_without_the_header_of_a_proxy_gets_no_reply() {
    let setup = serve(|it| it.config.proxy_protocol = true);
    let mut client = setup.connect(true);
    client.send(request(&["PING"]).repeat(3));
    assert_eq!(client.read_to_end(), b"");
}
